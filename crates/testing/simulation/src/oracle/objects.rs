//! The API objects of a recorded state.

use bindery_model::Annotation;
use serde_json::{Value, json};

use super::{Ledger, list, text};

const STALE_UID: &str = "00000000-0000-0000-0000-00000000dead";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The node of local volumes in states without nodes.
const SOME_NODE: &str = "node-1";

pub(super) fn class_object(class: &Value) -> Value {
    let mut object = json!({"metadata": {"name": class["name"]}});
    copy(class, &mut object, &["provisioner", "volumeBindingMode", "reclaimPolicy", "allowVolumeExpansion"]);
    object
}

pub(super) fn claim_object(claim: &Value) -> Value {
    let mut spec =
        json!({"accessModes": claim["accessModes"], "resources": {"requests": {"storage": claim["request"]}}});
    if claim["class"].is_string() {
        spec["storageClassName"] = claim["class"].clone();
    }
    copy(claim, &mut spec, &["volumeMode", "selector", "volumeName"]);
    let metadata = json!({"namespace": "default", "name": claim["name"], "annotations": claim["ann"]});
    json!({"metadata": metadata, "spec": spec})
}

/// A copy of a claim without its volume; of its annotations only the selected node is kept.
pub(super) fn like(claim: &Value) -> Value {
    let node = Annotation::SelectedNode.key();
    let mut claim = claim.clone();
    claim["ann"] = claim["ann"][node].as_str().map_or(json!({}), |name| json!({node: name}));
    claim["phase"] = Value::Null;
    claim["volumeName"] = Value::Null;
    claim
}

pub(super) fn volume_object(volume: &Value, ledger: &Ledger) -> Value {
    let name = text(&volume["name"]);
    let mut spec = json!({
        "capacity": {"storage": volume["capacity"]},
        "accessModes": volume["accessModes"],
        "persistentVolumeReclaimPolicy": volume["reclaim"],
        "storageClassName": volume["class"],
    });
    copy(volume, &mut spec, &["volumeMode"]);
    let (source, value) = match text(&volume["source"]) {
        "csi" => ("csi", json!({"driver": "ex.example.com", "volumeHandle": name})),
        "hostPath" => ("hostPath", json!({"path": format!("/tmp/oracle/{name}")})),
        "nfs" => ("nfs", json!({"server": "192.0.2.1", "path": format!("/{name}")})),
        "local" => ("local", json!({"path": format!("/mnt/{name}")})),
        other => panic!("unknown source {other:?}"),
    };
    spec[source] = value;
    if source == "local" {
        spec["nodeAffinity"] = on_node(volume["node"].as_str().unwrap_or(SOME_NODE));
    }
    if let Some(claim) = volume["claimRef"]["name"].as_str() {
        spec["claimRef"] = claim_ref(claim, referred_uid(ledger, claim, text(&volume["claimRef"]["uid"])));
    }
    let mut metadata = json!({"name": name, "annotations": volume["ann"], "labels": volume["labels"]});
    copy(volume, &mut metadata, &["finalizers"]);
    json!({"metadata": metadata, "spec": spec})
}

/// The volume that an external provisioner would create for a claim, without node affinity.
pub(super) fn provisioned_object(claim: &Value, name: &str) -> Option<Value> {
    let provisioner = claim["metadata"]["annotations"][Annotation::StorageProvisioner.key()].as_str();
    let provisioner = provisioner.filter(|_| claim["spec"]["volumeName"].is_null())?;
    let spec = &claim["spec"];
    let driver = provisioner.split('/').next().unwrap_or_default();
    Some(json!({
        "metadata": {"name": name, "annotations": {Annotation::ProvisionedBy.key(): provisioner}},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "volumeMode": spec["volumeMode"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec["storageClassName"].as_str().unwrap_or_default(),
            "csi": {"driver": driver, "volumeHandle": name},
            "claimRef": claim_ref(text(&claim["metadata"]["name"]), claim["metadata"]["uid"].as_str()),
        },
    }))
}

/// A pod that selects the nodes of its state, or a fixed node, or prefers a node.
pub(super) fn pod_object(state: &str, pod: &Value, preferred: Option<&str>) -> Value {
    let named = list(&pod["claims"]).iter().enumerate();
    let named =
        named.map(|(at, claim)| json!({"name": format!("c{at}"), "persistentVolumeClaim": {"claimName": claim}}));
    let ephemeral = list(&pod["ephemeral"]).iter().map(|volume| {
        let spec = json!({
            "accessModes": volume["accessModes"],
            "storageClassName": volume["class"],
            "resources": {"requests": {"storage": volume["request"]}},
        });
        let template = json!({"metadata": {"labels": {"state": state}}, "spec": spec});
        json!({"name": volume["name"], "ephemeral": {"volumeClaimTemplate": template}})
    });
    let volumes: Vec<Value> = named.chain(ephemeral).collect();
    let mount = |volume: &Value| json!({"name": volume["name"], "mountPath": format!("/{}", text(&volume["name"]))});
    let mounts: Vec<Value> = volumes.iter().map(mount).collect();
    let (mut selector, mut affinity) = (json!({"state": state}), json!({}));
    if let Some(node) = pod["node"].as_str() {
        selector[HOSTNAME] = node.into();
    } else if let Some(node) = preferred {
        let preference = json!({"weight": 100, "preference": node_term(node)});
        affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = json!([preference]);
    }
    json!({
        "metadata": {"namespace": "default", "name": pod["name"]},
        "spec": {
            "nodeSelector": selector,
            "affinity": affinity,
            "volumes": volumes,
            "containers": [{"name": "c", "image": "i", "volumeMounts": mounts}],
        },
    })
}

pub(super) fn node_object(state: &str, node: &Value) -> Value {
    let mut labels = node["labels"].clone();
    labels[HOSTNAME] = node["name"].clone();
    labels["state"] = state.into();
    json!({"metadata": {"name": node["name"], "labels": labels}, "spec": {"unschedulable": node["unschedulable"]}})
}

/// The taints of a ready node: none, or `unschedulable`.
pub(super) fn node_taints(node: &Value) -> Value {
    let is_unschedulable = node["unschedulable"] == true;
    let taint = || json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    if is_unschedulable { taint() } else { Value::Null }
}

/// The status of a large, ready node.
pub(super) fn node_status() -> Value {
    let resources = json!({"cpu": "8", "memory": "16Gi", "pods": "110"});
    let ready = json!({
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": null,
        "lastTransitionTime": null,
    });
    json!({"capacity": resources, "allocatable": resources, "conditions": [ready]})
}

/// The node affinity of a volume that is reachable from one node only.
pub(super) fn on_node(name: &str) -> Value {
    json!({"required": {"nodeSelectorTerms": [node_term(name)]}})
}

/// A node selector term for a node name.
fn node_term(name: &str) -> Value {
    json!({"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [name]}]})
}

fn claim_ref(name: &str, uid: Option<&str>) -> Value {
    let mut claim_ref =
        json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default", "name": name});
    if let Some(uid) = uid {
        claim_ref["uid"] = uid.into();
    }
    claim_ref
}

/// The UID in the `claimRef` of a volume.
fn referred_uid<'a>(ledger: &'a Ledger, claim: &str, which: &str) -> Option<&'a str> {
    match which {
        "claim" => ledger.uids.get(claim).and_then(|uids| uids.last()).map(String::as_str),
        "stale" => Some(STALE_UID),
        _ => None,
    }
}

/// Copies fields that are set.
fn copy(from: &Value, to: &mut Value, fields: &[&str]) {
    for field in fields.iter().filter(|field| !from[**field].is_null()) {
        to[*field] = from[*field].clone();
    }
}
