//! The provisioner of a CSI driver, with everything that the role has for it.

use std::sync::Arc;

use bindery_csi::fake::{Fake, Serving};
use bindery_test_cluster::{KUBECTL_TIMEOUT, Running, TestCluster, eventually};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::audit::{Audited, field, json, make, start_controller, times_told};
use crate::denied::Denied;
use crate::service_account;

const DRIVER: &str = "csi.example.com";
const LEASE: &str = "csi-example-com";
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples/csi-driver.yaml");

/// The pod that it runs in, and who made that: there is no controller here that would.
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

/// A claim, with more in its metadata and in its spec.
fn claim(name: &str, class: &str, metadata: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}, {metadata}}}, spec: {{accessModes: \
         [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}, storageClassName: {class}, {spec}}}}}\n---\n"
    )
}

fn is_bound(lab: &TestCluster, claim: &str) {
    eventually(&format!("{claim} is bound"), || field(lab, &format!("pvc/{claim}"), ".status.phase") == "Bound");
}

/// Starts it with flags, in its pod and on its node.
fn start(lab: &TestCluster, kubeconfig: &str, serving: &Serving, flags: &[&str]) -> Running {
    let example = ["create", "--validate=strict", "--dry-run=server", "-f", EXAMPLE];
    lab.kubectl(example).expect("the example is valid");
    make(lab, POD);
    let address = format!("--csi-address={}", serving.socket().display());
    let args = [
        "NAMESPACE=kube-system",
        "POD_NAME=csi-driver-1-a",
        "NODE_NAME=n1",
        env!("CARGO_BIN_EXE_bindery"),
        "provisioner",
        "csi",
        kubeconfig,
        "-vv",
        &address,
        "--enable-capacity",
        "--capacity-ownerref-level=2",
        "--capacity-poll-interval=1s",
        "--kube-api-capacity-qps=50",
        "--kube-api-qps=0",
        "--retry-interval-start=200ms",
        "--retry-interval-max=1s",
    ];
    lab.start_program("/usr/bin/env", [&args, flags].concat()).expect("bindery starts")
}

/// A snapshot that a claim can be filled from, and its content, which points back at it.
fn make_snapshot(lab: &TestCluster) {
    make(
        lab,
        &(kind("VolumeSnapshot", "volumesnapshots", "Namespaced")
            + &kind("VolumeSnapshotContent", "volumesnapshotcontents", "Cluster")),
    );
    let snapshot = "{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: snap}, \
                    status: {boundVolumeSnapshotContentName: content, readyToUse: true}}";
    eventually("there are snapshots", || {
        lab.kubectl_with_input(snapshot, ["apply", "-f", "-"]).is_ok()
            && lab.kubectl(["get", "volumesnapshotcontents"]).is_ok()
    });
    let uid = field(lab, "volumesnapshot/snap", ".metadata.uid");
    make(
        lab,
        &format!(
            "{{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotContent, metadata: {{name: content}}, spec: {{driver: \
         {DRIVER}, volumeSnapshotRef: {{name: snap, namespace: default, uid: {uid}}}}}, status: {{snapshotHandle: handle}}}}"
        ),
    );
}

/// Volumes of every origin.
fn have_volumes_made(lab: &TestCluster) {
    make(lab, &claim("plain", "now", "", "volumeAttributesClassName: quick"));
    is_bound(lab, "plain");
    let selected = "annotations: {volume.kubernetes.io/selected-node: n1}";
    let restored = "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: snap}";
    let claims = [
        claim("cloned", "now", "", "dataSource: {kind: PersistentVolumeClaim, name: plain}"),
        claim("restored", "now", "", restored),
        claim("placed", "later", selected, ""),
        claim("tried", "troubled", "", ""),
    ];
    make(lab, &claims.concat());
    ["cloned", "restored", "placed", "tried"].iter().for_each(|name| is_bound(lab, name));
    eventually("the snapshot is let go of", || field(lab, "volumesnapshot/snap", ".metadata.finalizers").is_empty());
    eventually("that it was tried again is counted", || {
        times_told(lab, "ProvisioningFailed", "told to answer INTERNAL") > 1
    });
}

/// How much room there is, as schedulers are told: an amount, and whose the object is that says so.
fn told(lab: &TestCluster) -> Vec<(String, String)> {
    let told = json(lab, &["get", "csistoragecapacities", "-n=kube-system"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |object: &Value| (text(&object["capacity"]), text(&object["metadata"]["ownerReferences"][0]["name"]));
    told["items"].as_array().into_iter().flatten().map(one).collect()
}

#[test]
fn the_role_is_enough_and_no_more() {
    let runtime = Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let driver = Arc::new(Fake::new(DRIVER).on_node(100 << 30, &[]).attaching());
    let mut serving = None;
    let audited = Audited::start_by("provisioner", Some(LEASE), |lab, kubeconfig| {
        let served = driver.serve(&lab.folder().join("csi.sock")).expect("a driver is served");
        let flags = ["--leader-election", "--leader-election-namespace=kube-system"];
        start(lab, kubeconfig, serving.insert(served), &flags)
    });
    let Some(audited) = audited else { return };
    let lab = &audited.lab;
    let controller = start_controller(lab);
    make_snapshot(lab);
    make(lab, OBJECTS);
    let is_told = |amount: &str| told(lab) == [(amount.to_owned(), "csi-driver".to_owned())];
    eventually("it is told how much room there is", || is_told("100Gi"));
    have_volumes_made(lab);
    eventually("it is told how much is left", || is_told("95Gi"));

    lab.kubectl(["delete", KUBECTL_TIMEOUT, "pvc", "--all"]).expect("the claims go");
    eventually("the volumes go", || lab.kubectl(["get", "pv", "-o=name"]).is_ok_and(|volumes| volumes.is_empty()));
    assert!(driver.volumes().is_empty(), "and what was behind them");
    lab.kubectl(["delete", "storageclass", "later"]).expect("a class goes");
    eventually("nothing is told of a class that is gone", || told(lab).is_empty());
    drop(controller);
    let roles = [
        json(lab, &["get", "clusterrole", "bindery-csi"]),
        json(lab, &["get", "role", "-n=kube-system", "bindery-csi"]),
    ];
    audited.end(&roles, &[]);
}

#[test]
fn on_each_node_the_role_is_enough() {
    let runtime = Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let Some(lab) = service_account::lab(TestCluster::builder()) else { return };
    let _controller = start_controller(&lab);
    make(&lab, OBJECTS);
    let driver = Arc::new(Fake::new(DRIVER).on_node(100 << 30, &[("example.com/zone", "z1")]));
    let serving = driver.serve(&lab.folder().join("csi.sock")).expect("a driver is served");
    let kubeconfig = format!("--kubeconfig={}", service_account::kubeconfig(&lab, "provisioner").display());
    let flags = ["--node-deployment", "--node-deployment-base-delay=200ms", "--node-deployment-max-delay=1s"];
    let program = start(&lab, &kubeconfig, &serving, &flags);
    let selected = "annotations: {volume.kubernetes.io/selected-node: n1}";
    make(&lab, &(claim("taken", "now", "", "") + &claim("placed", "later", selected, "")));
    ["taken", "placed"].iter().for_each(|name| is_bound(&lab, name));
    assert_eq!(field(&lab, "pvc/taken", r".metadata.annotations.volume\.kubernetes\.io/selected-node"), "n1");
    eventually("it is told how much is left", || told(&lab) == [("98Gi".to_owned(), "csi-driver".to_owned())]);
    lab.kubectl(["delete", KUBECTL_TIMEOUT, "pvc", "--all"]).expect("the claims go");
    eventually("the volumes go", || lab.kubectl(["get", "pv", "-o=name"]).is_ok_and(|volumes| volumes.is_empty()));
    assert!(driver.volumes().is_empty(), "and what was behind them");
    let log = program.log();
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("is forbidden: User")).collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn nothing_else_is_allowed() {
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
    denied.is_refused(&["delete pvc precious", "get secrets -n=kube-system", "get pods -n=default"]);
}
