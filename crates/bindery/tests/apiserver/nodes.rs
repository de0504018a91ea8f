//! `bindery up --nodes` with kubectl: simulated nodes and their pods.

use std::process::Command;

use bindery_test_cluster::KUBECTL_TIMEOUT;

use crate::server::{Server, folder};

const VOLUMES: &str = r"
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk-a}, spec: {capacity: {storage: 1Gi},
 accessModes: [ReadWriteOnce], storageClassName: '', hostPath: {path: /tmp/disk-a}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk-b}, spec: {capacity: {storage: 1Gi},
 accessModes: [ReadWriteOnce], storageClassName: scratch, hostPath: {path: /tmp/disk-b}}}
";

const CLAIM: &str = r"
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce],
 storageClassName: '', resources: {requests: {storage: 1Gi}}}}
";

/// A pod with a claim, an ephemeral volume and an init container.
const POD: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  nodeName: node-2
  terminationGracePeriodSeconds: 3600
  initContainers: [{name: prepare, image: none}]
  containers: [{name: one, image: none}, {name: two, image: none}]
  volumes:
  - name: data
    persistentVolumeClaim: {claimName: data}
  - name: scratch
    ephemeral:
      volumeClaimTemplate:
        spec: {accessModes: [ReadWriteOnce], storageClassName: scratch, resources: {requests: {storage: 1Gi}}}
";

const PLAIN: &str = r"
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec: {nodeName: NODE, containers: [{name: main, image: none}]}
";

fn plain(name: &str, node: &str) -> String {
    PLAIN.replace("plain", name).replace("NODE", node)
}

/// Starts `bindery up` with three nodes, and waits until they are Ready.
fn up(more: &[&str]) -> Option<Server> {
    let server = Server::up_for_kubectl(&[&["--nodes", "3"], more].concat())?;
    for node in ["node-1", "node-2", "node-3"] {
        server.ok(&["wait", "node", node, "--for=create", KUBECTL_TIMEOUT]);
        // A node accepts pods once its lease exists.
        server.ok(&["wait", "lease", node, "-n", "kube-node-lease", "--for=create", KUBECTL_TIMEOUT]);
    }
    Some(server)
}

fn wait(server: &Server, what: &str, how: &str) {
    server.ok(&["wait", what, &format!("--for={how}"), KUBECTL_TIMEOUT]);
}

fn read(server: &Server, what: &str, path: &str) -> String {
    server.ok(&["get", what, "-o", &format!("jsonpath={{{path}}}")])
}

#[test]
fn simulated_nodes_look_real_and_are_labelled_as_simulated() {
    let Some(server) = up(&[]) else { return };
    let table = server.ok(&["get", "nodes", "-o", "wide", "--no-headers"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let shown: Vec<[&str; 4]> = rows.iter().map(|row| [row[0], row[1], row[4], row[5]]).collect();
    let version = concat!("v1.36.4-fake.", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        shown,
        [
            ["node-1", "Ready", version, "172.16.0.1"],
            ["node-2", "Ready", version, "172.16.0.2"],
            ["node-3", "Ready", version, "172.16.0.3"],
        ]
    );
    let zones = ["-L", "topology.kubernetes.io/zone", "-l", "bindery/simulated=true,kubernetes.io/os=linux"];
    let zones = server.ok(&[&["get", "nodes", "--no-headers"], &zones[..]].concat());
    assert_eq!(
        zones.lines().filter_map(|line| line.split_whitespace().last()).collect::<Vec<_>>(),
        ["zone-1", "zone-2", "zone-3"]
    );
    assert_eq!(read(&server, "node/node-3", ".spec.taints"), "");
    assert_eq!(read(&server, "node/node-3", ".status.allocatable.cpu"), "8");
    let holder =
        server.ok(&["get", "lease", "node-3", "-n", "kube-node-lease", "-o", "jsonpath={.spec.holderIdentity}"]);
    assert_eq!(holder, "node-3");
}

#[test]
fn a_pod_runs_once_its_claims_are_bound_until_it_is_deleted() {
    let Some(server) = up(&[]) else { return };
    server.create(POD);
    wait(&server, "pvc/app-scratch", "create");
    server.create(CLAIM);
    // Another pod is Running, but this one is not, because its claims are unbound.
    server.create(&plain("other", "node-2"));
    wait(&server, "pod/other", "condition=Ready");
    assert_eq!(read(&server, "pod/app", ".status.phase"), "Pending");
    server.create(VOLUMES);
    wait(&server, "pod/app", "condition=Ready");
    for claim in ["pvc/data", "pvc/app-scratch"] {
        assert_eq!(read(&server, claim, ".status.phase"), "Bound", "{claim}");
    }
    let table = server.ok(&["get", "pod", "app", "-o", "wide", "--no-headers"]);
    let row: Vec<&str> = table.split_whitespace().collect();
    assert_eq!(row[..4], ["app", "2/2", "Running", "0"], "{table}");
    assert_eq!(row[6], "node-2", "{table}");
    assert!(row[5].starts_with("10.128.1."), "{table}");
    assert_ne!(row[5], read(&server, "pod/other", ".status.podIP"), "pods have distinct addresses");
    assert_eq!(read(&server, "pod/app", ".status.hostIP"), "172.16.0.2");
    let described = server.ok(&["describe", "pod", "app"]);
    assert!(described.contains("Completed") && described.contains("Running"), "{described}");

    // Its grace period is an hour, which the simulated kubelet does not wait for.
    server.ok(&["delete", "pod", "app", KUBECTL_TIMEOUT]);
    server.kubectl(&["get", "pod", "app"]).expect_err("it is deleted");
}

#[test]
fn pods_on_other_nodes_are_left_alone() {
    let Some(server) = up(&[]) else { return };
    server.create("{apiVersion: v1, kind: Node, metadata: {name: real}}");
    server.create("{apiVersion: v1, kind: Node, metadata: {name: mine, labels: {bindery/simulated: 'true'}}}");
    for (pod, node) in [("a", "real"), ("b", "nowhere"), ("c", "mine")] {
        server.create(&plain(pod, node));
    }
    server.ok(&["delete", "pod", "a", "--wait=false"]);
    // A node that a user labels is simulated.
    wait(&server, "pod/c", "condition=Ready");
    wait(&server, "node/mine", "condition=Ready");
    server.ok(&["delete", "pod", "c", KUBECTL_TIMEOUT]);
    assert_eq!(read(&server, "pod/a", ".status.phase"), "Pending");
    assert_eq!(read(&server, "pod/b", ".status.phase"), "Pending");
    assert_eq!(read(&server, "node/real", ".status.conditions"), "");
}

#[test]
fn nodes_and_pods_survive_a_restart() {
    let folder = folder();
    let data = folder.join("data").to_string_lossy().into_owned();
    let Some(mut server) = up(&["--data-dir", &data]) else {
        return std::fs::remove_dir_all(folder).expect("it can be removed");
    };
    server.ok(&["label", "node", "node-1", "kept=yes"]);
    server.create(&plain("before", "node-1"));
    wait(&server, "pod/before", "condition=Ready");
    let state = |server: &Server| {
        (read(server, "pod/before", ".metadata.resourceVersion"), read(server, "node/node-1", ".metadata.uid"))
    };
    let was = state(&server);
    server.process.kill().expect("it can be killed");
    server.process.wait().expect("it ends");
    drop(server);

    let mut server = up(&["--data-dir", &data]).expect("it started before");
    server.create(&plain("after", "node-1"));
    wait(&server, "pod/after", "condition=Ready");
    assert_eq!(state(&server), was, "the pod was not written and the node is the same");
    assert_eq!(read(&server, "node/node-1", ".metadata.labels.kept"), "yes");
    assert_ne!(read(&server, "pod/after", ".status.podIP"), read(&server, "pod/before", ".status.podIP"));
    server.ok(&["delete", "pod", "before", KUBECTL_TIMEOUT]);
    server.stop();
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn too_many_nodes_are_rejected() {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery")).args(["up", "--nodes", "5001"]).output();
    let message = String::from_utf8_lossy(&output.expect("bindery runs").stderr).into_owned();
    assert!(message.contains("5001 is not in 0..=5000"), "{message}");
}
