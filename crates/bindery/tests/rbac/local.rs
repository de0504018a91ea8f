//! The provisioner of a node's disks. Needs root, for a disk of its own; says so where that is missing.

use bindery_test_cluster::{Disks, KUBECTL_TIMEOUT, Running, TestCluster, eventually};

use crate::audit::{Audited, field, json, make, start_controller, times_told};
use crate::denied::Denied;

const OBJECTS: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: disks}, provisioner: kubernetes.io/no-provisioner}
";

const CLAIM: &str = "
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: precious}, spec: {accessModes: [ReadWriteOnce],
 resources: {requests: {storage: 1Mi}}, storageClassName: disks}}
";

/// Starts it, for the disks in a folder.
fn start(lab: &TestCluster, kubeconfig: &str, disks: &Disks) -> Running {
    make(lab, OBJECTS);
    let config = disks.folder().join("config");
    std::fs::create_dir_all(&config).expect("a folder");
    let class = format!("disks: {{hostDir: {0}, mountDir: {0}}}", disks.folder().join("mounts").display());
    std::fs::write(config.join("storageClassMap"), class).expect("a file");
    let config = format!("--config={}", config.display());
    let flags = ["--node-name=n1", "--discovery-period=50ms", "--listen-address=127.0.0.1:0", "-vv"];
    let args = [&["provisioner", "local", kubeconfig, &config], &flags[..]].concat();
    lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

#[test]
fn the_role_is_enough_and_no_more() {
    let Some(mut disks) = Disks::for_test() else { return };
    let mount = disks.folder().join("mounts/disk");
    disks.mount("ext4", 64, &mount);
    let audited = Audited::start_by("local", None, |lab, kubeconfig| start(lab, kubeconfig, &disks));
    let Some(audited) = audited else { return };
    let lab = &audited.lab;
    let controller = start_controller(lab);
    let uid = || field(lab, "pv", ".items[*].metadata.uid");
    eventually("the disk is offered", || !uid().is_empty());
    let first = uid();
    make(lab, CLAIM);
    eventually("the claim has the disk", || field(lab, "pvc/precious", ".status.phase") == "Bound");
    lab.kubectl(["delete", KUBECTL_TIMEOUT, "pvc/precious"]).expect("the claim goes");
    eventually("the disk is cleaned, and offered again", || !uid().is_empty() && !uid().contains(&first));
    // And once more, while it is not there: then it cannot be cleaned, now for this reason and now for that.
    make(lab, CLAIM);
    eventually("the claim has the disk", || field(lab, "pvc/precious", ".status.phase") == "Bound");
    disks.unmount(&mount);
    lab.kubectl(["delete", KUBECTL_TIMEOUT, "pvc/precious"]).expect("the claim goes");
    let told = |words: &str| times_told(lab, "VolumeFailedDelete", words);
    eventually("that nothing is mounted is told", || told("nothing is mounted there") == 1);
    std::fs::remove_dir(&mount).expect("a directory");
    eventually("that nothing is there is told", || told("No such file") == 1);
    std::fs::create_dir(&mount).expect("a directory");
    eventually("that nothing is mounted is counted", || told("nothing is mounted there") == 2);
    drop(controller);
    let role = json(lab, &["get", "clusterrole", "bindery-local"]);
    audited.end(&[role], &[]);
}

#[test]
fn nothing_else_is_allowed() {
    let Some(denied) = Denied::start("local", CLAIM) else { return };
    denied.may(&["create pv", "delete pv", "get pvc --all-namespaces", "get nodes", "get storageclasses"]);
    denied.may_not(&[
        "update pv",
        "patch pv",
        "patch pv --subresource=status",
        "list pvc",
        "watch pvc",
        "delete pvc",
        "create pvc",
        "patch pvc",
        "list nodes",
        "patch nodes",
        "update nodes",
        "list storageclasses",
        "patch storageclasses",
        "get pods",
        "list pods",
        "create pods -n=kube-system",
        "get secrets -n=kube-system",
        "list configmaps -n=kube-system",
        "patch configmaps/bindery-local -n=kube-system",
        "list events",
        "create leases -n=kube-system",
        "create clusterrolebindings",
        "impersonate users",
        "create serviceaccounts --subresource=token -n=kube-system",
    ]);
    denied.is_refused(&["delete pvc precious", "get secrets -n=kube-system", "get nodes"]);
}
