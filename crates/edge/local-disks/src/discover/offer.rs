//! The volume that an entry becomes.

use bindery_model::{Annotation, Name};
use serde_json::{Map, Value, json};

use super::{HOST_LABEL, Scene};
use crate::naming;

/// The whole volume, as JSON.
pub(super) fn volume(scene: &Scene<'_>, name: &Name, entry: &str, bytes: u64) -> Value {
    let config = scene.class_config;
    let mut metadata = json!({
        "name": name.as_str(),
        "annotations": {Annotation::ProvisionedBy.key(): scene.owner.provisioner.as_str()},
    });
    let labels = labels(scene);
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    if scene.config.is_owned_by_node {
        let node = &scene.node.meta;
        metadata["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Node", "name": node.name.as_str(), "uid": node.uid.as_str()}]);
    }
    let mut local = json!({"path": format!("{}/{entry}", config.host_dir)});
    if let Some(fs_type) = &config.fs_type {
        local["fsType"] = fs_type.as_str().into();
    }
    let mut spec = json!({
        "capacity": {"storage": naming::capacity(bytes).as_str()},
        "accessModes": [config.access_mode.as_str()],
        "volumeMode": config.volume_mode.as_str(),
        "storageClassName": scene.class_name,
        "local": local,
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms(scene)}},
    });
    if let Some(class) = scene.class {
        spec["persistentVolumeReclaimPolicy"] = class.policy.as_str().into();
        if !class.mount_options.is_empty() {
            spec["mountOptions"] = class.mount_options.iter().map(Name::as_str).collect();
        }
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec})
}

/// Those of the node that are wanted, where it has them; then those that all get.
fn labels(scene: &Scene<'_>) -> Map<String, Value> {
    let of_node = scene.config.node_labels.iter().filter_map(|key| {
        let value = scene.node.labels.get(key)?;
        Some((key.clone(), value.as_str().into()))
    });
    let of_all = scene.config.labels.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
    of_node.chain(of_all).collect()
}

/// This host, or whatever else is configured.
fn terms(scene: &Scene<'_>) -> Vec<Value> {
    let host = scene.node.labels.get(HOST_LABEL).map(Name::as_str).unwrap_or_default();
    let here = json!({"matchExpressions": [{"key": HOST_LABEL, "operator": "In", "values": [host]}]});
    [here].into_iter().chain(scene.class_config.selector.iter().cloned()).collect()
}
