//! `bindery up --nodes --node-storage` with kubectl: a simulated CSI driver, and nodes that run out
//! of capacity.

use bindery_test_cluster::{KUBECTL_TIMEOUT, eventually};

use crate::server::{Server, folder};

/// A claim of the default class, and a pod that uses it.
fn claim_and_pod(name: &str, size: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}}}, spec: {{accessModes: [ReadWriteOnce], \
         resources: {{requests: {{storage: {size}}}}}}}}}\n---\n\
         {{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: main, image: none}}], \
         volumes: [{{name: data, persistentVolumeClaim: {{claimName: {name}}}}}]}}}}\n"
    )
}

/// Starts `bindery up` with two nodes of 10Gi, and waits until the expected capacity is published.
fn up(more: &[&str], left: [&str; 2]) -> Option<Server> {
    let server = Server::up_for_kubectl(&[&["--nodes", "2", "--node-storage", "10Gi"], more].concat())?;
    wait(&server, "storageclass/simulated", "create");
    for (node, left) in ["node-1", "node-2"].into_iter().zip(left) {
        wait(&server, &format!("lease/{node}"), "create");
        has_capacity(&server, node, left);
    }
    Some(server)
}

fn wait(server: &Server, what: &str, how: &str) {
    let namespace = match what.split('/').next() {
        Some("lease") => "kube-node-lease",
        Some("csistoragecapacity") => "kube-system",
        Some(_) | None => "default",
    };
    server.ok(&["wait", what, &format!("--for={how}"), "-n", namespace, KUBECTL_TIMEOUT]);
}

fn read(server: &Server, what: &str, path: &str) -> String {
    server.ok(&["get", what, "-o", &format!("jsonpath={{{path}}}")])
}

/// Waits until this capacity is published for a node.
fn has_capacity(server: &Server, node: &str, amount: &str) {
    let capacity = format!("csistoragecapacity/simulated.{node}");
    wait(server, &capacity, "create");
    wait(server, &capacity, &format!("jsonpath={{.capacity}}={amount}"));
    wait(server, &capacity, &format!("jsonpath={{.maximumVolumeSize}}={amount}"));
}

/// The node of a claim's volume.
fn volume_node(server: &Server, claim: &str) -> String {
    let volume = format!("pv/{}", read(server, &format!("pvc/{claim}"), ".spec.volumeName"));
    assert_eq!(read(server, &volume, ".spec.csi.driver"), "simulated.csi.bindery.dev");
    read(server, &volume, ".spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]")
}

fn runs(server: &Server, name: &str) {
    wait(server, &format!("pod/{name}"), "condition=Ready");
    assert_eq!(read(server, &format!("pvc/{name}"), ".status.phase"), "Bound");
}

/// Waits until a pod is reported unschedulable for lack of storage.
fn is_unschedulable(server: &Server, name: &str) {
    let pod = format!("pod/{name}");
    wait(server, &pod, "condition=PodScheduled=False");
    // It may first be reported that the claim is missing: pods and claims have separate watches.
    let why = || read(server, &pod, ".status.conditions[?(@.type==\"PodScheduled\")].message");
    eventually("it is reported", || why().contains("2 node(s) did not have enough free storage"));
    assert_eq!(read(server, &pod, ".status.phase") + &read(server, &pod, ".spec.nodeName"), "Pending");
}

#[test]
fn a_claim_of_the_default_class_is_provisioned_for_its_pod() {
    let Some(mut server) = up(&[], ["10Gi", "10Gi"]) else { return };
    server.create(&claim_and_pod("data", "2Gi"));
    runs(&server, "data");
    assert_eq!(read(&server, "pvc/data", ".spec.storageClassName"), "simulated");
    let node = volume_node(&server, "data");
    assert_eq!(read(&server, "pod/data", ".spec.nodeName"), node, "the pod runs where its volume is");
    has_capacity(&server, &node, "8Gi");
    let other = if node == "node-1" { "node-2" } else { "node-1" };
    has_capacity(&server, other, "10Gi");

    server.ok(&["delete", "pod/data", "pvc/data", KUBECTL_TIMEOUT]);
    has_capacity(&server, &node, "10Gi");
    // The storage is deleted before the volume.
    eventually("no volume is left", || server.ok(&["get", "pv", "-o", "name"]).is_empty());
    server.stop();
}

#[test]
fn a_pod_with_a_large_claim_waits_until_a_node_has_capacity() {
    let Some(mut server) = up(&[], ["10Gi", "10Gi"]) else { return };
    server.create(&claim_and_pod("large", "11Gi"));
    is_unschedulable(&server, "large");
    let of_pod = "--field-selector=involvedObject.name=large,reason=FailedScheduling";
    let events = || server.ok(&["get", "events", of_pod]);
    eventually("the event is published", || events().contains("did not have enough free storage"));
    server.ok(&["annotate", "node", "node-2", "bindery/simulated-storage=20Gi"]);
    runs(&server, "large");
    assert_eq!(volume_node(&server, "large"), "node-2");
    has_capacity(&server, "node-2", "9Gi");
    server.stop();
}

#[test]
fn allocated_capacity_survives_a_restart() {
    let folder = folder();
    let data = folder.join("data").to_string_lossy().into_owned();
    let Some(mut server) = up(&["--data-dir", &data], ["10Gi", "10Gi"]) else {
        return std::fs::remove_dir_all(folder).expect("it can be removed");
    };
    server.create(&claim_and_pod("before", "6Gi"));
    runs(&server, "before");
    let node = volume_node(&server, "before");
    server.process.kill().expect("it can be killed");
    server.process.wait().expect("it ends");
    drop(server);

    let left = if node == "node-1" { ["4Gi", "10Gi"] } else { ["10Gi", "4Gi"] };
    let mut server = up(&["--data-dir", &data], left).expect("it started before");
    server.create(&claim_and_pod("after", "6Gi"));
    runs(&server, "after");
    assert_ne!(volume_node(&server, "after"), node, "the first node has no capacity for it");
    server.create(&claim_and_pod("late", "6Gi"));
    is_unschedulable(&server, "late");
    server.ok(&["delete", "pod/before", "pvc/before", KUBECTL_TIMEOUT]);
    runs(&server, "late");
    assert_eq!(volume_node(&server, "late"), node, "released capacity is used again");
    server.stop();
    std::fs::remove_dir_all(folder).expect("it can be removed");
}
