//! What has to be written so that what is told is what is.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::segments::Place;
use crate::answer::in_binary_units;
use crate::facts::Patch;
use crate::fields::{bytes, text_or_empty, texts};

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// So much, and so much at most for one volume, if the driver says so.
    Known {
        /// All together, in bytes.
        bytes: i64,
        /// For one volume, in bytes.
        largest: Option<i64>,
    },
    /// The driver could not be asked: whatever was told stays.
    Unknown,
}

/// Whose objects they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Identity {
    /// The namespace that they are in.
    pub namespace: String,
    /// The driver that has the room.
    pub driver: String,
    /// Who looks after them.
    pub managed_by: String,
    /// With whom they go, as an owner reference.
    pub owner: Option<Value>,
}

impl Identity {
    /// The objects' labels.
    pub(super) fn labels(&self) -> [(&'static str, &str); 2] {
        [("csi.storage.k8s.io/drivername", &self.driver), ("csi.storage.k8s.io/managed-by", &self.managed_by)]
    }

    /// Where the objects are.
    pub(super) fn collection(&self) -> String {
        format!("/apis/storage.k8s.io/v1/namespaces/{}/csistoragecapacities", self.namespace)
    }
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// Create this.
    Create(Value),
    /// Change one.
    Change(Patch),
    /// Delete the one at this path, if it still is the one that was seen.
    Delete {
        /// Where it is.
        path: String,
        /// What has to hold: its UID, and its resourceVersion.
        preconditions: Value,
    },
}

/// What is to be done so that there is one object for every class and place, and no other.
pub fn plan(identity: &Identity, wanted: &BTreeMap<(String, Place), Room>, existing: &[Value]) -> Vec<Deed> {
    let (mut kept, mut deeds) = (BTreeMap::new(), Vec::new());
    for object in existing {
        let key = key_of(object);
        // Of two that say the same, the second goes.
        if !wanted.contains_key(&key) || kept.insert(key, object).is_some() {
            deeds.push(delete(identity, object));
        }
    }
    for (key, room) in wanted {
        let Room::Known { bytes, largest } = *room else { continue };
        match kept.get(key) {
            None => deeds.push(Deed::Create(create(identity, key, bytes, largest))),
            Some(object) => deeds.extend(change(identity, object, bytes, largest)),
        }
    }
    deeds
}

fn key_of(object: &Value) -> (String, Place) {
    let class = text_or_empty(object, "/storageClassName").to_owned();
    let is_plain = object.pointer("/nodeTopology/matchExpressions").is_none();
    match object.pointer("/nodeTopology").filter(|_| is_plain) {
        Some(_) => (class, texts(object, "/nodeTopology/matchLabels")),
        // No place of ours: none at all matches no node, and expressions we do not write.
        None => (String::new(), Place::new()),
    }
}

fn create(identity: &Identity, (class, place): &(String, Place), bytes: i64, largest: Option<i64>) -> Value {
    let labels: Map<String, Value> =
        identity.labels().into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let mut object = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"generateName": "csisc-", "namespace": identity.namespace, "labels": labels},
        "storageClassName": class,
        "nodeTopology": if place.is_empty() { json!({}) } else { json!({"matchLabels": place}) },
        "capacity": in_binary_units(bytes),
    });
    if let Some(largest) = largest {
        object["maximumVolumeSize"] = in_binary_units(largest).into();
    }
    if let Some(owner) = &identity.owner {
        object["metadata"]["ownerReferences"] = json!([owner]);
    }
    object
}

/// What has to be changed of an object that is there, if anything.
fn change(identity: &Identity, object: &Value, bytes_now: i64, largest: Option<i64>) -> Option<Deed> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
    let missing = identity.owner.as_ref().filter(|owner| !owners.iter().any(|other| other["uid"] == owner["uid"]));
    let is_same = bytes(object, "/capacity") == Some(bytes_now) && bytes(object, "/maximumVolumeSize") == largest;
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
        "maximumVolumeSize": largest.map(in_binary_units),
    });
    Some(Deed::Change(Patch { path: path(identity, object), body }))
}

fn delete(identity: &Identity, object: &Value) -> Deed {
    Deed::Delete { path: path(identity, object), preconditions: seen(object) }
}

/// Which object was seen, in which state.
fn seen(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]})
}

fn path(identity: &Identity, object: &Value) -> String {
    format!("{}/{}", identity.collection(), text_or_empty(object, "/metadata/name"))
}

#[cfg(test)]
mod tests;
