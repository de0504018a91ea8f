//! The provisioner is killed at every single call of the driver: once when the driver has received it and not carried it out, and
//! once when it is carried out and not answered. Whoever starts then brings each story to its end: no volume is left that nobody
//! knows of, and no claim is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_csi::fake::{Fake, Serving, When};
use bindery_test_cluster::{TIMEOUT, Running, TestCluster};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::server::Server;
use crate::state::{CLAIMS, CLASSES, VOLUMES, text};

const CREATE: &str = "CreateVolume";
const DELETE: &str = "DeleteVolume";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const KEY: &str = "topology.example.com/node";
const NODES: [&str; 2] = ["n1", "n2"];
/// Probe, GetPluginInfo, GetPluginCapabilities, ControllerGetCapabilities.
const INTRODUCTION: usize = 4;
/// So many stories are told at a time.
const AT_ONCE: usize = 4;

/// What a driver answers, and what that makes of a claim: it is bound, then deleted, and everything is gone.
struct Story {
    name: &'static str,
    create: &'static str,
    delete: &'static str,
    /// What the driver is called for where nobody is killed.
    calls: &'static [&'static str],
    /// The node is chosen by a scheduler, and another one where there is no room.
    chooses: bool,
    /// The claim is deleted while nobody runs.
    deleted: bool,
}

const STORY: Story =
    Story { name: "made", create: "ok", delete: "ok", calls: &[CREATE, DELETE], chooses: false, deleted: false };

const STORIES: [Story; 8] = [
    STORY,
    Story { name: "small", create: "small,ok", calls: &[CREATE, DELETE, CREATE, DELETE], ..STORY },
    Story {
        name: "stubborn",
        create: "small,ok",
        delete: "INTERNAL,unsure,ok",
        calls: &[CREATE, DELETE, DELETE, DELETE, CREATE, DELETE],
        ..STORY
    },
    Story { name: "refused", create: "INTERNAL,ok", calls: &[CREATE, CREATE, DELETE], ..STORY },
    Story { name: "unsure", create: "ABORTED,unsure,ok", calls: &[CREATE, CREATE, CREATE, DELETE], ..STORY },
    Story { name: "kept", delete: "INTERNAL,unsure,ok", calls: &[CREATE, DELETE, DELETE, DELETE], ..STORY },
    Story { name: "full", create: "RESOURCE_EXHAUSTED,ok", calls: &[CREATE, CREATE, DELETE], chooses: true, ..STORY },
    Story {
        name: "deleted",
        create: "small,unsure,ok",
        calls: &[CREATE, DELETE, CREATE, CREATE, DELETE],
        deleted: true,
        ..STORY
    },
];

#[test]
fn a_crash_at_any_call_of_the_driver_loses_nothing() {
    let Some(lab) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = Server::connect(lab.kubeconfig()).await;
        let kubeconfig = format!("--kubeconfig={}", lab.kubeconfig().display());
        let args = ["controller", &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"];
        let _binder = lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the binder starts");
        let both = |story| [(story, When::Received), (story, When::Done)];
        let lanes: Vec<Lane<'_>> =
            STORIES.iter().flat_map(both).map(|(story, when)| Lane::new(&lab, &server, story, when)).collect();
        set_up(&server, &lanes).await;
        let crashes = futures::stream::iter(&lanes).map(Lane::crash_everywhere).buffer_unordered(AT_ONCE);
        let crashes: usize = crashes.collect::<Vec<usize>>().await.into_iter().sum();
        let calls: usize = STORIES.iter().map(|story| story.calls.len()).sum();
        assert_eq!(crashes, 2 * (calls + INTRODUCTION), "one at every call, of each kind");
    });
}

async fn set_up(server: &Server, lanes: &[Lane<'_>]) {
    for node in NODES {
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": {KEY: node}}});
        server.create("/api/v1/nodes", &object).await.expect("a node");
        let driver = |lane: &Lane<'_>| json!({"name": lane.driver_name(), "nodeID": node, "topologyKeys": [KEY]});
        let csi_node = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
            "spec": {"drivers": lanes.iter().map(driver).collect::<Vec<_>>()},
        });
        server.create("/apis/storage.k8s.io/v1/csinodes", &csi_node).await.expect("what drivers can do");
    }
    for lane in lanes {
        let binding = if lane.story.chooses { "WaitForFirstConsumer" } else { "Immediate" };
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": lane.name},
            "provisioner": lane.driver_name(), "volumeBindingMode": binding,
            "parameters": {"create": lane.story.create, "delete": lane.story.delete},
        });
        server.create(CLASSES, &class).await.expect("a class");
    }
}

/// A story with crashes of one kind: its driver and its class serve nobody else.
struct Lane<'a> {
    lab: &'a TestCluster,
    server: &'a Server,
    story: &'static Story,
    when: When,
    name: String,
    driver: Arc<Fake>,
    serving: Serving,
}

/// One time that the story is told.
struct Telling {
    claim: String,
    uid: String,
    provisioner: Running,
    has_crashed: bool,
}

/// What there is of a claim.
struct Seen {
    claim: Option<Value>,
    /// The handles of its volumes.
    volumes: BTreeSet<String>,
    /// The handles that the driver has.
    made: BTreeSet<String>,
}

impl<'a> Lane<'a> {
    fn new(lab: &'a TestCluster, server: &'a Server, story: &'static Story, when: When) -> Lane<'a> {
        let name = match when {
            When::Received => format!("{}-received", story.name),
            When::Done => format!("{}-done", story.name),
        };
        let driver = Arc::new(Fake::new(&format!("{name}.example.com")));
        let serving = driver.serve(&lab.folder().join(format!("{name}.sock"))).expect("a driver is served");
        Lane { lab, server, story, when, name, driver, serving }
    }

    fn driver_name(&self) -> String {
        format!("{}.example.com", self.name)
    }

    /// Tells the story again and again, each time with a crash at the next call, until there is none left to crash at. Returns how
    /// many crashes there were. That the driver introduces itself is a part of one story only: it is the same in all.
    async fn crash_everywhere(&self) -> usize {
        let first = if self.story.name == STORY.name { 1 } else { INTRODUCTION + 1 };
        let mut nth = first;
        while self.crash_at(nth).await {
            nth += 1;
        }
        nth - first
    }

    /// Tells the story, with a crash at one call. Returns whether there was that call.
    async fn crash_at(&self, nth: usize) -> bool {
        self.driver.hold(nth, self.when);
        let mut telling = self.begin(nth).await;
        let seen = self.until(&mut telling, "the claim is bound", |seen| seen.is_bound() || seen.is_deleted()).await;
        if seen.is_bound() {
            assert_eq!(
                seen.made, seen.volumes,
                "{} at {nth}: the driver has what the claim has, and no more",
                self.name
            );
            assert_eq!(seen.volumes.len(), 1, "{} at {nth}", self.name);
            self.server.delete(&format!("{CLAIMS}/{}", telling.claim)).await.expect("deleted");
        }
        self.until(&mut telling, "everything is gone", Seen::is_nothing).await;
        telling.provisioner.kill().expect("killed");
        let calls = self.calls(&telling);
        if telling.has_crashed {
            let asked: BTreeSet<String> = calls.iter().filter(|call| call["method"] == CREATE).map(asked).collect();
            let places = if self.story.chooses { NODES.len() } else { 1 };
            assert!(
                asked.len() <= places,
                "{} at {nth}: who is asked again is asked for the same: {asked:?}",
                self.name
            );
        } else {
            let called: Vec<&str> = calls.iter().map(|call| text(&call["method"])).collect();
            assert_eq!(called, self.story.calls, "{}, where nobody was killed", self.name);
            assert_eq!(self.driver.arrived(), INTRODUCTION + called.len(), "{}", self.name);
        }
        telling.has_crashed
    }

    async fn begin(&self, nth: usize) -> Telling {
        let name = format!("{}-{nth}", self.name);
        let annotations = if self.story.chooses { json!({SELECTED_NODE: NODES[0]}) } else { json!({}) };
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": self.name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        let claim = self.server.create(CLAIMS, &claim).await.expect("a claim");
        let uid = text(&claim["metadata"]["uid"]).to_owned();
        Telling { claim: name, uid, provisioner: self.provisioner(), has_crashed: false }
    }

    /// Waits until something holds. The provisioner is killed when the driver holds its call, and another one started.
    async fn until(&self, telling: &mut Telling, what: &str, holds: impl Fn(&Seen) -> bool) -> Seen {
        let began = Instant::now();
        loop {
            if !telling.has_crashed && self.driver.is_holding() {
                telling.provisioner.kill().expect("killed");
                telling.has_crashed = true;
                if self.story.deleted {
                    // It may have been deleted before.
                    let _ = self.server.delete(&format!("{CLAIMS}/{}", telling.claim)).await;
                }
                telling.provisioner = self.provisioner();
            }
            let seen = self.look(telling).await;
            if holds(&seen) {
                return seen;
            }
            self.choose(telling, &seen).await;
            assert!(
                telling.provisioner.ended().is_none(),
                "{}: it ended:\n{}",
                telling.claim,
                telling.provisioner.log()
            );
            assert!(
                began.elapsed() < TIMEOUT,
                "{}: after {TIMEOUT:?} it does not hold that {what}: {:?}, volumes {:?}, at the driver {:?}\n{}",
                telling.claim,
                seen.claim,
                seen.volumes,
                seen.made,
                telling.provisioner.log()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Chooses another node for a claim that lost the one that was chosen for it, as a scheduler does.
    async fn choose(&self, telling: &Telling, seen: &Seen) {
        let Some(claim) = seen.claim.as_ref().filter(|_| self.story.chooses) else { return };
        let annotations = &claim["metadata"]["annotations"];
        if annotations.get(SELECTED_NODE).is_none() && claim["metadata"].get("deletionTimestamp").is_none() {
            let chosen = json!({"metadata": {"annotations": {SELECTED_NODE: NODES[1]}}});
            self.server.patch(&format!("{CLAIMS}/{}", telling.claim), &chosen).await.expect("a node is chosen");
        }
    }

    async fn look(&self, telling: &Telling) -> Seen {
        let claim = self.server.get(&format!("{CLAIMS}/{}", telling.claim)).await.ok();
        let volumes = self.server.list(VOLUMES).await;
        let is_its = |volume: &&Value| text(&volume["spec"]["claimRef"]["name"]) == telling.claim;
        let handle = |volume: &Value| text(&volume["spec"]["csi"]["volumeHandle"]).to_owned();
        Seen {
            claim,
            volumes: volumes.iter().filter(is_its).map(handle).collect(),
            made: self.driver.volumes().into_keys().collect(),
        }
    }

    /// What the driver was called for.
    fn calls(&self, telling: &Telling) -> Vec<Value> {
        let is_about = |call: &Value| {
            [&call["request"]["name"], &call["request"]["volume_id"]]
                .into_iter()
                .any(|id| text(id).contains(&telling.uid))
        };
        self.driver.calls().into_iter().filter(is_about).collect()
    }

    fn provisioner(&self) -> Running {
        let kubeconfig = format!("--kubeconfig={}", self.lab.kubeconfig().display());
        let address = format!("--csi-address={}", self.serving.socket().display());
        let args = [
            "provisioner",
            "csi",
            &kubeconfig,
            &address,
            // Longer than any call is held.
            "--timeout=10m",
            "--strict-topology",
            "--retry-interval-start=100ms",
            "--retry-interval-max=500ms",
            "--kube-api-qps=0",
        ];
        self.lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts")
    }
}

impl Seen {
    /// Whether the claim has its volume for good: nothing is under way any more.
    fn is_bound(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| {
            let metadata = &claim["metadata"];
            let is_intended = metadata["annotations"].get("bindery.dev/provisioning").is_some();
            claim["status"]["phase"] == "Bound" && !is_intended && metadata.get("deletionTimestamp").is_none()
        })
    }

    /// Whether the claim is gone, or going.
    fn is_deleted(&self) -> bool {
        self.claim.as_ref().is_none_or(|claim| claim["metadata"].get("deletionTimestamp").is_some())
    }

    fn is_nothing(&self) -> bool {
        self.claim.is_none() && self.volumes.is_empty() && self.made.is_empty()
    }
}

/// What a volume was asked for with.
fn asked(call: &Value) -> String {
    call["request"].to_string()
}
