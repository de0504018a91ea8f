//! The local provisioner. Needs root to create a disk; skipped without.

use bindery_test_cluster::{Disks, KUBECTL_TIMEOUT, Running, TestCluster, eventually};

use crate::audit::{Audited, event_count, field, json, make, start_controller};
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

/// Starts it for the disks in a folder.
fn start(test_cluster: &TestCluster, kubeconfig: &str, disks: &Disks) -> Running {
    make(test_cluster, OBJECTS);
    let config = disks.folder().join("config");
    std::fs::create_dir_all(&config).expect("a folder");
    let class = format!("disks: {{hostDir: {0}, mountDir: {0}}}", disks.folder().join("mounts").display());
    std::fs::write(config.join("storageClassMap"), class).expect("a file");
    let config = format!("--config={}", config.display());
    let flags = ["--node-name=n1", "--discovery-period=50ms", "--listen-address=127.0.0.1:0", "-v=6"];
    let args = [&["provisioner", "local", kubeconfig, &config], &flags[..]].concat();
    test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

#[test]
fn the_role_grants_exactly_what_is_used() {
    let Some(mut disks) = Disks::for_test() else { return };
    let mount = disks.folder().join("mounts/disk");
    disks.mount("ext4", 64, &mount);
    let audited = Audited::start_by("local", None, |test_cluster, kubeconfig| start(test_cluster, kubeconfig, &disks));
    let Some(audited) = audited else { return };
    let test_cluster = &audited.test_cluster;
    let controller = start_controller(test_cluster);
    let uid = || field(test_cluster, "pv", ".items[*].metadata.uid");
    eventually("a volume is created for the disk", || !uid().is_empty());
    let first = uid();
    make(test_cluster, CLAIM);
    eventually("the claim is bound", || field(test_cluster, "pvc/precious", ".status.phase") == "Bound");
    test_cluster.kubectl(["delete", KUBECTL_TIMEOUT, "pvc/precious"]).expect("the claim is deleted");
    eventually("the disk is cleaned, and a new volume is created", || !uid().is_empty() && !uid().contains(&first));
    // Again while the disk is missing: cleaning fails for two alternating reasons.
    make(test_cluster, CLAIM);
    eventually("the claim is bound", || field(test_cluster, "pvc/precious", ".status.phase") == "Bound");
    disks.unmount(&mount);
    test_cluster.kubectl(["delete", KUBECTL_TIMEOUT, "pvc/precious"]).expect("the claim is deleted");
    let count = |words: &str| event_count(test_cluster, "VolumeFailedDelete", words);
    eventually("the missing mount is reported", || count("nothing is mounted there") == 1);
    std::fs::remove_dir(&mount).expect("a directory");
    eventually("the missing directory is reported", || count("No such file") == 1);
    std::fs::create_dir(&mount).expect("a directory");
    eventually("the missing mount is counted", || count("nothing is mounted there") == 2);
    drop(controller);
    let role = json(test_cluster, &["get", "clusterrole", "bindery-local"]);
    audited.end(&[role], &[]);
}

#[test]
fn other_requests_are_forbidden() {
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
    denied.is_rejected(&["delete pvc precious", "get secrets -n=kube-system", "get nodes"]);
}
