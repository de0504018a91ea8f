//! The writes that make the CSIStorageCapacity objects match the driver's capacity.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schedule::Item;
use super::segments::Segment;
use crate::facts::Patch;
use crate::fields::{bytes, text_or_empty, texts};
use crate::volume::in_binary_units;

/// The capacity of a class in a topology segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// As the driver reports it.
    Known {
        /// The available capacity in bytes.
        bytes: i64,
        /// The maximum volume size in bytes.
        maximum: Option<i64>,
    },
    /// GetCapacity was not called, or failed: an existing object is kept.
    Unknown,
}

/// The labels and owner of a provisioner's objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    /// The objects' namespace.
    pub namespace: String,
    /// The driver's name.
    pub driver: String,
    /// The provisioner that manages the objects.
    pub managed_by: String,
    /// The owner reference.
    pub owner: Option<Value>,
}

impl Identity {
    pub(super) fn labels(&self) -> [(&'static str, &str); 2] {
        [("csi.storage.k8s.io/drivername", &self.driver), ("csi.storage.k8s.io/managed-by", &self.managed_by)]
    }

    /// The API path of the collection.
    pub(super) fn collection(&self) -> String {
        format!("/apis/storage.k8s.io/v1/namespaces/{}/csistoragecapacities", self.namespace)
    }
}

/// A write.
#[derive(Debug, Clone, PartialEq)]
pub enum CapacityWrite {
    /// Create this object.
    Create(Value),
    /// Patch an object.
    Patch(Patch),
    /// Delete an object, if it has not changed.
    Delete {
        /// The object's path.
        path: String,
        /// The UID and resourceVersion that were read.
        preconditions: Value,
    },
}

/// The writes after which there is exactly one object for every class and segment, with the class
/// and segment of each.
pub(super) fn plan(
    identity: &Identity,
    wanted: &BTreeMap<Item, Capacity>,
    existing: &[Value],
) -> Vec<(Item, CapacityWrite)> {
    let (mut kept, mut writes) = (BTreeMap::new(), Vec::new());
    for object in existing {
        let key = key_of(object);
        // Delete duplicates.
        if !wanted.contains_key(&key) || kept.insert(key.clone(), object).is_some() {
            writes.push((key, delete(identity, object)));
        }
    }
    for (key, capacity) in wanted {
        let Capacity::Known { bytes, maximum } = *capacity else { continue };
        match kept.get(key) {
            None => writes.push((key.clone(), CapacityWrite::Create(create(identity, key, bytes, maximum)))),
            Some(object) => {
                writes.extend(change(identity, object, bytes, maximum).map(|write| (key.clone(), write)));
            }
        }
    }
    writes
}

fn key_of(object: &Value) -> Item {
    let class = text_or_empty(object, "/storageClassName").to_owned();
    let is_plain = object.pointer("/nodeTopology/matchExpressions").is_none();
    match object.pointer("/nodeTopology").filter(|_| is_plain) {
        Some(_) => (class, texts(object, "/nodeTopology/matchLabels")),
        // Not written by us: no topology matches no node, and we do not use expressions.
        None => (String::new(), Segment::new()),
    }
}

fn create(identity: &Identity, (class, segment): &Item, bytes: i64, maximum: Option<i64>) -> Value {
    let labels: Map<String, Value> =
        identity.labels().into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let mut object = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"generateName": "csisc-", "namespace": identity.namespace, "labels": labels},
        "storageClassName": class,
        "nodeTopology": if segment.is_empty() { json!({}) } else { json!({"matchLabels": segment}) },
        "capacity": in_binary_units(bytes),
    });
    if let Some(maximum) = maximum {
        object["maximumVolumeSize"] = in_binary_units(maximum).into();
    }
    if let Some(owner) = &identity.owner {
        object["metadata"]["ownerReferences"] = json!([owner]);
    }
    object
}

/// The patch for an existing object, if it is out of date.
fn change(identity: &Identity, object: &Value, bytes_now: i64, maximum: Option<i64>) -> Option<CapacityWrite> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
    let missing = identity.owner.as_ref().filter(|owner| !owners.iter().any(|other| other["uid"] == owner["uid"]));
    let is_same = bytes(object, "/capacity") == Some(bytes_now) && bytes(object, "/maximumVolumeSize") == maximum;
    if is_same && missing.is_none() {
        return None;
    }
    let mut metadata = seen(object);
    if let Some(owner) = missing {
        metadata["ownerReferences"] = owners.into_iter().chain([owner.clone()]).collect();
    }
    let body = json!({
        "metadata": metadata,
        "capacity": in_binary_units(bytes_now),
        "maximumVolumeSize": maximum.map(in_binary_units),
    });
    Some(CapacityWrite::Patch(Patch { path: path(identity, object), body }))
}

fn delete(identity: &Identity, object: &Value) -> CapacityWrite {
    CapacityWrite::Delete { path: path(identity, object), preconditions: seen(object) }
}

/// The preconditions for a write.
fn seen(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]})
}

fn path(identity: &Identity, object: &Value) -> String {
    format!("{}/{}", identity.collection(), text_or_empty(object, "/metadata/name"))
}

#[cfg(test)]
mod tests;
