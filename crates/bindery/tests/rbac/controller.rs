//! The controllers.

use std::collections::BTreeSet;
use std::path::Path;

use bindery_test_cluster::{KUBECTL_TIMEOUT, TestCluster, eventually};
use serde_json::Value;

use crate::audit::{Audited, Folder, json};
use crate::denied::Denied;

/// Rights this test does not use: for a write whose response is lost, and for a check that leaves
/// no line in the audit log.
const UNSEEN: [(&str, &str); 2] = [("get", "volumeattributesclasses"), ("update", "pods/finalizers")];

fn volume(name: &str, policy: &str, path: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec:\n  capacity: {{storage: 1Gi}}\n  \
         accessModes: [ReadWriteOnce]\n  persistentVolumeReclaimPolicy: {policy}\n  storageClassName: {name}\n  \
         hostPath: {{path: {path}}}\n---\n"
    )
}

fn class(name: &str, provisioner: &str) -> String {
    format!(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\nprovisioner: {provisioner}\n---\n"
    )
}

fn claim(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec:\n  \
         accessModes: [ReadWriteOnce]\n  resources: {{requests: {{storage: 1Gi}}}}\n  storageClassName: {name}\n---\n"
    )
}

/// A pod on a node that does not exist, with an ephemeral volume.
const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: pod}
spec:
  nodeName: nowhere
  containers: [{name: c, image: none}]
  volumes:
    - name: scratch
      ephemeral:
        volumeClaimTemplate:
          spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: pod-scratch}
---
";

const ATTRIBUTES_CLASS: &str = "apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: quick}
driverName: example.com
parameters: {iops: '7'}
";

/// The lifecycle controllers: an ephemeral volume gets its claim, a claim in use is protected, an
/// attributes class is deleted.
fn exercise_lifecycle_controllers(test_cluster: &TestCluster, folder: &Folder) {
    let objects = volume("pod-scratch", "Retain", &folder.at("scratch")) + POD + ATTRIBUTES_CLASS;
    test_cluster.kubectl_with_input(&objects, ["apply", "-f", "-"]).expect("objects are created");
    eventually("the ephemeral volume's claim is bound and in use", || {
        let condition = "jsonpath={.status.phase} {.status.conditions[?(@.type==\"Unused\")].status}";
        test_cluster.kubectl(["get", "pvc/pod-scratch", "-o", condition]).is_ok_and(|found| found == "Bound False")
    });
    test_cluster.kubectl(["delete", "--wait=false", "pvc/pod-scratch"]).expect("it is deleted");
    test_cluster.kubectl(["get", "pvc/pod-scratch"]).expect("its pod protects it");
    test_cluster.kubectl(["delete", "--force", "--grace-period=0", "pod/pod"]).expect("the pod is deleted");
    test_cluster.kubectl(["wait", "--for=delete", KUBECTL_TIMEOUT, "pvc/pod-scratch"]).expect("the claim is deleted");
    test_cluster
        .kubectl(["delete", KUBECTL_TIMEOUT, "volumeattributesclass/quick", "pv/pod-scratch"])
        .expect("they go");
}

/// Ends the recycler pod of a volume, as a kubelet would report it, and waits until it is removed.
fn finish_recycling(test_cluster: &TestCluster, pod: &str, phase: &str) {
    let uid = || test_cluster.kubectl(["get", pod, "-o", "jsonpath={.metadata.uid}"]).ok();
    eventually("recycling has started", || uid().is_some());
    let scrub = uid();
    let status = format!(r#"{{"status": {{"phase": "{phase}", "message": "as told by the test"}}}}"#);
    test_cluster
        .kubectl(["patch", pod, "--subresource=status", "--type=merge", "-p", &status])
        .expect("the pod has ended");
    eventually("the pod is removed", || uid() != scrub);
}

/// The life of volumes of each reclaim policy: bound, released, then deleted or recycled.
fn exercise_reclaim_policies(test_cluster: &TestCluster, folder: &Folder) {
    let objects = [
        volume("deleted", "Delete", &folder.at("deleted")),
        volume("recycled", "Recycle", &folder.at("recycled")),
        class("provisioned", "kubernetes.io/host-path"),
        claim("deleted") + &claim("recycled") + &claim("provisioned") + &claim("waiting"),
    ];
    test_cluster.kubectl_with_input(&objects.concat(), ["apply", "-f", "-"]).expect("objects are created");
    let claims = ["pvc/deleted", "pvc/recycled", "pvc/provisioned"];
    let bound = ["wait", "--for=jsonpath={.status.phase}=Bound", KUBECTL_TIMEOUT];
    test_cluster.kubectl([&bound[..], &claims].concat()).expect("claims are bound");
    let provisioned =
        test_cluster.kubectl(["get", "pvc/provisioned", "-o", "jsonpath={.spec.volumeName}"]).expect("a claim");

    test_cluster.kubectl([&["delete", KUBECTL_TIMEOUT], &claims[..]].concat()).expect("claims are deleted");
    test_cluster
        .kubectl(["wait", "--for=delete", KUBECTL_TIMEOUT, "pv/deleted", &format!("pv/{provisioned}")])
        .expect("volumes are deleted");
    assert!(!Path::new(&folder.at("deleted")).exists(), "and so is their backing storage");

    for phase in ["Failed", "Succeeded"] {
        finish_recycling(test_cluster, "pod/recycler-for-recycled", phase);
    }
    let available = ["wait", "--for=jsonpath={.status.phase}=Available", KUBECTL_TIMEOUT, "pv/recycled"];
    test_cluster.kubectl(available).expect("the volume was recycled");
}

/// The same event twice, with another in between, is one event with a count.
fn repeat_events(test_cluster: &TestCluster) {
    let event_count = |reason: &str| {
        let about = "--field-selector=involvedObject.name=waiting";
        let events = json(test_cluster, &["get", "events", about]);
        let of_reason = |event: &&Value| event["reason"] == reason;
        events["items"].as_array().into_iter().flatten().find(of_reason).and_then(|event| event["count"].as_u64())
    };
    eventually("the missing class is reported", || event_count("ProvisioningFailed") == Some(1));
    let class = class("waiting", "example.com/not-running");
    test_cluster.kubectl_with_input(&class, ["apply", "-f", "-"]).expect("a class is created");
    eventually("waiting for the provisioner is reported", || event_count("ExternalProvisioning").is_some());
    test_cluster.kubectl(["delete", "storageclass", "waiting"]).expect("the class is deleted");
    eventually("the missing class is counted", || event_count("ProvisioningFailed") == Some(2));
}

#[test]
fn the_role_grants_exactly_what_is_used() {
    let Some(audited) = Audited::start("controller", &["--enable-hostpath-provisioner", "--emulated-version=1.37"])
    else {
        return;
    };
    let (test_cluster, folder) = (&audited.test_cluster, &audited.folder);
    exercise_reclaim_policies(test_cluster, folder);
    repeat_events(test_cluster);
    exercise_lifecycle_controllers(test_cluster, folder);
    eventually("all events are published", || {
        let events = json(test_cluster, &["get", "events", "--all-namespaces"]);
        let ours = |event: &&Value| event["source"]["component"] == "persistentvolume-controller";
        let events = events["items"].as_array().into_iter().flatten().filter(ours);
        let reasons: BTreeSet<String> = events.map(|event| event["reason"].as_str().unwrap_or("").into()).collect();
        ["ProvisioningSucceeded", "VolumeRecycled", "VolumeFailedRecycle"]
            .iter()
            .all(|&reason| reasons.contains(reason))
    });
    let roles = [
        json(test_cluster, &["get", "clusterrole", "bindery"]),
        json(test_cluster, &["get", "role", "-n=kube-system", "bindery-lease"]),
        json(test_cluster, &["get", "role", "-n=default", "bindery-recycler"]),
    ];
    audited.end(&roles, &UNSEEN);
}

#[test]
fn other_requests_are_forbidden() {
    let Some(denied) = Denied::start("controller", &claim("precious")) else { return };
    denied.may(&[
        "patch pvc --all-namespaces",
        "get pods --namespace=default",
        "update leases/bindery-controller -n=kube-system",
    ]);
    denied.may_not(&[
        "delete pvc --all-namespaces",
        "update pvc",
        "update pods --namespace=default",
        "delete volumeattributesclasses",
        "get secrets",
        "list secrets --all-namespaces",
        "update nodes",
        "patch nodes",
        "patch nodes --subresource=status",
        "create pods --namespace=kube-system",
        "delete pods --namespace=kube-system",
        "create pods --subresource=exec --namespace=default",
        "list events --namespace=kube-system",
        "update leases/kube-controller-manager -n=kube-system",
        "update leases/bindery-scheduler -n=kube-system",
        "delete leases/bindery-controller -n=kube-system",
        "create leases --namespace=default",
        "delete storageclasses",
        "create clusterrolebindings",
        "impersonate users",
        "create serviceaccounts --subresource=token --namespace=kube-system",
    ]);
    denied.is_rejected(&[
        "delete pvc precious",
        "get secrets --namespace=kube-system",
        "run intruder --image=none -n=kube-system",
    ]);
}
