//! `bindery up --demo`: a volume and a claim; a local volume, a claim and a class that waits for a pod, and the pod's way to its
//! node; a claim that cannot be bound, and why.

use std::sync::Arc;
use std::time::Duration;

use bindery_apiserver::host::{Config, Server};
use bindery_engine::Decided;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout_at};

use super::story::{Listener, Story};
use crate::{explain, snapshot};

const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

/// How many simulated nodes there are. The disk of the story is the last one's.
const NODE_COUNT: u32 = 2;
const MY_NODE: &str = "node-2";

/// A step takes milliseconds. Who waits longer waits in vain, and is told so.
const STEP: Duration = Duration::from_secs(60);

/// Tells the whole story, on a server of its own.
pub async fn run() -> Result<(), String> {
    let server = Server::start(Config::in_memory()).await?;
    let client = super::client(&server).await?;
    let (listener, decisions) = Listener::new();
    let hosted = super::host(&client, Arc::new(listener), NODE_COUNT, None)?;
    let mut demo = Demo { client, decisions, story: Story::new() };
    demo.tell().await?;
    drop(hosted);
    server.stop().await;
    demo.story.chapter("`bindery up` runs the same for as long as you like; kubectl works on it.")
}

struct Demo {
    client: Client,
    decisions: UnboundedReceiver<Decided>,
    story: Story,
}

impl Demo {
    async fn tell(&mut self) -> Result<(), String> {
        self.until_open(MY_NODE).await?;
        self.a_static_bind().await?;
        self.a_local_volume().await?;
        self.a_claim_in_vain().await
    }

    async fn a_static_bind(&mut self) -> Result<(), String> {
        self.story.chapter("1. Two volumes, and a claim that fits both: it gets the smaller one, in four writes")?;
        for (name, size) in [("disk-20", "20Gi"), ("disk-10", "10Gi")] {
            self.story.somebody(&format!("volume {name}: {size}, a path on the host"))?;
            self.make(VOLUMES, &volume(name, size, "", json!({"hostPath": {"path": format!("/mnt/{name}")}}))).await?;
            self.until(VOLUMES, name, "Available").await?;
        }
        self.story.somebody("claim data: 8Gi")?;
        self.make(CLAIMS, &claim("data", "8Gi", "")).await?;
        self.until(CLAIMS, "data", "Bound").await?;
        let bound = self.read(CLAIMS, "data").await?;
        self.outcome(&format!("claim data is bound to {}", bound["spec"]["volumeName"].as_str().unwrap_or_default()))
    }

    async fn a_local_volume(&mut self) -> Result<(), String> {
        self.story
            .chapter("2. A local volume: a disk of one node. Its claim waits until a pod says where it is needed")?;
        self.story
            .somebody("class local-storage: makes no volumes, binds when a pod needs one (WaitForFirstConsumer)")?;
        self.make(
            CLASSES,
            &json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local-storage"},
                "provisioner": "kubernetes.io/no-provisioner", "reclaimPolicy": "Delete",
                "volumeBindingMode": "WaitForFirstConsumer",
            }),
        )
        .await?;
        let on_my_node = json!({"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [MY_NODE]},
        ]});
        let source = json!({
            "local": {"path": "/mnt/disks/ssd1"},
            "persistentVolumeReclaimPolicy": "Delete",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [on_my_node]}},
        });
        let words =
            format!("volume example-local-pv: 5Gi, the disk /mnt/disks/ssd1 of {MY_NODE}, one of {NODE_COUNT} nodes");
        self.story.somebody(&words)?;
        self.make(VOLUMES, &volume("example-local-pv", "5Gi", "local-storage", source)).await?;
        self.until(VOLUMES, "example-local-pv", "Available").await?;
        self.story.somebody("claim example-local-claim: 5Gi of class local-storage")?;
        self.make(CLAIMS, &claim("example-local-claim", "5Gi", "local-storage")).await?;
        self.until_decided("example-local-claim", "claim.unbound.waits-for-consumer").await?;
        self.outcome("the claim waits: bound now, it could end up on another node than its pod")?;

        self.story.somebody("pod example-pod: uses example-local-claim")?;
        self.make(PODS, &pod("example-pod", "example-local-claim")).await?;
        self.until(CLAIMS, "example-local-claim", "Bound").await?;
        self.until_is(PODS, "example-pod", "/spec/nodeName", MY_NODE).await?;
        self.outcome(&format!(
            "claim example-local-claim is bound to example-local-pv, and example-pod is given {MY_NODE}"
        ))
    }

    async fn a_claim_in_vain(&mut self) -> Result<(), String> {
        self.story.chapter("3. A claim that nothing fits, and why: `bindery explain pvc/greedy`")?;
        self.story.somebody("claim greedy: 50Gi")?;
        self.make(CLAIMS, &claim("greedy", "50Gi", "")).await?;
        self.until_decided("greedy", "claim.unbound.no-volume-fits").await?;
        let snapshot = snapshot::of_cluster(self.client.clone()).await?;
        self.story.text(&explain::of_claim(&snapshot.known, "default", "greedy")?)
    }
}

// === What somebody does ===

impl Demo {
    async fn make(&self, path: &str, object: &Value) -> Result<(), String> {
        self.send(http::Method::POST, path, object).await.map(drop)
    }

    async fn read(&self, path: &str, name: &str) -> Result<Value, String> {
        self.send(http::Method::GET, &format!("{path}/{name}"), &Value::Null).await
    }

    async fn send(&self, method: http::Method, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header(http::header::CONTENT_TYPE, "application/json");
        let request = request.body(body).map_err(|error| error.to_string())?;
        self.client.request(request).await.map_err(|error| format!("{path}: {error}"))
    }

    /// Whether an object is there, and a field of it is as it is to be.
    async fn is_so(&self, path: &str, name: &str, field: &str, expected: &str) -> bool {
        let found = self.read(path, name).await;
        found.is_ok_and(|object| object.pointer(field).and_then(Value::as_str) == Some(expected))
    }

    fn outcome(&self, words: &str) -> Result<(), String> {
        self.story.outcome(words)
    }
}

// === What follows from it ===

impl Demo {
    /// Waits until a simulated node takes pods. NoObserver decides anything about that.
    async fn until_open(&self, node: &str) -> Result<(), String> {
        let until = Instant::now() + STEP;
        let is_open = |node: Value| node["spec"]["taints"].as_array().is_none_or(Vec::is_empty);
        while !self.read(NODES, node).await.is_ok_and(is_open) {
            if Instant::now() > until {
                return Err(format!("{node} does not take pods"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Shows what is decided, until an object has come to a phase.
    async fn until(&mut self, path: &str, name: &str, phase: &str) -> Result<(), String> {
        self.until_is(path, name, "/status/phase", phase).await
    }

    /// Shows what is decided, until a field of an object is as it is to be.
    async fn until_is(&mut self, path: &str, name: &str, field: &str, expected: &str) -> Result<(), String> {
        let until = Instant::now() + STEP;
        while !self.is_so(path, name, field, expected).await {
            self.next_decision(until, || format!("{name} did not become {expected}")).await?;
        }
        // What was decided on the way there, and not yet shown.
        while let Ok(decided) = self.decisions.try_recv() {
            self.show(&decided)?;
        }
        Ok(())
    }

    /// Shows what is decided, until an object rests by a rule.
    async fn until_decided(&mut self, name: &str, rule: &str) -> Result<(), String> {
        let until = Instant::now() + STEP;
        loop {
            let decided = self.next_decision(until, || format!("{name} was not decided about by {rule}")).await?;
            if decided.key.name == name && decided.rule.name == rule && decided.step.is_none() {
                return Ok(());
            }
        }
    }

    async fn next_decision(&mut self, until: Instant, in_vain: impl Fn() -> String) -> Result<Decided, String> {
        let decided = timeout_at(until, self.decisions.recv()).await.ok().flatten().ok_or_else(in_vain)?;
        self.show(&decided)?;
        Ok(decided)
    }

    /// Shows a decision, unless it only found everything in order.
    fn show(&self, decided: &Decided) -> Result<(), String> {
        let is_new = decided.step.is_some() || decided.note.is_some() || decided.rule.name.starts_with("claim.unbound");
        if is_new { self.story.decision(decided) } else { Ok(()) }
    }
}

fn volume(name: &str, size: &str, class: &str, more: Value) -> Value {
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": class},
    });
    if let (Some(spec), Value::Object(more)) = (volume["spec"].as_object_mut(), more) {
        spec.extend(more);
    }
    volume
}

fn claim(name: &str, size: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": class,
        },
    })
}

fn pod(name: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "image": "example", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    })
}
