//! A recorded state: its objects and actions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::server::Server;

pub const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
pub const VOLUMES: &str = "/api/v1/persistentvolumes";
pub const EVENTS: &str = "/api/v1/namespaces/default/events";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
pub const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const SNAPSHOTS: &str = "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots";
pub const CONTENTS: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Creates the objects of a state. Returns the UIDs of its claims with their names.
pub async fn set_up(server: &Server, state: &Value) -> BTreeMap<String, String> {
    for secret in list(&state["secrets"]) {
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": "default"},
            "stringData": {"user": secret},
        });
        server.create(SECRETS, &object).await.expect("a secret");
    }
    server.create(CLASSES, &class(&state["class"])).await.expect("a class");
    let (mut uids, mut made) = (BTreeMap::new(), BTreeSet::new());
    for described in list(&state["claims"]) {
        let source = &described["source"];
        if source["kind"] == "VolumeSnapshot" && made.insert(text(&source["name"])) {
            snapshot(server, source, text(&state["class"]["provisioner"])).await;
        }
        // A rejected object has no effect.
        if let Ok(created) = server.create(CLAIMS, &claim(described, text(&state["class"]["name"]))).await {
            uids.insert(text(&created["metadata"]["uid"]).to_owned(), text(&described["name"]).to_owned());
        }
    }
    uids
}

/// Applies an action to a state. An action that no longer applies has no effect.
pub async fn act(server: &Server, action: &Value, uids: &BTreeMap<String, String>) {
    let name = text(&action["name"]);
    let uid = uids.iter().find(|(_, claim)| *claim == name).map_or("none", |(uid, _)| uid);
    let (claim, volume) = (format!("{CLAIMS}/{name}"), format!("{VOLUMES}/pvc-{uid}"));
    let _ = match text(&action["do"]) {
        "delete-claim" => server.delete(&claim).await,
        "delete-volume" => server.delete(&volume).await,
        "set-reclaim" => {
            server.patch(&volume, &json!({"spec": {"persistentVolumeReclaimPolicy": action["value"]}})).await
        }
        "select-node" => {
            server.patch(&claim, &json!({"metadata": {"annotations": {SELECTED_NODE: action["node"]}}})).await
        }
        other => panic!("unknown action {other}"),
    };
}

fn class(described: &Value) -> Value {
    let mut class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": described["name"]},
    });
    for field in ["provisioner", "reclaimPolicy", "volumeBindingMode", "parameters", "mountOptions"] {
        if let Some(value) = described.get(field) {
            class[field] = value.clone();
        }
    }
    if let Some(terms) = described.get("allowedTopologies") {
        let term = |term: &Value| {
            let one = |(key, values): (&String, &Value)| json!({"key": key, "values": values});
            let labels: Vec<Value> = term.as_object().into_iter().flatten().map(one).collect();
            json!({"matchLabelExpressions": labels})
        };
        class["allowedTopologies"] = list(terms).iter().map(term).collect();
    }
    class
}

fn claim(described: &Value, class: &str) -> Value {
    let mut spec = Map::from_iter([
        ("accessModes".to_owned(), described["accessModes"].clone()),
        ("storageClassName".to_owned(), class.into()),
        ("resources".to_owned(), json!({"requests": {"storage": described["request"]}})),
    ]);
    for field in ["volumeMode", "selector"] {
        spec.extend(described.get(field).map(|value| (field.to_owned(), value.clone())));
    }
    if let Some(source) = described.get("source") {
        let (kind, name) = (&source["kind"], &source["name"]);
        let (field, reference) = match text(kind) {
            "VolumeSnapshot" => {
                ("dataSource", json!({"kind": kind, "name": name, "apiGroup": "snapshot.storage.k8s.io"}))
            }
            "Book" => ("dataSourceRef", json!({"kind": kind, "name": name, "apiGroup": "example.com"})),
            _ => ("dataSource", json!({"kind": kind, "name": name})),
        };
        spec.insert(field.into(), reference);
    }
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": described["name"], "namespace": "default", "annotations": described["ann"],
            "finalizers": described.get("finalizers").cloned().unwrap_or_else(|| json!([])),
        },
        "spec": spec,
    })
}

/// Creates a snapshot with its content.
async fn snapshot(server: &Server, source: &Value, driver: &str) {
    let (name, condition) = (text(&source["name"]), text(&source["state"]));
    if condition == "missing" {
        return;
    }
    let content = format!("{name}-content");
    let is_ready = condition != "not-ready" && condition != "error";
    let size = if condition == "larger" { "2Ti" } else { "100Ki" };
    let mut status = json!({"readyToUse": is_ready, "boundVolumeSnapshotContentName": content, "restoreSize": size});
    if condition == "error" {
        status["error"] = json!({"message": "the snapshot failed"});
    }
    let snapshot = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"source": {"volumeSnapshotContentName": content}}, "status": status,
    });
    let made = server.create(SNAPSHOTS, &snapshot).await.expect("a snapshot");
    if condition == "no-content" {
        return;
    }
    let driver = if condition == "other-driver" { "other.example.com" } else { driver };
    let handle = format!("{name}-handle");
    let bytes: i64 = if condition == "larger" { 2 << 40 } else { 102_400 };
    let content = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent", "metadata": {"name": content},
        "spec": {
            "deletionPolicy": "Retain", "driver": driver, "source": {"snapshotHandle": handle},
            "volumeSnapshotRef": {
                "kind": "VolumeSnapshot", "namespace": "default", "name": name, "uid": made["metadata"]["uid"],
            },
        },
        "status": {"readyToUse": true, "snapshotHandle": handle, "restoreSize": bytes},
    });
    server.create(CONTENTS, &content).await.expect("a snapshot content");
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
