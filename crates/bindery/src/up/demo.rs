//! `bindery up --demo`: a claim bound to an existing volume, a local volume that waits for its pod,
//! and a claim that cannot be bound, with the explanation.

use std::sync::Arc;
use std::time::Duration;

use bindery_apiserver::host::{Config, Server};
use bindery_binder::rules::{CLAIM_NO_VOLUME_FITS, CLAIM_WAITS_FOR_CONSUMER};
use bindery_engine::Decided;
use bindery_rules_api::Rule;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout_at};

use super::demo_output::{DecisionChannel, Output};
use crate::{explain, snapshot};

const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

/// How many nodes are simulated. The local volume is on the last one.
const NODE_COUNT: u32 = 2;
const LOCAL_NODE: &str = "node-2";

/// A step takes milliseconds. After this long, the demo fails.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the demo on its own API server.
pub async fn run() -> Result<(), String> {
    let server = Server::start(Config::in_memory()).await?;
    let client = super::client(&server).await?;
    let (channel, decisions) = DecisionChannel::new();
    let host = super::start_controllers(&client, Arc::new(channel), NODE_COUNT, None)?;
    let mut demo = Demo { client, decisions, output: Output::new() };
    demo.run().await?;
    drop(host);
    server.stop().await;
    demo.output.heading("`bindery up` keeps running, for use with kubectl.")
}

struct Demo {
    client: Client,
    decisions: UnboundedReceiver<Decided>,
    output: Output,
}

// === The scenes ===

impl Demo {
    async fn run(&mut self) -> Result<(), String> {
        self.wait_for_node(LOCAL_NODE).await?;
        self.bind_to_existing_volume().await?;
        self.bind_local_volume().await?;
        self.explain_pending_claim().await
    }

    async fn bind_to_existing_volume(&mut self) -> Result<(), String> {
        self.output.heading("1. Two volumes fit a claim. It is bound to the smaller one, in four writes")?;
        for (name, size) in [("disk-20", "20Gi"), ("disk-10", "10Gi")] {
            self.output.action(&format!("create volume {name}: {size}, hostPath"))?;
            let source = json!({"hostPath": {"path": format!("/mnt/{name}")}});
            self.create(VOLUMES, &volume(name, size, "", source)).await?;
            self.wait_for_phase(VOLUMES, name, "Available").await?;
        }
        self.output.action("create claim data: 8Gi")?;
        self.create(CLAIMS, &claim("data", "8Gi", "")).await?;
        self.wait_for_phase(CLAIMS, "data", "Bound").await?;
        let bound = self.get(CLAIMS, "data").await?;
        let volume = bound["spec"]["volumeName"].as_str().unwrap_or_default();
        self.output.result(&format!("claim data is bound to {volume}"))
    }

    async fn bind_local_volume(&mut self) -> Result<(), String> {
        self.output.heading("2. A local volume is on one node. Its claim waits until a pod uses it")?;
        self.output.action("create class local-storage: no provisioner, WaitForFirstConsumer")?;
        self.create(
            CLASSES,
            &json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local-storage"},
                "provisioner": "kubernetes.io/no-provisioner", "reclaimPolicy": "Delete",
                "volumeBindingMode": "WaitForFirstConsumer",
            }),
        )
        .await?;
        let on_local_node = json!({"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": [LOCAL_NODE]},
        ]});
        let source = json!({
            "local": {"path": "/mnt/disks/ssd1"},
            "persistentVolumeReclaimPolicy": "Delete",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [on_local_node]}},
        });
        self.output.action(&format!(
            "create volume example-local-pv: 5Gi, disk /mnt/disks/ssd1 on {LOCAL_NODE}, one of {NODE_COUNT} nodes"
        ))?;
        self.create(VOLUMES, &volume("example-local-pv", "5Gi", "local-storage", source)).await?;
        self.wait_for_phase(VOLUMES, "example-local-pv", "Available").await?;
        self.output.action("create claim example-local-claim: 5Gi, class local-storage")?;
        self.create(CLAIMS, &claim("example-local-claim", "5Gi", "local-storage")).await?;
        self.wait_for_rule("example-local-claim", &CLAIM_WAITS_FOR_CONSUMER).await?;
        self.output.result("the claim waits: if it were bound now, its pod might not fit on the volume's node")?;

        self.output.action("create pod example-pod: uses example-local-claim")?;
        self.create(PODS, &pod("example-pod", "example-local-claim")).await?;
        self.wait_for_phase(CLAIMS, "example-local-claim", "Bound").await?;
        self.wait_for_field(PODS, "example-pod", "/spec/nodeName", LOCAL_NODE).await?;
        self.output.result(&format!(
            "claim example-local-claim is bound to example-local-pv, and example-pod is assigned to {LOCAL_NODE}"
        ))
    }

    async fn explain_pending_claim(&mut self) -> Result<(), String> {
        self.output.heading("3. No volume fits a claim. `bindery explain pvc/greedy` says why")?;
        self.output.action("create claim greedy: 50Gi")?;
        self.create(CLAIMS, &claim("greedy", "50Gi", "")).await?;
        self.wait_for_rule("greedy", &CLAIM_NO_VOLUME_FITS).await?;
        let snapshot = snapshot::of_cluster(self.client.clone()).await?;
        self.output.text(&explain::claim_as_text(&snapshot.known, "default", "greedy")?)
    }
}

// === Requests ===

impl Demo {
    async fn create(&self, path: &str, object: &Value) -> Result<(), String> {
        self.send(http::Method::POST, path, object).await.map(drop)
    }

    async fn get(&self, path: &str, name: &str) -> Result<Value, String> {
        self.send(http::Method::GET, &format!("{path}/{name}"), &Value::Null).await
    }

    async fn send(&self, method: http::Method, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder().method(&method).uri(path);
        let request = request.header(http::header::CONTENT_TYPE, "application/json");
        let request = request.body(body).map_err(|error| error.to_string())?;
        self.client.request(request).await.map_err(|error| format!("{method} {path} failed: {error}"))
    }

    async fn field_is(&self, path: &str, name: &str, field: &str, expected: &str) -> bool {
        let object = self.get(path, name).await;
        object.is_ok_and(|object| object.pointer(field).and_then(Value::as_str) == Some(expected))
    }
}

// === Waiting, while decisions are printed ===

impl Demo {
    /// Waits until a simulated node accepts pods. No decision is made about nodes.
    async fn wait_for_node(&self, node: &str) -> Result<(), String> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        let accepts_pods = |node: Value| node["spec"]["taints"].as_array().is_none_or(Vec::is_empty);
        while !self.get(NODES, node).await.is_ok_and(accepts_pods) {
            if Instant::now() > deadline {
                return Err(format!("node {node} still has taints after {STEP_TIMEOUT:?}"));
            }
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    async fn wait_for_phase(&mut self, path: &str, name: &str, phase: &str) -> Result<(), String> {
        self.wait_for_field(path, name, "/status/phase", phase).await
    }

    async fn wait_for_field(&mut self, path: &str, name: &str, field: &str, expected: &str) -> Result<(), String> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        while !self.field_is(path, name, field, expected).await {
            self.next_decision(deadline, || format!("{name} did not become {expected}")).await?;
        }
        // Decisions that led there and are not printed yet.
        while let Ok(decided) = self.decisions.try_recv() {
            self.print(&decided)?;
        }
        Ok(())
    }

    /// Waits until a rule that changes nothing decides about an object.
    async fn wait_for_rule(&mut self, name: &str, rule: &Rule) -> Result<(), String> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        loop {
            let failure = || format!("{name}: rule {rule} did not apply");
            let decided = self.next_decision(deadline, failure).await?;
            if decided.key.name == name && decided.rule == rule && decided.step.is_none() {
                return Ok(());
            }
        }
    }

    async fn next_decision(&mut self, deadline: Instant, failure: impl Fn() -> String) -> Result<Decided, String> {
        let decided = timeout_at(deadline, self.decisions.recv()).await.ok().flatten();
        let decided = decided.ok_or_else(|| format!("{} within {STEP_TIMEOUT:?}", failure()))?;
        self.print(&decided)?;
        Ok(decided)
    }

    /// Prints a decision, unless it changes nothing.
    fn print(&self, decided: &Decided) -> Result<(), String> {
        let matters =
            decided.step.is_some() || decided.note.is_some() || decided.rule.name.starts_with("claim.unbound");
        if matters { self.output.decision(decided) } else { Ok(()) }
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
