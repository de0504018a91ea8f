//! Cleanup of volumes on deleted nodes.

use bindery_test_cluster::{Running, TestCluster, eventually};

use crate::audit::{Audited, event_count, field, json, make, start_controller};
use crate::denied::Denied;

const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: gone}}";

/// A volume on the node, reserved for a claim if one is given.
fn volume(name: &str, claim: Option<&str>) -> String {
    let claim = claim.map(|claim| format!("claimRef: {{namespace: default, name: {claim}}}, ")).unwrap_or_default();
    format!(
        "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: {name}}}, spec: {{capacity: {{storage: 1Gi}}, \
         accessModes: [ReadWriteOnce], storageClassName: disks, {claim}local: {{path: /mnt/{name}}}, nodeAffinity: {{required: \
         {{nodeSelectorTerms: [{{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [gone]}}]}}]}}}}}}}}\n---\n"
    )
}

fn claim(name: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}}}, spec: {{accessModes: [ReadWriteOnce], \
         resources: {{requests: {{storage: 1Gi}}}}, storageClassName: disks}}}}\n---\n"
    )
}

/// Starts it. Claims are deleted when their node has been missing for the delay.
fn start(test_cluster: &TestCluster, kubeconfig: &str, delay: &str) -> Running {
    let delay = format!("--pvc-deletion-delay={delay}");
    let flags =
        ["--storageclass-names=disks", "--stale-pv-discovery-interval=50ms", "--listen-address=127.0.0.1:0", "-v=6"];
    let args = [&["provisioner", "node-cleanup", kubeconfig, &delay], &flags[..]].concat();
    test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

/// A node that is repeatedly deleted and created: one event with a count on its claim.
fn repeat_events(test_cluster: &TestCluster) {
    make(
        test_cluster,
        &(NODE.to_owned() + "\n---\n" + &volume("had", Some("data")) + &volume("free", None) + &claim("data")),
    );
    eventually("the claim is bound", || field(test_cluster, "pvc/data", ".status.phase") == "Bound");
    eventually("the other volume is Available", || field(test_cluster, "pv/free", ".status.phase") == "Available");
    eventually("the second deletion is counted", || {
        // A short absence may go unnoticed, so this repeats until it is counted.
        let _ = test_cluster.kubectl(["delete", "node", "gone"]);
        eventually("the available volume is deleted", || test_cluster.kubectl(["get", "pv/free"]).is_err());
        let is_counted = event_count(test_cluster, "ReferencedNodeDeleted", "volume had") > 1;
        make(test_cluster, NODE);
        make(test_cluster, &volume("free", None));
        eventually("it exists again", || field(test_cluster, "pv/free", ".status.phase") == "Available");
        is_counted
    });
}

#[test]
fn the_role_grants_exactly_what_is_used() {
    let mut controller = None;
    let audited = Audited::start_by("node-cleanup", None, |test_cluster, kubeconfig| {
        controller = Some(start_controller(test_cluster));
        let patient = start(test_cluster, kubeconfig, "1h");
        repeat_events(test_cluster);
        drop(patient);
        start(test_cluster, kubeconfig, "0s")
    });
    let Some(audited) = audited else { return };
    let test_cluster = &audited.test_cluster;
    test_cluster.kubectl(["delete", "node", "gone"]).expect("the node is deleted");
    eventually("the claim is deleted", || test_cluster.kubectl(["get", "pvc/data"]).is_err());
    eventually("the available volume is deleted", || test_cluster.kubectl(["get", "pv/free"]).is_err());
    drop(controller);
    let role = json(test_cluster, &["get", "clusterrole", "bindery-node-cleanup"]);
    audited.end(&[role], &[]);
}

#[test]
fn other_requests_are_forbidden() {
    let Some(denied) = Denied::start("node-cleanup", &claim("precious")) else { return };
    denied.may(&["delete pvc --all-namespaces", "delete pv", "list nodes", "list pv"]);
    denied.may_not(&[
        "create pv",
        "update pv",
        "patch pv",
        "watch pv",
        "patch pv --subresource=status",
        "list pvc",
        "create pvc",
        "patch pvc",
        "delete nodes",
        "patch nodes",
        "update nodes",
        "watch nodes",
        "get storageclasses",
        "get pods",
        "delete pods",
        "get secrets -n=kube-system",
        "list events",
        "create leases -n=kube-system",
        "create clusterrolebindings",
        "impersonate users",
        "create serviceaccounts --subresource=token -n=kube-system",
    ]);
    denied.is_rejected(&["get pvc", "get secrets -n=kube-system", "patch pvc precious -p={}", "delete node none"]);
}
