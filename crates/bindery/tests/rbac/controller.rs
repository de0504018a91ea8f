//! The controllers.

use std::collections::BTreeSet;
use std::path::Path;

use bindery_test_cluster::{KUBECTL_TIMEOUT, TestCluster, eventually};
use serde_json::Value;

use crate::audit::{Audited, Folder, json};
use crate::denied::Denied;

/// Granted for what this test does not bring about: a write whose answer is lost, and a check that leaves no line in the audit log.
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

/// What works beside the binder: an ephemeral volume gets its claim, a claim in use stays, an attributes class goes.
fn have_companions(lab: &TestCluster, folder: &Folder) {
    let objects = volume("pod-scratch", "Retain", &folder.at("scratch")) + POD + ATTRIBUTES_CLASS;
    lab.kubectl_with_input(&objects, ["apply", "-f", "-"]).expect("objects are made");
    eventually("the ephemeral volume's claim is bound and in use", || {
        let condition = "jsonpath={.status.phase} {.status.conditions[?(@.type==\"Unused\")].status}";
        lab.kubectl(["get", "pvc/pod-scratch", "-o", condition]).is_ok_and(|found| found == "Bound False")
    });
    lab.kubectl(["delete", "--wait=false", "pvc/pod-scratch"]).expect("it is deleted");
    lab.kubectl(["get", "pvc/pod-scratch"]).expect("and is held by its pod");
    lab.kubectl(["delete", "--force", "--grace-period=0", "pod/pod"]).expect("the pod is gone");
    lab.kubectl(["wait", "--for=delete", KUBECTL_TIMEOUT, "pvc/pod-scratch"]).expect("and so is the claim");
    lab.kubectl(["delete", KUBECTL_TIMEOUT, "volumeattributesclass/quick", "pv/pod-scratch"]).expect("they go");
}

/// Ends the pod that scrubs a volume, as a kubelet would report it, and returns once the binder has removed it.
fn end_scrub(lab: &TestCluster, pod: &str, phase: &str) {
    let uid = || lab.kubectl(["get", pod, "-o", "jsonpath={.metadata.uid}"]).ok();
    eventually("a scrub is under way", || uid().is_some());
    let scrub = uid();
    let status = format!(r#"{{"status": {{"phase": "{phase}", "message": "as told by the test"}}}}"#);
    lab.kubectl(["patch", pod, "--subresource=status", "--type=merge", "-p", &status]).expect("the pod has ended");
    eventually("the pod is removed", || uid() != scrub);
}

/// The life of volumes of each policy: bound, released, and deleted or scrubbed.
fn live_through_everything(lab: &TestCluster, folder: &Folder) {
    let objects = [
        volume("deleted", "Delete", &folder.at("deleted")),
        volume("recycled", "Recycle", &folder.at("recycled")),
        class("provisioned", "kubernetes.io/host-path"),
        claim("deleted") + &claim("recycled") + &claim("provisioned") + &claim("waiting"),
    ];
    lab.kubectl_with_input(&objects.concat(), ["apply", "-f", "-"]).expect("objects are made");
    let claims = ["pvc/deleted", "pvc/recycled", "pvc/provisioned"];
    let bound = ["wait", "--for=jsonpath={.status.phase}=Bound", KUBECTL_TIMEOUT];
    lab.kubectl([&bound[..], &claims].concat()).expect("claims are bound");
    let provisioned = lab.kubectl(["get", "pvc/provisioned", "-o", "jsonpath={.spec.volumeName}"]).expect("a claim");

    lab.kubectl([&["delete", KUBECTL_TIMEOUT], &claims[..]].concat()).expect("claims are gone");
    lab.kubectl(["wait", "--for=delete", KUBECTL_TIMEOUT, "pv/deleted", &format!("pv/{provisioned}")])
        .expect("volumes are gone");
    assert!(!Path::new(&folder.at("deleted")).exists(), "and so is what was behind them");

    for phase in ["Failed", "Succeeded"] {
        end_scrub(lab, "pod/recycler-for-recycled", phase);
    }
    let available = ["wait", "--for=jsonpath={.status.phase}=Available", KUBECTL_TIMEOUT, "pv/recycled"];
    lab.kubectl(available).expect("the volume was scrubbed");
}

/// Events about one claim: the same news twice, with other news in between, is one event that is counted.
fn come_and_go(lab: &TestCluster) {
    let told = |reason: &str| {
        let about = "--field-selector=involvedObject.name=waiting";
        let events = json(lab, &["get", "events", about]);
        let of_reason = |event: &&Value| event["reason"] == reason;
        events["items"].as_array().into_iter().flatten().find(of_reason).and_then(|event| event["count"].as_u64())
    };
    eventually("the lack of a class is told", || told("ProvisioningFailed") == Some(1));
    let class = class("waiting", "example.com/nobody");
    lab.kubectl_with_input(&class, ["apply", "-f", "-"]).expect("a class is made");
    eventually("the wait for a provisioner is told", || told("ExternalProvisioning").is_some());
    lab.kubectl(["delete", "storageclass", "waiting"]).expect("the class is gone");
    eventually("the lack of a class is counted", || told("ProvisioningFailed") == Some(2));
}

#[test]
fn the_role_is_enough_and_no_more() {
    let Some(audited) = Audited::start("controller", &["--enable-hostpath-provisioner"]) else { return };
    let (lab, folder) = (&audited.lab, &audited.folder);
    live_through_everything(lab, folder);
    come_and_go(lab);
    have_companions(lab, folder);
    eventually("what happened is told", || {
        let events = json(lab, &["get", "events", "--all-namespaces"]);
        let ours = |event: &&Value| event["source"]["component"] == "persistentvolume-controller";
        let events = events["items"].as_array().into_iter().flatten().filter(ours);
        let reasons: BTreeSet<String> = events.map(|event| event["reason"].as_str().unwrap_or("").into()).collect();
        ["ProvisioningSucceeded", "VolumeRecycled", "VolumeFailedRecycle"]
            .iter()
            .all(|&reason| reasons.contains(reason))
    });
    let roles = [
        json(lab, &["get", "clusterrole", "bindery"]),
        json(lab, &["get", "role", "-n=kube-system", "bindery-lease"]),
        json(lab, &["get", "role", "-n=default", "bindery-recycler"]),
    ];
    audited.end(&roles, &UNSEEN);
}

#[test]
fn nothing_else_is_allowed() {
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
    denied.is_refused(&[
        "delete pvc precious",
        "get secrets --namespace=kube-system",
        "run intruder --image=none -n=kube-system",
    ]);
}
