//! `bindery provisioner node-cleanup` from the outside, on the embedded API server and on a real one under the very role that it is
//! deployed with: what was on a node that is gone goes, and nothing else.

mod servers;

use bindery_test_cluster::{Running, TestCluster, wait_until};
use serde_json::{Value, json};
use servers::ApiServer;

struct World {
    lab: TestCluster,
    cleanup: Running,
    /// Lets go what nobody uses.
    _protection: Running,
}

impl World {
    fn start(server: ApiServer, delay: &str) -> Option<World> {
        let lab = server.start()?;
        let nodes =
            ["gone", "here"].map(|name| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}));
        let claims = ["a", "b"].map(claim);
        create(&lab, &nodes);
        create(&lab, &claims);
        let volumes = [
            volume(&lab, "bound-gone", "gone", "fast", Some("a"), "Bound"),
            volume(&lab, "bound-here", "here", "fast", Some("b"), "Bound"),
            volume(&lab, "free-gone", "gone", "fast", None, "Available"),
            volume(&lab, "free-here", "here", "fast", None, "Available"),
            volume(&lab, "other-class", "gone", "slow", None, "Available"),
        ];
        for (claim, volume) in [("a", "bound-gone"), ("b", "bound-here")] {
            let patch = json!({"spec": {"volumeName": volume}}).to_string();
            lab.kubectl(["patch", "pvc", claim, "-p", &patch]).expect("bound");
        }
        for (volume, phase) in volumes {
            create(&lab, std::slice::from_ref(&volume));
            let (name, patch) = (text(&volume, "/metadata/name"), json!({"status": {"phase": phase}}).to_string());
            lab.kubectl(["patch", "pv", &name, "--subresource=status", "-p", &patch]).expect("a phase");
        }
        let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(&lab, "node-cleanup").display());
        let delay = format!("--pvc-deletion-delay={delay}");
        let fast = ["--stale-pv-discovery-interval=50ms", "--listen-address=127.0.0.1:0", "--storageclass-names=fast"];
        let args = [&["provisioner", "node-cleanup", &kubeconfig, &delay], &fast[..]].concat();
        let cleanup = lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("it starts");
        let kubeconfig = format!("--kubeconfig={}", lab.kubeconfig().display());
        let only = "--controllers=pvc-protection,pv-protection";
        let args = ["controller", &kubeconfig, only, "--leader-elect=false", "--listen=127.0.0.1:0"];
        let protection = lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("the controller starts");
        Some(World { lab, cleanup, _protection: protection })
    }

    fn names(&self, kind: &str) -> Vec<String> {
        let names = self.lab.kubectl(["get", kind, "-o", "jsonpath={.items[*].metadata.name}"]).expect("names");
        names.split_whitespace().map(str::to_owned).collect()
    }

    fn eventually(&self, what: &str, holds: impl FnMut() -> bool) {
        assert!(wait_until(holds), "in vain: {what}\n{}", self.cleanup.log());
    }
}

fn create(lab: &TestCluster, objects: &[Value]) {
    let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
    lab.kubectl_with_input(&documents.join("\n---\n"), ["create", "-f", "-"]).expect("objects are made");
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

/// A volume, and the phase that it is to have.
fn volume(
    lab: &TestCluster,
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
        let uid = lab.kubectl(["get", "pvc", claim, "-o", "jsonpath={.metadata.uid}"]).expect("a UID");
        volume["spec"]["claimRef"] = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": claim, "uid": uid.trim(),
        });
    }
    (volume, phase)
}

#[test]
fn what_was_on_a_node_that_is_gone_goes() {
    for server in [ApiServer::Embedded, ApiServer::Real] {
        let Some(world) = World::start(server, "0s") else { continue };
        world.lab.kubectl(["delete", "node", "gone"]).expect("the node goes");
        // There is no binder here, so the volume of the deleted claim is left as it was.
        world.eventually("what was there is gone", || {
            world.names("pvc") == ["b"] && world.names("pv") == ["bound-gone", "bound-here", "free-here", "other-class"]
        });
        let events = || world.lab.kubectl(["get", "events", "-o", "jsonpath={.items[*].reason}"]).expect("events");
        world.eventually("it was said before", || events().contains("ReferencedNodeDeleted"));
    }
}

#[test]
fn a_node_that_comes_back_in_time_keeps_its_claims() {
    let Some(world) = World::start(ApiServer::Embedded, "1h") else { return };
    world.lab.kubectl(["delete", "node", "gone"]).expect("the node goes");
    // That the free volume goes shows that it was seen that the node is gone.
    world.eventually("the free volume is gone", || !world.names("pv").contains(&"free-gone".to_owned()));
    assert_eq!(world.names("pvc"), ["a", "b"]);
    create(&world.lab, &[json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gone"}})]);
    assert_eq!(world.names("pvc"), ["a", "b"]);
}
