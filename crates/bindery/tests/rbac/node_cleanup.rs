//! Who sees to what was on nodes that are gone.

use bindery_test_cluster::{Running, TestCluster, eventually};

use crate::audit::{Audited, field, json, make, start_controller, times_told};
use crate::denied::Denied;

const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: gone}}";

/// A volume on the node, for a claim if one is named.
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

/// Starts it. Claims go when their node has been gone for so long.
fn start(lab: &TestCluster, kubeconfig: &str, delay: &str) -> Running {
    let delay = format!("--pvc-deletion-delay={delay}");
    let flags =
        ["--storageclass-names=disks", "--stale-pv-discovery-interval=50ms", "--listen-address=127.0.0.1:0", "-v=6"];
    let args = [&["provisioner", "node-cleanup", kubeconfig, &delay], &flags[..]].concat();
    lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

/// A node that comes and goes: each time its claim is told so, by one event that is counted.
fn come_and_go(lab: &TestCluster) {
    make(lab, &(NODE.to_owned() + "\n---\n" + &volume("had", Some("data")) + &volume("free", None) + &claim("data")));
    eventually("the claim is bound", || field(lab, "pvc/data", ".status.phase") == "Bound");
    eventually("the other volume is free", || field(lab, "pv/free", ".status.phase") == "Available");
    eventually("that the node went again is counted", || {
        // Whether it was away or there for long enough to be seen, nobody knows: it goes on until it was.
        let _ = lab.kubectl(["delete", "node", "gone"]);
        eventually("the free volume goes", || lab.kubectl(["get", "pv/free"]).is_err());
        let is_counted = times_told(lab, "ReferencedNodeDeleted", "volume had") > 1;
        make(lab, NODE);
        make(lab, &volume("free", None));
        eventually("there is one again", || field(lab, "pv/free", ".status.phase") == "Available");
        is_counted
    });
}

#[test]
fn the_role_is_enough_and_no_more() {
    let mut controller = None;
    let audited = Audited::start_by("node-cleanup", None, |lab, kubeconfig| {
        controller = Some(start_controller(lab));
        let patient = start(lab, kubeconfig, "1h");
        come_and_go(lab);
        drop(patient);
        start(lab, kubeconfig, "0s")
    });
    let Some(audited) = audited else { return };
    let lab = &audited.lab;
    lab.kubectl(["delete", "node", "gone"]).expect("the node goes");
    eventually("the claim goes", || lab.kubectl(["get", "pvc/data"]).is_err());
    eventually("the free volume goes", || lab.kubectl(["get", "pv/free"]).is_err());
    drop(controller);
    let role = json(lab, &["get", "clusterrole", "bindery-node-cleanup"]);
    audited.end(&[role], &[]);
}

#[test]
fn nothing_else_is_allowed() {
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
    denied.is_refused(&["get pvc", "get secrets -n=kube-system", "patch pvc precious -p={}", "delete node none"]);
}
