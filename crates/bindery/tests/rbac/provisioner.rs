//! The CSI provisioner, with all optional rights of its role.

use std::sync::Arc;

use bindery_csi::fake::{FakeDriver, Serving};
use bindery_test_cluster::{KUBECTL_TIMEOUT, Running, TestCluster, eventually};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::audit::{Audited, event_count, field, json, make, start_controller};
use crate::denied::Denied;
use crate::service_account;

const DRIVER: &str = "csi.example.com";
const LEASE: &str = "csi-example-com";
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples/csi-driver.yaml");

/// Its pod and the pod's owner: no workload controller runs here.
const POD: &str = "
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: csi-driver-1, namespace: kube-system, ownerReferences: [
 {apiVersion: apps/v1, kind: Deployment, name: csi-driver, uid: u1, controller: true}]},
 spec: {selector: {matchLabels: {app: csi-driver}}, template: {metadata: {labels: {app: csi-driver}},
 spec: {containers: [{name: c, image: none}]}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: csi-driver-1-a, namespace: kube-system, ownerReferences: [
 {apiVersion: apps/v1, kind: ReplicaSet, name: csi-driver-1, uid: u2, controller: true}]},
 spec: {containers: [{name: c, image: none}]}}
";

const OBJECTS: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {example.com/zone: z1}}}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n1}, spec: {drivers: [
 {name: csi.example.com, nodeID: n1, topologyKeys: [example.com/zone]}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {user: me}}
---
{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: quick}, driverName: csi.example.com,
 parameters: {iops: '100'}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: now}, provisioner: csi.example.com, parameters: {
 csi.storage.k8s.io/provisioner-secret-name: key, csi.storage.k8s.io/provisioner-secret-namespace: default}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: later}, provisioner: csi.example.com,
 volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: troubled}, provisioner: csi.example.com,
 parameters: {create: 'INTERNAL,INTERNAL,INTERNAL,ok'}}
";

fn kind(kind: &str, plural: &str, scope: &str) -> String {
    format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {plural}.snapshot.storage.k8s.io, \
         annotations: {{api-approved.kubernetes.io: 'unapproved, for tests'}}}}, spec: {{group: snapshot.storage.k8s.io, \
         scope: {scope}, names: {{kind: {kind}, plural: {plural}, singular: {singular}}}, versions: [{{name: v1, served: true, \
         storage: true, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}]}}}}\n---\n",
        singular = kind.to_lowercase(),
    )
}

/// A claim with additional metadata and spec.
fn claim(name: &str, class: &str, metadata: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}, {metadata}}}, spec: {{accessModes: \
         [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}, storageClassName: {class}, {spec}}}}}\n---\n"
    )
}

fn is_bound(test_cluster: &TestCluster, claim: &str) {
    eventually(&format!("{claim} is bound"), || {
        field(test_cluster, &format!("pvc/{claim}"), ".status.phase") == "Bound"
    });
}

/// Starts it with flags, for its pod and node.
fn start(test_cluster: &TestCluster, kubeconfig: &str, serving: &Serving, flags: &[&str]) -> Running {
    let example = ["create", "--validate=strict", "--dry-run=server", "-f", EXAMPLE];
    test_cluster.kubectl(example).expect("the example is valid");
    make(test_cluster, POD);
    let address = format!("--csi-address={}", serving.socket().display());
    let args = [
        "NAMESPACE=kube-system",
        "POD_NAMESPACE=kube-system",
        "POD_NAME=csi-driver-1-a",
        "NODE_NAME=n1",
        env!("CARGO_BIN_EXE_bindery"),
        "provisioner",
        "csi",
        kubeconfig,
        "-v=6",
        &address,
        "--enable-capacity",
        "--capacity-ownerref-level=2",
        "--capacity-poll-interval=1s",
        "--kube-api-capacity-qps=50",
        "--kube-api-qps=0",
        "--retry-interval-start=200ms",
        "--retry-interval-max=1s",
    ];
    test_cluster.start_program("/usr/bin/env", [&args, flags].concat()).expect("bindery starts")
}

/// A snapshot to restore from, with its content.
fn create_snapshot(test_cluster: &TestCluster) {
    make(
        test_cluster,
        &(kind("VolumeSnapshot", "volumesnapshots", "Namespaced")
            + &kind("VolumeSnapshotContent", "volumesnapshotcontents", "Cluster")),
    );
    let snapshot = "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: snap}, \
                    status: {boundVolumeSnapshotContentName: content, readyToUse: true}}";
    eventually("the snapshot kinds are served", || {
        test_cluster.kubectl_with_input(snapshot, ["apply", "-f", "-"]).is_ok()
            && test_cluster.kubectl(["get", "volumesnapshotcontents"]).is_ok()
    });
    let uid = field(test_cluster, "volumesnapshot/snap", ".metadata.uid");
    make(
        test_cluster,
        &format!(
            "{{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotContent, metadata: {{name: content}}, spec: {{driver: \
         {DRIVER}, volumeSnapshotRef: {{name: snap, namespace: default, uid: {uid}}}}}, status: {{snapshotHandle: handle}}}}"
        ),
    );
}

/// Volumes from every kind of source.
fn provision_volumes(test_cluster: &TestCluster) {
    make(test_cluster, &claim("plain", "now", "", "volumeAttributesClassName: quick"));
    is_bound(test_cluster, "plain");
    let selected = "annotations: {volume.kubernetes.io/selected-node: n1}";
    let restored = "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: snap}";
    let claims = [
        claim("cloned", "now", "", "dataSource: {kind: PersistentVolumeClaim, name: plain}"),
        claim("restored", "now", "", restored),
        claim("placed", "later", selected, ""),
        claim("tried", "troubled", "", ""),
    ];
    make(test_cluster, &claims.concat());
    ["cloned", "restored", "placed", "tried"].iter().for_each(|name| is_bound(test_cluster, name));
    eventually("the snapshot's finalizer is removed", || {
        field(test_cluster, "volumesnapshot/snap", ".metadata.finalizers").is_empty()
    });
    eventually("the retry is counted", || {
        event_count(test_cluster, "ProvisioningFailed", "told to answer INTERNAL") > 1
    });
}

/// The published CSIStorageCapacity objects: capacity and owner.
fn capacities(test_cluster: &TestCluster) -> Vec<(String, String)> {
    let told = json(test_cluster, &["get", "csistoragecapacities", "-n=kube-system"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |object: &Value| (text(&object["capacity"]), text(&object["metadata"]["ownerReferences"][0]["name"]));
    told["items"].as_array().into_iter().flatten().map(one).collect()
}

#[test]
fn the_role_grants_exactly_what_is_used() {
    let runtime = Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let driver = Arc::new(FakeDriver::new(DRIVER).on_node(100 << 30, &[]).attaching());
    let mut serving = None;
    let audited = Audited::start_by("provisioner", Some(LEASE), |test_cluster, kubeconfig| {
        let served = driver.serve(&test_cluster.folder().join("csi.sock")).expect("a driver is served");
        let flags = ["--leader-election", "--leader-election-namespace=kube-system"];
        start(test_cluster, kubeconfig, serving.insert(served), &flags)
    });
    let Some(audited) = audited else { return };
    let test_cluster = &audited.test_cluster;
    let controller = start_controller(test_cluster);
    create_snapshot(test_cluster);
    make(test_cluster, OBJECTS);
    let is_published = |amount: &str| capacities(test_cluster) == [(amount.to_owned(), "csi-driver".to_owned())];
    eventually("the capacity is published", || is_published("100Gi"));
    provision_volumes(test_cluster);
    eventually("the remaining capacity is published", || is_published("95Gi"));

    test_cluster.kubectl(["delete", KUBECTL_TIMEOUT, "pvc", "--all"]).expect("the claims are deleted");
    eventually("the volumes are deleted", || {
        test_cluster.kubectl(["get", "pv", "-o=name"]).is_ok_and(|volumes| volumes.is_empty())
    });
    assert!(driver.volumes().is_empty(), "and so is their backing storage");
    test_cluster.kubectl(["delete", "storageclass", "later"]).expect("a class is deleted");
    eventually("the capacity of the deleted class is removed", || capacities(test_cluster).is_empty());
    drop(controller);
    let roles = [
        json(test_cluster, &["get", "clusterrole", "bindery-csi"]),
        json(test_cluster, &["get", "role", "-n=kube-system", "bindery-csi"]),
    ];
    audited.end(&roles, &[]);
}

#[test]
fn the_role_suffices_in_node_deployment() {
    let runtime = Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let Some(test_cluster) = service_account::cluster(TestCluster::builder()) else { return };
    let _controller = start_controller(&test_cluster);
    make(&test_cluster, OBJECTS);
    let driver = Arc::new(FakeDriver::new(DRIVER).on_node(100 << 30, &[("example.com/zone", "z1")]));
    let serving = driver.serve(&test_cluster.folder().join("csi.sock")).expect("a driver is served");
    let kubeconfig = format!("--kubeconfig={}", service_account::kubeconfig(&test_cluster, "provisioner").display());
    let flags = ["--node-deployment", "--node-deployment-base-delay=200ms", "--node-deployment-max-delay=1s"];
    let program = start(&test_cluster, &kubeconfig, &serving, &flags);
    let selected = "annotations: {volume.kubernetes.io/selected-node: n1}";
    make(&test_cluster, &(claim("taken", "now", "", "") + &claim("placed", "later", selected, "")));
    ["taken", "placed"].iter().for_each(|name| is_bound(&test_cluster, name));
    assert_eq!(field(&test_cluster, "pvc/taken", r".metadata.annotations.volume\.kubernetes\.io/selected-node"), "n1");
    eventually("the remaining capacity is published", || {
        capacities(&test_cluster) == [("98Gi".to_owned(), "csi-driver".to_owned())]
    });
    test_cluster.kubectl(["delete", KUBECTL_TIMEOUT, "pvc", "--all"]).expect("the claims are deleted");
    eventually("the volumes are deleted", || {
        test_cluster.kubectl(["get", "pv", "-o=name"]).is_ok_and(|volumes| volumes.is_empty())
    });
    assert!(driver.volumes().is_empty(), "and so is their backing storage");
    let log = program.log();
    let rejected: Vec<&str> = log.lines().filter(|line| line.contains("is forbidden: User")).collect();
    assert!(rejected.is_empty(), "{}", rejected.join("\n"));
}

#[test]
fn other_requests_are_forbidden() {
    let Some(denied) = Denied::start("provisioner", &claim("precious", "now", "", "")) else { return };
    denied.may(&[
        "patch pvc --all-namespaces",
        "delete pv",
        "get secrets --all-namespaces",
        "update leases/csi-example-com -n=kube-system",
        "get pods -n=kube-system",
    ]);
    denied.may_not(&[
        "delete pvc",
        "create pvc",
        "update pvc",
        "patch pvc --subresource=status",
        "update pv",
        "patch pv --subresource=status",
        "list secrets",
        "watch secrets",
        "patch secrets",
        "create secrets",
        "patch nodes",
        "patch csinodes",
        "patch storageclasses",
        "delete volumeattachments",
        "patch volumeattachments",
        "get pods --namespace=default",
        "list pods -n=kube-system",
        "create pods -n=kube-system",
        "patch replicasets.apps -n=kube-system",
        "create csistoragecapacities --namespace=default",
        "list events",
        "update leases/bindery-controller -n=kube-system",
        "delete leases/csi-example-com -n=kube-system",
        "create leases --namespace=default",
        "create clusterrolebindings",
        "impersonate users",
        "create serviceaccounts --subresource=token -n=kube-system",
    ]);
    denied.is_rejected(&["delete pvc precious", "get secrets -n=kube-system", "get pods -n=default"]);
}
