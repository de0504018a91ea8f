//! The volume for an entry.

use bindery_model::{Annotation, Name};
use serde_json::{Map, Value, json};

use super::{ClassContext, Entry, HOST_LABEL};
use crate::naming;

/// The PersistentVolume as JSON.
pub(super) fn build(context: &ClassContext<'_>, name: &Name, seen: &Entry) -> Value {
    let config = context.class_config;
    let mut metadata = json!({
        "name": name.as_str(),
        "annotations": {Annotation::ProvisionedBy.key(): context.owner.provisioner.as_str()},
    });
    if let Some(root) = seen.root {
        metadata["annotations"][Annotation::RootDirectory.key()] = root.to_string().into();
    }
    let labels = labels(context);
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    if context.config.set_owner_reference {
        let node = &context.node.meta;
        metadata["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Node", "name": node.name.as_str(), "uid": node.uid.as_str()}]);
    }
    let mut local = json!({"path": format!("{}/{}", config.host_dir, seen.name)});
    if let Some(fs_type) = &config.fs_type {
        local["fsType"] = fs_type.as_str().into();
    }
    let mut spec = json!({
        "capacity": {"storage": naming::capacity(seen.bytes).as_str()},
        "accessModes": [config.access_mode.as_str()],
        "volumeMode": config.volume_mode.as_str(),
        "storageClassName": context.class_name,
        "local": local,
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms(context)}},
    });
    if let Some(class) = context.class {
        spec["persistentVolumeReclaimPolicy"] = class.policy.as_str().into();
        if !class.mount_options.is_empty() {
            spec["mountOptions"] = class.mount_options.iter().map(Name::as_str).collect();
        }
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec})
}

/// The configured labels: those copied from the node, then those for all volumes.
fn labels(context: &ClassContext<'_>) -> Map<String, Value> {
    let from_node = context.config.node_labels.iter().filter_map(|key| {
        let value = context.node.labels.get(key)?;
        Some((key.clone(), value.as_str().into()))
    });
    let for_all = context.config.labels.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
    from_node.chain(for_all).collect()
}

/// The host, and the additional terms of the class.
fn terms(context: &ClassContext<'_>) -> Vec<Value> {
    let host = context.node.labels.get(HOST_LABEL).map(Name::as_str).unwrap_or_default();
    let here = json!({"matchExpressions": [{"key": HOST_LABEL, "operator": "In", "values": [host]}]});
    [here].into_iter().chain(context.class_config.selector.iter().cloned()).collect()
}
