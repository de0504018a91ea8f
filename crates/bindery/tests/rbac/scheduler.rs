//! The scheduler.

use bindery_test_cluster::{KUBECTL_TIMEOUT, TestCluster, eventually};
use serde_json::Value;

use crate::audit::{Audited, field, json, make, start_controller};
use crate::denied::Denied;

/// Granted for what this test does not bring about: a write whose answer is lost, or that comes too late.
const UNSEEN: [(&str, &str); 2] = [("get", "persistentvolumes"), ("get", "persistentvolumeclaims")];

const OBJECTS: &str = r"
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kubernetes.io/hostname: n1}},
 status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: local}, provisioner: kubernetes.io/no-provisioner,
 volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: make}, provisioner: example.com/nobody,
 volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce],
 storageClassName: local, local: {path: /mnt/none}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [
 {key: kubernetes.io/hostname, operator: In, values: [n1]}]}]}}}}
";

fn claim(name: &str, class: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}}}, spec: {{accessModes: [ReadWriteOnce], \
         resources: {{requests: {{storage: 1Gi}}}}, storageClassName: {class}}}}}\n---\n"
    )
}

/// A pod with a claim. What admission marks new nodes with it tolerates: there is no kubelet to take the mark away.
fn pod(name: &str, claim: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: c, image: none}}], \
         tolerations: [{{operator: Exists}}], volumes: [{{name: v, persistentVolumeClaim: {{claimName: {claim}}}}}]}}}}\n---\n"
    )
}

/// A pod gets its node with its volume; for another's claim a volume is asked for.
fn place_pods(lab: &TestCluster) {
    let users = claim("data", "local") + &claim("more", "make") + &pod("placed", "data") + &pod("waits", "more");
    make(lab, &(OBJECTS.to_owned() + "---\n" + &users));
    let field = |object: &str, path: &str| field(lab, object, path);
    eventually("the pod has its node", || field("pod/placed", ".spec.nodeName") == "n1");
    assert_eq!(field("pvc/data", ".spec.volumeName"), "disk");
    let selected = r".metadata.annotations.volume\.kubernetes\.io/selected-node";
    eventually("a volume is asked for", || field("pvc/more", selected) == "n1");
    eventually("the node is meant for the pod", || field("pod/waits", ".status.nominatedNodeName") == "n1");
}

/// Events about one pod: the same news twice, with other news in between, is one event that is counted.
fn come_and_go(lab: &TestCluster) {
    let told = |words: &str| {
        let events = json(lab, &["get", "events", "--field-selector=involvedObject.name=lonely"]);
        let of_it = |event: &&Value| event["message"].as_str().is_some_and(|message| message.contains(words));
        events["items"].as_array().into_iter().flatten().find(of_it).and_then(|event| event["count"].as_u64())
    };
    make(lab, &pod("lonely", "absent"));
    eventually("the lack of a claim is told", || told("not found") == Some(1));
    make(lab, &claim("absent", "nowhere"));
    eventually("that it is not bound is told", || told("unbound immediate").is_some());
    lab.kubectl(["delete", KUBECTL_TIMEOUT, "pvc/absent"]).expect("the claim is gone");
    eventually("the lack of a claim is counted", || told("not found") == Some(2));
}

#[test]
fn the_role_is_enough_and_no_more() {
    let Some(audited) = Audited::start("scheduler", &[]) else { return };
    let lab = &audited.lab;
    let controller = start_controller(lab);
    place_pods(lab);
    come_and_go(lab);
    drop(controller);
    let roles = [
        json(lab, &["get", "clusterrole", "bindery-scheduler"]),
        json(lab, &["get", "role", "-n=kube-system", "bindery-scheduler-lease"]),
    ];
    audited.end(&roles, &UNSEEN);
}

#[test]
fn nothing_else_is_allowed() {
    let objects = claim("precious", "local") + &pod("pod", "precious");
    let Some(denied) = Denied::start("scheduler", &objects) else { return };
    denied.may(&[
        "create pods --subresource=binding --all-namespaces",
        "patch pods --subresource=status --all-namespaces",
        "patch pvc --all-namespaces",
        "update leases/bindery-scheduler -n=kube-system",
    ]);
    denied.may_not(&[
        "patch pods",
        "update pods",
        "create pods",
        "delete pods",
        "create pods --subresource=eviction",
        "create pods --subresource=exec",
        "delete pvc",
        "create pvc",
        "update pvc",
        "patch pvc --subresource=status",
        "delete pv",
        "create pv",
        "patch pv --subresource=status",
        "patch nodes",
        "update nodes",
        "delete nodes",
        "delete volumeattachments",
        "patch storageclasses",
        "get secrets",
        "list configmaps --all-namespaces",
        "list events",
        "update leases/bindery-controller -n=kube-system",
        "update leases/kube-scheduler -n=kube-system",
        "delete leases/bindery-scheduler -n=kube-system",
        "create leases --namespace=default",
        "create clusterrolebindings",
        "impersonate users",
    ]);
    denied.is_refused(&["delete pvc precious", "delete pod pod", "label pod pod a=b", "get secrets -n=kube-system"]);
}
