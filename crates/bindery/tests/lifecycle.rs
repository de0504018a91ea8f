//! The lifecycle controllers as a process, on a real API server and on the embedded one, with
//! kubectl. The embedded server collects garbage itself; on the real one upstream's garbage
//! collector runs.

#[macro_use]
mod cluster;
mod servers;

use std::path::PathBuf;

use bindery_test_cluster::{KUBECTL_TIMEOUT, Running};
use cluster::Cluster;
use serde_json::Value;
use servers::ApiServer;

/// Starts a cluster with the controllers.
fn start(api_server: ApiServer) -> Option<Cluster> {
    let mut cluster = Cluster::new(api_server.start()?);
    // The condition `Unused` is on by default with newer servers only.
    cluster.add_bindery("controller", &["--emulated-version=1.37"]);
    if api_server == ApiServer::Real {
        let kubeconfig = format!("--kubeconfig={}", cluster.test_cluster.kubeconfig().display());
        let only = "--controllers=garbage-collector-controller";
        let args = [&kubeconfig, only, "--leader-elect=false", "--secure-port=0"];
        cluster.add(
            cluster.test_cluster.start_program("kube-controller-manager", args).expect("the garbage collector starts"),
        );
    }
    Some(cluster)
}

impl Cluster {
    fn controller(&self) -> &Running {
        &self.programs[0]
    }

    fn apply(&self, objects: &str) {
        self.test_cluster.kubectl_with_input(objects, ["apply", "-f", "-"]).expect("objects are created");
    }

    fn kubectl(&self, words: &str) -> String {
        self.test_cluster.kubectl(words.split(' ')).unwrap_or_else(|error| panic!("kubectl {words}: {error}"))
    }

    /// A field of an object; empty if it is missing.
    fn field(&self, object: &str, path: &str) -> String {
        self.test_cluster.kubectl(["get", object, "-o", &format!("jsonpath={{{path}}}")]).unwrap_or_default()
    }

    fn becomes(&self, object: &str, path: &str, expected: &str) {
        self.eventually(&format!("{object} has {path} {expected}"), || self.field(object, path) == expected);
    }

    fn is_deleted(&self, object: &str) {
        self.kubectl(&format!("wait --for=delete {KUBECTL_TIMEOUT} {object}"));
    }

    /// The messages and counts of an object's events with this reason.
    fn events(&self, object: &str, reason: &str) -> Vec<(String, u64)> {
        let selector = format!("--field-selector=involvedObject.name={object},reason={reason}");
        let events = self.test_cluster.kubectl(["get", "events", &selector, "-o", "json"]).expect("events");
        let events: Value = serde_json::from_str(&events).expect("JSON");
        let message_and_count = |event: &Value| {
            (event["message"].as_str().unwrap_or_default().to_owned(), event["count"].as_u64().unwrap_or_default())
        };
        events["items"].as_array().into_iter().flatten().map(message_and_count).collect()
    }

    fn count_of(&self, metric: &str) -> String {
        let text = self.controller().page("/metrics").expect("metrics");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{metric}_total ")).map(str::to_owned));
        line.unwrap_or_else(|| panic!("{metric} is missing in {text}"))
    }
}

fn volume(name: &str, policy: &str, path: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: {name}}}, spec: {{capacity: {{storage: 1Gi}}, \
         accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: {policy}, storageClassName: {name}, \
         hostPath: {{path: {path}}}}}}}\n---\n"
    )
}

fn claim(name: &str, class: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}}}, spec: {{accessModes: [ReadWriteOnce], \
         resources: {{requests: {{storage: 1Gi}}}}, storageClassName: {class}}}}}\n---\n"
    )
}

/// A pod with volumes, scheduled or unscheduled.
fn pod(name: &str, node: &str, volumes: &[String]) -> String {
    let node = if node.is_empty() { String::new() } else { format!("nodeName: {node}, ") };
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{{node}containers: [{{name: c, image: none}}], \
         volumes: [{}]}}}}\n---\n",
        volumes.join(", ")
    )
}

fn ephemeral(volume: &str, class: &str) -> String {
    format!(
        "{{name: {volume}, ephemeral: {{volumeClaimTemplate: {{metadata: {{labels: {{made-for: {volume}}}}}, \
         spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}, storageClassName: {class}}}}}}}}}"
    )
}

fn named(volume: &str, claim: &str) -> String {
    format!("{{name: {volume}, persistentVolumeClaim: {{claimName: {claim}}}}}")
}

/// A folder under /tmp, where the host-path deleter may delete. Removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = PathBuf::from(format!("/tmp/bindery-lifecycle-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("data")).expect("a folder");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A pod with two ephemeral volumes gets both claims; a deleted one is recreated; both are deleted
/// with the pod.
fn ephemeral_claims_live_with_their_pod(api_server: ApiServer) {
    let Some(cluster) = start(api_server) else { return };
    let volumes: String = ["fast", "slow"].map(|name| volume(name, "Retain", &format!("/tmp/nothing-{name}"))).concat();
    // The pod is unscheduled, so a deleted claim is not protected.
    cluster.apply(&(volumes + &pod("p", "", &[ephemeral("a", "fast"), ephemeral("b", "slow")])));
    cluster.becomes("pvc/p-a", ".status.phase", "Bound");
    cluster.becomes("pvc/p-b", ".status.phase", "Bound");
    assert_eq!(cluster.field("pvc/p-a", ".metadata.labels"), r#"{"made-for":"a"}"#);
    let owner = cluster.field("pvc/p-b", ".metadata.ownerReferences[0]");
    let owner: Value = serde_json::from_str(&owner).expect("an owner");
    let uid = cluster.field("pod/p", ".metadata.uid");
    let expected = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true,
        "blockOwnerDeletion": true});
    assert_eq!(owner, expected);

    let before = cluster.field("pvc/p-a", ".metadata.uid");
    cluster.kubectl("delete --wait=false pvc/p-a");
    cluster.eventually("the claim is recreated", || {
        let uid = cluster.field("pvc/p-a", ".metadata.uid");
        !uid.is_empty() && uid != before
    });
    cluster.becomes("pv/fast", ".status.phase", "Released");
    assert_eq!(cluster.count_of("ephemeral_volume_controller_create"), "3");
    assert_eq!(cluster.count_of("ephemeral_volume_controller_create_failures"), "0");

    cluster.kubectl("delete --force --grace-period=0 pod/p");
    cluster.is_deleted("pvc/p-a");
    cluster.is_deleted("pvc/p-b");
    cluster.becomes("pv/slow", ".status.phase", "Released");
}

/// A claim of the same name with another owner is left alone and reported; once it is deleted, the
/// pod gets its own.
fn a_foreign_claim_is_left_alone(api_server: ApiServer) {
    let Some(cluster) = start(api_server) else { return };
    cluster.apply(&claim("p-a", "nowhere"));
    let foreign = cluster.field("pvc/p-a", "['metadata']['uid','ownerReferences']");
    cluster.apply(&pod("p", "", &[ephemeral("a", "nowhere"), ephemeral("b", "nowhere")]));
    cluster.eventually("the conflict is reported", || !cluster.events("p", "FailedBinding").is_empty());
    let message = "ephemeral volume a: PVC default/p-a was not created for pod default/p (pod is not owner)";
    assert_eq!(cluster.events("p", "FailedBinding"), [(message.to_owned(), 1)]);
    let source = cluster.test_cluster.kubectl([
        "get",
        "events",
        "-o",
        "jsonpath={.items[?(@.reason==\"FailedBinding\")].source}",
    ]);
    assert!(source.expect("events").contains(r#"{"component":"ephemeral_volume"}"#));
    assert_eq!(cluster.field("pvc/p-a", "['metadata']['uid','ownerReferences']"), foreign);
    assert!(
        cluster.test_cluster.kubectl(["get", "pvc/p-b"]).is_err(),
        "the first claim blocks the second, as upstream"
    );

    cluster.kubectl("delete --wait=false pvc/p-a");
    let uid = cluster.field("pod/p", ".metadata.uid");
    for name in ["pvc/p-a", "pvc/p-b"] {
        cluster.becomes(name, ".metadata.ownerReferences[0].uid", &uid);
    }
}

/// A claim in use is deleted only after its pod; then its volume is released and reclaimed. A bound
/// volume is deleted only after its claim.
fn a_claim_in_use_is_protected_from_deletion(api_server: ApiServer) {
    let Some(cluster) = start(api_server) else { return };
    let folder = Folder::new(&format!("{api_server:?}"));
    let path = folder.0.join("data").display().to_string();
    // One pod is unscheduled, and does not protect its claim.
    let pods = pod("p", "somewhere", &[named("d", "data")]) + &pod("waiting", "", &[named("d", "data")]);
    let volumes = volume("disk", "Delete", &path) + &volume("other", "Retain", "/tmp/nothing");
    cluster.apply(&(volumes + &claim("data", "disk") + &claim("more", "other") + &pods));
    cluster.becomes("pvc/data", ".status.phase", "Bound");
    cluster.becomes("pvc/more", ".status.phase", "Bound");
    let unused = ".status.conditions[?(@.type==\"Unused\")].status";
    cluster.becomes("pvc/data", unused, "False");

    cluster.kubectl("delete --wait=false pvc/data");
    cluster.kubectl("delete --wait=false pv/other");
    cluster.eventually("the controller has checked both", || {
        let log = cluster.controller().log();
        log.contains("used by Pod default/p") && log.contains("bound to PersistentVolumeClaim default/more")
    });
    assert_eq!(cluster.field("pvc/data", ".metadata.finalizers"), r#"["kubernetes.io/pvc-protection"]"#);
    assert_eq!(cluster.field("pv/other", ".metadata.finalizers"), r#"["kubernetes.io/pv-protection"]"#);
    assert!(folder.0.join("data").exists());

    cluster.kubectl("delete --force --grace-period=0 pod/p");
    cluster.is_deleted("pvc/data");
    cluster.is_deleted("pv/disk");
    assert!(!folder.0.join("data").exists(), "the data was deleted");
    cluster.kubectl(&format!("delete {KUBECTL_TIMEOUT} pvc/more"));
    cluster.is_deleted("pv/other");
}

/// An attributes class is deleted only after the claims that reference it.
fn an_attributes_class_in_use_is_protected_from_deletion(api_server: ApiServer) {
    let Some(cluster) = start(api_server) else { return };
    let class = "{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: quick}, \
                 driverName: example.com, parameters: {iops: '7'}}\n---\n";
    let claim =
        claim("data", "nowhere").replace("storageClassName:", "volumeAttributesClassName: quick, storageClassName:");
    cluster.apply(&(class.to_owned() + &claim));
    cluster.kubectl("delete --wait=false volumeattributesclass/quick");
    cluster.eventually("it is protected", || {
        cluster.controller().log().contains("referred to by PersistentVolumeClaim default/data")
    });
    assert_eq!(
        cluster.field("volumeattributesclass/quick", ".metadata.finalizers"),
        r#"["kubernetes.io/vac-protection"]"#
    );
    cluster.kubectl(&format!("delete {KUBECTL_TIMEOUT} pvc/data"));
    cluster.is_deleted("volumeattributesclass/quick");
}

/// Expanding a claim publishes an event that names the expander.
fn the_external_expander_is_reported(api_server: ApiServer) {
    let Some(cluster) = start(api_server) else { return };
    let class = "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: disk}, \
                 provisioner: kubernetes.io/no-provisioner, allowVolumeExpansion: true}\n---\n";
    cluster.apply(&(class.to_owned() + &volume("disk", "Retain", "/tmp/nothing") + &claim("data", "disk")));
    cluster.becomes("pvc/data", ".status.phase", "Bound");
    let more = r#"{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}"#;
    cluster.test_cluster.kubectl(["patch", "pvc/data", "--type=merge", "-p", more]).expect("the request is increased");
    cluster.eventually("the event is published", || !cluster.events("data", "ExternalExpanding").is_empty());
    let message = "waiting for an external controller to expand this PVC".to_owned();
    assert_eq!(cluster.events("data", "ExternalExpanding"), [(message, 1)]);
}

/// Many pods at once, some without an available volume: each gets one claim, and each waiting claim
/// gets one event.
fn waiting_claims_get_one_event_each(api_server: ApiServer) {
    const PODS: usize = 40;
    const VOLUMES: usize = 15;
    let Some(cluster) = start(api_server) else { return };
    let make = |range: std::ops::Range<usize>| -> String {
        let one = |n| {
            volume(&format!("disk-{n}"), "Retain", "/tmp/nothing").replace(&format!("Name: disk-{n}"), "Name: disk")
        };
        range.map(one).collect()
    };
    let pods: String = (0..PODS).map(|n| pod(&format!("p-{n}"), "", &[ephemeral("v", "disk")])).collect();
    // The binder sees all volumes before the first claim, so no claim waits needlessly.
    cluster.apply(&make(0..VOLUMES));
    let available = || cluster.kubectl("get pv -o jsonpath={.items[*].status.phase}").matches("Available").count();
    cluster.eventually("all volumes are Available", || available() == VOLUMES);
    cluster.apply(&pods);
    let bound = || {
        let phases = cluster.kubectl("get pvc -o jsonpath={.items[*].status.phase}");
        (phases.split(' ').count(), phases.split(' ').filter(|phase| *phase == "Bound").count())
    };
    cluster.eventually("each pod has a claim, and volumes are bound", || bound() == (PODS, VOLUMES));
    // All events are published once the last waiting claim has its event.
    let events =
        || cluster.kubectl("get events -o jsonpath={range.items[*]}{.involvedObject.name}={.count}{'\\n'}{end}");
    cluster.eventually("waiting claims have events", || events().lines().count() == PODS - VOLUMES);
    let counts = events();
    assert!(counts.lines().all(|line| line.ends_with("=1")), "{counts}");

    cluster.apply(&make(VOLUMES..PODS));
    cluster.eventually("all are bound", || bound() == (PODS, PODS));
    assert_eq!(events().lines().count(), PODS - VOLUMES, "no event was repeated: {}", events());
}

on_each_server!(
    ephemeral_claims_live_with_their_pod,
    a_foreign_claim_is_left_alone,
    a_claim_in_use_is_protected_from_deletion,
    an_attributes_class_in_use_is_protected_from_deletion,
    the_external_expander_is_reported,
    waiting_claims_get_one_event_each
);
