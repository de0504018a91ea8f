//! The provisioner is killed at every call to the driver: once before the driver executes the call,
//! and once after, before the response. The next instance completes each scenario: no volume is
//! leaked, and no claim is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bindery_csi::fake::{FakeDriver, Serving, When};
use bindery_test_cluster::{Running, TIMEOUT, TestCluster};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::server::Server;
use crate::state::{CLAIMS, CLASSES, VOLUMES, text};

const CREATE: &str = "CreateVolume";
const DELETE: &str = "DeleteVolume";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const KEY: &str = "topology.example.com/node";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const NODES: [&str; 2] = ["n1", "n2"];
/// Probe, GetPluginInfo, GetPluginCapabilities, ControllerGetCapabilities.
const IDENTITY_CALLS: usize = 4;
/// The number of concurrent scenarios.
const AT_ONCE: usize = 4;

/// A driver's responses, and the calls they lead to: the claim is bound, then deleted, and
/// everything is cleaned up.
struct Scenario {
    name: &'static str,
    create: &'static str,
    delete: &'static str,
    /// The calls to the driver without crashes.
    calls: &'static [&'static str],
    /// A scheduler selects the node, and another one if it has no capacity.
    chooses: bool,
    /// The claim is deleted while no provisioner runs.
    deleted: bool,
}

const STORY: Scenario =
    Scenario { name: "made", create: "ok", delete: "ok", calls: &[CREATE, DELETE], chooses: false, deleted: false };

const SCENARIOS: [Scenario; 9] = [
    STORY,
    Scenario { name: "small", create: "small,ok", calls: &[CREATE, DELETE, CREATE, DELETE], ..STORY },
    Scenario {
        name: "stubborn",
        create: "small,ok",
        delete: "INTERNAL,unsure,ok",
        calls: &[CREATE, DELETE, DELETE, DELETE, CREATE, DELETE],
        ..STORY
    },
    Scenario { name: "refused", create: "INTERNAL,ok", calls: &[CREATE, CREATE, DELETE], ..STORY },
    Scenario { name: "unsure", create: "ABORTED,unsure,ok", calls: &[CREATE, CREATE, CREATE, DELETE], ..STORY },
    Scenario { name: "kept", delete: "INTERNAL,unsure,ok", calls: &[CREATE, DELETE, DELETE, DELETE], ..STORY },
    Scenario {
        name: "full",
        create: "RESOURCE_EXHAUSTED,ok",
        calls: &[CREATE, CREATE, DELETE],
        chooses: true,
        ..STORY
    },
    Scenario {
        name: "deleted",
        create: "small,unsure,ok",
        calls: &[CREATE, DELETE, CREATE, CREATE, DELETE],
        deleted: true,
        ..STORY
    },
    // The first answer is lost, and later errors say nothing about the volume.
    Scenario {
        name: "denied",
        create: "unsure,UNAUTHENTICATED,INTERNAL,ok",
        calls: &[CREATE, CREATE, CREATE, CREATE, DELETE],
        deleted: true,
        ..STORY
    },
];

#[test]
fn a_crash_at_any_call_of_the_driver_loses_nothing() {
    let Some(test_cluster) = TestCluster::for_test() else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let server = Server::connect(test_cluster.kubeconfig()).await;
        let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
        let args = ["controller", &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"];
        let _binder = test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the binder starts");
        let both = |scenario| [(scenario, When::Received), (scenario, When::Done)];
        let lanes: Vec<Lane<'_>> = SCENARIOS
            .iter()
            .flat_map(both)
            .map(|(scenario, when)| Lane::new(&test_cluster, &server, scenario, when))
            .collect();
        set_up(&server, &lanes).await;
        let crashes = futures::stream::iter(&lanes).map(Lane::crash_everywhere).buffer_unordered(AT_ONCE);
        let crashes: usize = crashes.collect::<Vec<usize>>().await.into_iter().sum();
        let calls: usize = SCENARIOS.iter().map(|scenario| scenario.calls.len()).sum();
        assert_eq!(crashes, 2 * (calls + IDENTITY_CALLS), "one crash of each kind at every call");
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
        let binding = if lane.scenario.chooses { "WaitForFirstConsumer" } else { "Immediate" };
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": lane.name},
            "provisioner": lane.driver_name(), "volumeBindingMode": binding,
            "parameters": {"create": lane.scenario.create, "delete": lane.scenario.delete},
        });
        server.create(CLASSES, &class).await.expect("a class");
    }
}

/// A scenario with crashes of one kind, with its own driver and class.
struct Lane<'a> {
    test_cluster: &'a TestCluster,
    server: &'a Server,
    scenario: &'static Scenario,
    when: When,
    name: String,
    driver: Arc<FakeDriver>,
    serving: Serving,
}

/// One run of the scenario.
struct Run {
    claim: String,
    uid: String,
    provisioner: Running,
    has_crashed: bool,
}

/// The observed state of a claim.
struct Seen {
    claim: Option<Value>,
    /// The handles of its volumes.
    volumes: BTreeSet<String>,
    /// The handles of the volumes that exist in the driver.
    made: BTreeSet<String>,
    /// Whether there is a provisioning record.
    is_recorded: bool,
}

impl<'a> Lane<'a> {
    fn new(test_cluster: &'a TestCluster, server: &'a Server, scenario: &'static Scenario, when: When) -> Lane<'a> {
        let name = match when {
            When::Received => format!("{}-received", scenario.name),
            When::Done => format!("{}-done", scenario.name),
        };
        let driver = Arc::new(FakeDriver::new(&format!("{name}.example.com")));
        let serving = driver.serve(&test_cluster.folder().join(format!("{name}.sock"))).expect("a driver is served");
        Lane { test_cluster, server, scenario, when, name, driver, serving }
    }

    fn driver_name(&self) -> String {
        format!("{}.example.com", self.name)
    }

    /// Repeats the scenario with a crash at each successive call, and returns the number of
    /// crashes. The initial identity calls are the same in all scenarios, so only one crashes
    /// there.
    async fn crash_everywhere(&self) -> usize {
        let first = if self.scenario.name == STORY.name { 1 } else { IDENTITY_CALLS + 1 };
        let mut nth = first;
        while self.crash_at(nth).await {
            nth += 1;
        }
        nth - first
    }

    /// Runs the scenario with a crash at one call. Returns whether that call occurred.
    async fn crash_at(&self, nth: usize) -> bool {
        self.driver.hold(nth, self.when);
        let mut run = self.begin(nth).await;
        let seen = self.until(&mut run, "the claim is bound", |seen| seen.is_bound() || seen.is_deleted()).await;
        if seen.is_bound() {
            assert_eq!(seen.made, seen.volumes, "{} at {nth}: the driver's volumes match the claim's", self.name);
            assert_eq!(seen.volumes.len(), 1, "{} at {nth}", self.name);
            self.server.delete(&format!("{CLAIMS}/{}", run.claim)).await.expect("deleted");
        }
        self.until(&mut run, "everything is deleted", Seen::is_nothing).await;
        run.provisioner.kill().expect("killed");
        let calls = self.calls(&run);
        if run.has_crashed {
            let asked: BTreeSet<String> = calls.iter().filter(|call| call["method"] == CREATE).map(asked).collect();
            let places = if self.scenario.chooses { NODES.len() } else { 1 };
            assert!(asked.len() <= places, "{} at {nth}: retries must have identical parameters: {asked:?}", self.name);
        } else {
            let called: Vec<&str> = calls.iter().map(|call| text(&call["method"])).collect();
            assert_eq!(called, self.scenario.calls, "{}, without a crash", self.name);
            assert_eq!(self.driver.arrived(), IDENTITY_CALLS + called.len(), "{}", self.name);
        }
        run.has_crashed
    }

    async fn begin(&self, nth: usize) -> Run {
        let name = format!("{}-{nth}", self.name);
        let annotations = if self.scenario.chooses { json!({SELECTED_NODE: NODES[0]}) } else { json!({}) };
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
        Run { claim: name, uid, provisioner: self.provisioner(), has_crashed: false }
    }

    /// Waits until a condition holds. When the driver holds a call, the provisioner is killed and
    /// another one started.
    async fn until(&self, run: &mut Run, what: &str, holds: impl Fn(&Seen) -> bool) -> Seen {
        let began = Instant::now();
        loop {
            if !run.has_crashed && self.driver.is_holding() {
                run.provisioner.kill().expect("killed");
                run.has_crashed = true;
                if self.scenario.deleted {
                    // It may have been deleted before.
                    let _ = self.server.delete(&format!("{CLAIMS}/{}", run.claim)).await;
                }
                run.provisioner = self.provisioner();
            }
            let seen = self.look(run).await;
            if holds(&seen) {
                return seen;
            }
            self.choose(run, &seen).await;
            assert!(run.provisioner.ended().is_none(), "{}: it ended:\n{}", run.claim, run.provisioner.log());
            assert!(
                began.elapsed() < TIMEOUT,
                "{}: after {TIMEOUT:?} it does not hold that {what}: {:?}, volumes {:?}, at the driver {:?}\n{}",
                run.claim,
                seen.claim,
                seen.volumes,
                seen.made,
                run.provisioner.log()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Selects another node for a claim whose selected node was removed, as a scheduler does.
    async fn choose(&self, run: &Run, seen: &Seen) {
        let Some(claim) = seen.claim.as_ref().filter(|_| self.scenario.chooses) else { return };
        let annotations = &claim["metadata"]["annotations"];
        if annotations.get(SELECTED_NODE).is_none() && claim["metadata"].get("deletionTimestamp").is_none() {
            let chosen = json!({"metadata": {"annotations": {SELECTED_NODE: NODES[1]}}});
            self.server.patch(&format!("{CLAIMS}/{}", run.claim), &chosen).await.expect("a node is selected");
        }
    }

    async fn look(&self, run: &Run) -> Seen {
        let claim = self.server.get(&format!("{CLAIMS}/{}", run.claim)).await.ok();
        let volumes = self.server.list(VOLUMES).await;
        let pages = self.server.list(CONFIG_MAPS).await;
        let is_its = |volume: &&Value| text(&volume["spec"]["claimRef"]["name"]) == run.claim;
        let handle = |volume: &Value| text(&volume["spec"]["csi"]["volumeHandle"]).to_owned();
        Seen {
            claim,
            volumes: volumes.iter().filter(is_its).map(handle).collect(),
            made: self.driver.volumes().into_keys().collect(),
            is_recorded: pages.iter().any(|page| page["data"].get(&run.uid).is_some()),
        }
    }

    /// The calls to the driver.
    fn calls(&self, run: &Run) -> Vec<Value> {
        let is_about = |call: &Value| {
            [&call["request"]["name"], &call["request"]["volume_id"]].into_iter().any(|id| text(id).contains(&run.uid))
        };
        self.driver.calls().into_iter().filter(is_about).collect()
    }

    fn provisioner(&self) -> Running {
        let kubeconfig = format!("--kubeconfig={}", self.test_cluster.kubeconfig().display());
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
        self.test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("a provisioner starts")
    }
}

impl Seen {
    /// Whether the claim is bound and provisioning is complete.
    fn is_bound(&self) -> bool {
        self.claim.as_ref().is_some_and(|claim| {
            let is_deleting = claim["metadata"].get("deletionTimestamp").is_some();
            claim["status"]["phase"] == "Bound" && !self.is_recorded && !is_deleting
        })
    }

    /// Whether the claim is deleted or being deleted.
    fn is_deleted(&self) -> bool {
        self.claim.as_ref().is_none_or(|claim| claim["metadata"].get("deletionTimestamp").is_some())
    }

    fn is_nothing(&self) -> bool {
        self.claim.is_none() && self.volumes.is_empty() && self.made.is_empty() && !self.is_recorded
    }
}

/// The parameters of a CreateVolume call.
fn asked(call: &Value) -> String {
    call["request"].to_string()
}
