//! Probe objects that show when the controllers have started.

use std::time::{Duration, Instant};

use bindery_model::{ClaimKey, Kind, ObjectKey, PodKey};
use bindery_test_cluster::TIMEOUT;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::server::Server;

/// A volume that the binder marks Available, and a deleted volume and claim whose finalizers the
/// protection controllers remove. For states with pods: a pod with an ephemeral volume to schedule,
/// and an orphan to collect.
pub struct Probe {
    marked: ObjectKey,
    let_go: Vec<ObjectKey>,
    pod: Option<Pod>,
}

struct Pod {
    key: ObjectKey,
    /// The claim of an ephemeral volume, whose pod is unschedulable because of it.
    ephemeral: ObjectKey,
}

impl Probe {
    pub async fn set_up(server: &Server, has_pods: bool) -> Probe {
        let marked = ObjectKey::volume("probe-marked");
        let mut let_go = vec![ObjectKey::volume("probe"), claim_key("probe")];
        for key in let_go.iter().chain([&marked]) {
            server.create(key, &object(key)).await.expect("a probe is created");
        }
        for key in &let_go {
            server.delete(key).await.expect("a probe is deleted");
        }
        let pod = if has_pods { Some(Pod::set_up(server).await) } else { None };
        if has_pods {
            let_go.push(create_orphan(server).await);
        }
        Probe { marked, let_go, pod }
    }

    pub async fn wait(&self, server: &Server) {
        let since = Instant::now();
        loop {
            let missing = self.missing(server).await;
            if missing.is_empty() {
                return;
            }
            assert!(since.elapsed() < TIMEOUT, "timed out after {TIMEOUT:?}: {missing:?} not processed");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// The probes that are not processed yet.
    async fn missing(&self, server: &Server) -> Vec<&ObjectKey> {
        let mut missing = Vec::new();
        if server.get(&self.marked).await.is_ok_and(|volume| volume["status"]["phase"] != "Available") {
            missing.push(&self.marked);
        }
        for key in &self.let_go {
            if server.get(key).await.is_ok() {
                missing.push(key);
            }
        }
        if let Some(pod) = &self.pod {
            if server.get(&pod.key).await.is_ok_and(|pod| pod["spec"]["nodeName"].is_null()) {
                missing.push(&pod.key);
            }
            if server.get(&pod.ephemeral).await.is_err() {
                missing.push(&pod.ephemeral);
            }
        }
        missing
    }
}

impl Pod {
    async fn set_up(server: &Server) -> Pod {
        let node = ObjectKey::cluster(Kind::Node, "probe");
        server.create(&node, &json!({"metadata": {"name": "probe"}})).await.expect("a node is created");
        server.patch(&node, &json!({"spec": {"taints": null}})).await.expect("the node is untainted");
        let resources = json!({"cpu": "1", "memory": "1Gi", "pods": "10"});
        let status = json!({"status": {"capacity": resources, "allocatable": resources}});
        server.patch_status(&node, &status).await.expect("the node has capacity");
        let template = json!({"spec": object(&claim_key("probe-class"))["spec"]});
        for (name, volumes) in [
            ("probe", json!([])),
            ("probe-user", json!([{"name": "e", "ephemeral": {"volumeClaimTemplate": template}}])),
        ] {
            let spec = json!({"containers": [{"name": "c", "image": "i"}], "volumes": volumes});
            let pod = json!({"metadata": {"name": name}, "spec": spec});
            server.create(&pod_key(name), &pod).await.expect("a pod is created");
        }
        Pod { key: pod_key("probe"), ephemeral: claim_key("probe-user-e") }
    }
}

/// A claim owned by a pod that does not exist.
async fn create_orphan(server: &Server) -> ObjectKey {
    let key = claim_key("probe-orphan");
    let mut orphan = object(&key);
    let uid = "00000000-0000-0000-0000-00000000dead";
    orphan["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod", "name": "missing", "uid": uid}]);
    server.create(&key, &orphan).await.expect("an orphan is created");
    key
}

/// A claim or a volume with a unique class.
pub fn object(key: &ObjectKey) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": key.name});
    let storage = json!({"storage": "1Gi"});
    if key.kind == Kind::Claim {
        spec["resources"]["requests"] = storage;
    } else {
        spec["capacity"] = storage;
        spec["hostPath"] = json!({"path": "/probe"});
    }
    json!({"metadata": {"name": key.name}, "spec": spec})
}

fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

fn pod_key(name: &str) -> ObjectKey {
    PodKey { namespace: "default".into(), name: name.into() }.into()
}
