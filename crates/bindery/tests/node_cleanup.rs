//! `bindery provisioner node-cleanup` as a process, on the embedded API server and on a real one
//! under the role it is deployed with: it deletes volumes and claims of deleted nodes, and nothing
//! else.

mod servers;

use bindery_test_cluster::{Running, TestCluster, wait_until};
use serde_json::{Value, json};
use servers::ApiServer;

struct World {
    test_cluster: TestCluster,
    cleanup: Running,
    /// Removes the protection finalizers of unused objects.
    _protection: Running,
}

impl World {
    fn start(server: ApiServer, delay: &str) -> Option<World> {
        let test_cluster = server.start()?;
        let nodes =
            ["gone", "here"].map(|name| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}));
        let claims = ["a", "b"].map(claim);
        create(&test_cluster, &nodes);
        create(&test_cluster, &claims);
        let volumes = [
            volume(&test_cluster, "bound-gone", "gone", "fast", Some("a"), "Bound"),
            volume(&test_cluster, "bound-here", "here", "fast", Some("b"), "Bound"),
            volume(&test_cluster, "free-gone", "gone", "fast", None, "Available"),
            volume(&test_cluster, "free-here", "here", "fast", None, "Available"),
            volume(&test_cluster, "other-class", "gone", "slow", None, "Available"),
        ];
        for (claim, volume) in [("a", "bound-gone"), ("b", "bound-here")] {
            let patch = json!({"spec": {"volumeName": volume}}).to_string();
            test_cluster.kubectl(["patch", "pvc", claim, "-p", &patch]).expect("bound");
        }
        for (volume, phase) in volumes {
            create(&test_cluster, std::slice::from_ref(&volume));
            let (name, patch) = (text(&volume, "/metadata/name"), json!({"status": {"phase": phase}}).to_string());
            test_cluster.kubectl(["patch", "pv", &name, "--subresource=status", "-p", &patch]).expect("a phase");
        }
        let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(&test_cluster, "node-cleanup").display());
        let delay = format!("--pvc-deletion-delay={delay}");
        let fast = ["--stale-pv-discovery-interval=50ms", "--listen-address=127.0.0.1:0", "--storageclass-names=fast"];
        let args = [&["provisioner", "node-cleanup", &kubeconfig, &delay], &fast[..]].concat();
        let cleanup = test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("it starts");
        let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
        let only = "--controllers=pvc-protection,pv-protection";
        let args = ["controller", &kubeconfig, only, "--leader-elect=false", "--listen=127.0.0.1:0"];
        let protection =
            test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the controller starts");
        Some(World { test_cluster, cleanup, _protection: protection })
    }

    fn names(&self, kind: &str) -> Vec<String> {
        let names =
            self.test_cluster.kubectl(["get", kind, "-o", "jsonpath={.items[*].metadata.name}"]).expect("names");
        names.split_whitespace().map(str::to_owned).collect()
    }

    fn eventually(&self, what: &str, holds: impl FnMut() -> bool) {
        assert!(wait_until(holds), "timed out: {what}\n{}", self.cleanup.log());
    }
}

fn create(test_cluster: &TestCluster, objects: &[Value]) {
    let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
    test_cluster.kubectl_with_input(&documents.join("\n---\n"), ["create", "-f", "-"]).expect("objects are created");
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "fast"},
    })
}

/// A volume and its phase.
fn volume(
    test_cluster: &TestCluster,
    name: &str,
    host: &str,
    class: &str,
    claim: Option<&str>,
    phase: &'static str,
) -> (Value, &'static str) {
    let term = json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}]});
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Delete", "local": {"path": "/mnt/none"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    });
    if let Some(claim) = claim {
        let uid = test_cluster.kubectl(["get", "pvc", claim, "-o", "jsonpath={.metadata.uid}"]).expect("a UID");
        volume["spec"]["claimRef"] = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": claim, "uid": uid.trim(),
        });
    }
    (volume, phase)
}

#[test]
fn volumes_and_claims_of_a_deleted_node_are_deleted() {
    for server in [ApiServer::Embedded, ApiServer::Real] {
        let Some(world) = World::start(server, "0s") else { continue };
        world.test_cluster.kubectl(["delete", "node", "gone"]).expect("the node is deleted");
        // Without a binder, the volume of the deleted claim is unchanged.
        world.eventually("its volumes and claims are deleted", || {
            world.names("pvc") == ["b"] && world.names("pv") == ["bound-gone", "bound-here", "free-here", "other-class"]
        });
        let events =
            || world.test_cluster.kubectl(["get", "events", "-o", "jsonpath={.items[*].reason}"]).expect("events");
        world.eventually("an event was published", || events().contains("ReferencedNodeDeleted"));
    }
}

#[test]
fn a_node_recreated_within_the_delay_keeps_its_claims() {
    let Some(world) = World::start(ApiServer::Embedded, "1h") else { return };
    world.test_cluster.kubectl(["delete", "node", "gone"]).expect("the node is deleted");
    // The deletion of the available volume shows that the node's deletion was noticed.
    world.eventually("the available volume is deleted", || !world.names("pv").contains(&"free-gone".to_owned()));
    assert_eq!(world.names("pvc"), ["a", "b"]);
    create(&world.test_cluster, &[json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gone"}})]);
    assert_eq!(world.names("pvc"), ["a", "b"]);
}
