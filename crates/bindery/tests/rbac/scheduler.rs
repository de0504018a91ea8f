//! The scheduler.

use bindery_test_cluster::{KUBECTL_TIMEOUT, TestCluster, eventually};
use serde_json::Value;

use crate::audit::{Audited, field, json, make, start_controller};
use crate::denied::Denied;

/// Rights this test does not use: for a write whose response is lost or late.
const UNSEEN: [(&str, &str); 2] = [("get", "persistentvolumes"), ("get", "persistentvolumeclaims")];

const OBJECTS: &str = r"
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {kubernetes.io/hostname: n1}},
 status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: local}, provisioner: kubernetes.io/no-provisioner,
 volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: make}, provisioner: example.com/not-running,
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

/// A pod with a claim. It tolerates the taint of new nodes, which no kubelet removes here.
fn pod(name: &str, claim: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: c, image: none}}], \
         tolerations: [{{operator: Exists}}], volumes: [{{name: v, persistentVolumeClaim: {{claimName: {claim}}}}}]}}}}\n---\n"
    )
}

/// One pod is placed with its volume; for another one's claim provisioning is requested.
fn place_pods(test_cluster: &TestCluster) {
    let users = claim("data", "local") + &claim("more", "make") + &pod("placed", "data") + &pod("waits", "more");
    make(test_cluster, &(OBJECTS.to_owned() + "---\n" + &users));
    let field = |object: &str, path: &str| field(test_cluster, object, path);
    eventually("the pod is placed", || field("pod/placed", ".spec.nodeName") == "n1");
    assert_eq!(field("pvc/data", ".spec.volumeName"), "disk");
    let selected = r".metadata.annotations.volume\.kubernetes\.io/selected-node";
    eventually("a node is selected for the claim", || field("pvc/more", selected) == "n1");
    eventually("the node is nominated for the pod", || field("pod/waits", ".status.nominatedNodeName") == "n1");
}

/// The same event twice, with another in between, is one event with a count.
fn repeat_events(test_cluster: &TestCluster) {
    let event_count = |words: &str| {
        let events = json(test_cluster, &["get", "events", "--field-selector=involvedObject.name=lonely"]);
        let of_it = |event: &&Value| event["message"].as_str().is_some_and(|message| message.contains(words));
        events["items"].as_array().into_iter().flatten().find(of_it).and_then(|event| event["count"].as_u64())
    };
    make(test_cluster, &pod("lonely", "absent"));
    eventually("the missing claim is reported", || event_count("not found") == Some(1));
    make(test_cluster, &claim("absent", "nowhere"));
    eventually("the unbound claim is reported", || event_count("unbound immediate").is_some());
    test_cluster.kubectl(["delete", KUBECTL_TIMEOUT, "pvc/absent"]).expect("the claim is deleted");
    eventually("the missing claim is counted", || event_count("not found") == Some(2));
}

#[test]
fn the_role_grants_exactly_what_is_used() {
    let Some(audited) = Audited::start("scheduler", &["--scheduler-name=default-scheduler"]) else { return };
    let test_cluster = &audited.test_cluster;
    let controller = start_controller(test_cluster);
    place_pods(test_cluster);
    repeat_events(test_cluster);
    drop(controller);
    let roles = [
        json(test_cluster, &["get", "clusterrole", "bindery-scheduler"]),
        json(test_cluster, &["get", "role", "-n=kube-system", "bindery-scheduler-lease"]),
    ];
    audited.end(&roles, &UNSEEN);
}

#[test]
fn other_requests_are_forbidden() {
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
    denied.is_rejected(&["delete pvc precious", "delete pod pod", "label pod pod a=b", "get secrets -n=kube-system"]);
}
