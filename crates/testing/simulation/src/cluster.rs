//! What an API server does around controllers, as far as claims and volumes go: admission and defaults, and what it refuses.
//!
//! Objects are created, changed and deleted here as a person with kubectl would.

use bindery_model::{Kind, ObjectKey, finalizer};
use serde_json::{Value, json};

use crate::{Answerer, World};

/// A cluster, as a person with kubectl sees it.
pub trait Cluster: Answerer {
    /// One with nothing in it.
    fn empty() -> Self;

    /// Creates an object, with defaults and a protection finalizer. Returns its UID.
    fn create(&mut self, key: &ObjectKey, object: Value) -> Result<String, Refused>;

    /// Changes an object by a merge patch, unless the change is not allowed. One that changes nothing is no change.
    fn patch(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), Refused>;

    /// Changes an object's status by a merge patch.
    fn patch_status(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), Refused>;

    /// Deletes an object: at once, or as soon as it has no finalizers.
    fn delete(&mut self, key: &ObjectKey) -> Result<(), Refused>;

    /// An object.
    fn get(&self, key: &ObjectKey) -> Option<Value>;

    /// All claims and volumes, by key.
    fn objects(&self) -> Vec<(ObjectKey, Value)>;
}

/// Why an API server does not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// There is an object of that name.
    AlreadyExists,
    /// There is none.
    NotFound,
    /// It is not allowed, or makes no sense.
    Invalid(String),
}

impl Refused {
    /// The reason, as a status has it.
    pub fn reason(&self) -> &'static str {
        match self {
            Refused::AlreadyExists => "AlreadyExists",
            Refused::NotFound => "NotFound",
            Refused::Invalid(_) => "Invalid",
        }
    }
}

/// The world in memory is a cluster that refuses what an API server refuses.
impl Cluster for World {
    fn empty() -> World {
        let mut world = World::default();
        world.check = Some(check);
        world
    }

    fn create(&mut self, key: &ObjectKey, mut object: Value) -> Result<String, Refused> {
        if World::get(self, key).is_some() {
            return Err(Refused::AlreadyExists);
        }
        let uid = format!("uid-{}", self.version() + 1);
        object["metadata"]["uid"] = uid.as_str().into();
        if let Some(guard) = guard_of(key.kind) {
            if object["spec"]["volumeMode"].is_null() {
                object["spec"]["volumeMode"] = "Filesystem".into();
            }
            object["status"] = json!({"phase": "Pending"});
            object["metadata"]["finalizers"] = with(&object, guard);
        }
        self.put(key.kind, object);
        Ok(uid)
    }

    fn patch(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), Refused> {
        let object = World::get(self, key).ok_or(Refused::NotFound)?;
        let mut changed = object.clone();
        json_patch::merge(&mut changed, patch);
        check(key.kind, object, &changed).map_err(Refused::Invalid)?;
        if changed == *object {
            return Ok(());
        }
        let is_over = is_deleting(&changed) && finalizers(&changed).next().is_none();
        if is_over {
            self.remove(key)
        } else {
            self.put(key.kind, changed)
        }
        Ok(())
    }

    fn patch_status(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), Refused> {
        Cluster::patch(self, key, patch)
    }

    fn delete(&mut self, key: &ObjectKey) -> Result<(), Refused> {
        World::get(self, key).ok_or(Refused::NotFound)?;
        World::delete(self, key);
        Ok(())
    }

    fn get(&self, key: &ObjectKey) -> Option<Value> {
        World::get(self, key).cloned()
    }

    fn objects(&self) -> Vec<(ObjectKey, Value)> {
        World::objects(self).map(|(key, object)| (key.clone(), object.clone())).collect()
    }
}

/// What an API server finds wrong with a change.
pub fn check(kind: Kind, before: &Value, after: &Value) -> Result<(), String> {
    let has_new = finalizers(after).any(|name| !finalizers(before).any(|known| known == name));
    if is_deleting(before) && has_new {
        return Err("metadata.finalizers: no new finalizers can be added if the object is being deleted".into());
    }
    if kind == Kind::Claim {
        check_claim(before, after)
    } else if kind == Kind::Volume {
        check_volume(before, after)
    } else {
        Ok(())
    }
}

/// A claim's spec stays as it is, but for a volume or a class where there was none, and what a bound claim asks for.
fn check_claim(before: &Value, after: &Value) -> Result<(), String> {
    let mut allowed = before["spec"].clone();
    for field in ["volumeName", "storageClassName"] {
        if before["spec"][field].is_null() && !after["spec"][field].is_null() {
            allowed[field] = after["spec"][field].clone();
        }
    }
    if before["status"]["phase"] == "Bound" {
        for field in ["resources", "volumeAttributesClassName"] {
            if !after["spec"][field].is_null() {
                allowed[field] = after["spec"][field].clone();
            }
        }
    }
    if after["spec"] == allowed {
        return Ok(());
    }
    Err("spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for \
         bound claims"
        .into())
}

/// A volume's source and mode stay as they are, and its node affinity once it has one.
fn check_volume(before: &Value, after: &Value) -> Result<(), String> {
    const SOURCES: [&str; 4] = ["csi", "hostPath", "nfs", "local"];
    let differs = |field: &str| before["spec"][field] != after["spec"][field];
    if SOURCES.into_iter().any(differs) {
        return Err(
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation".into()
        );
    }
    if differs("volumeMode") {
        return Err("volumeMode: Invalid value: field is immutable".into());
    }
    if differs("nodeAffinity") && !before["spec"]["nodeAffinity"].is_null() {
        return Err("nodeAffinity: Invalid value: field is immutable, except for updating from beta label to GA".into());
    }
    Ok(())
}

fn guard_of(kind: Kind) -> Option<&'static str> {
    let protected = [(Kind::Claim, finalizer::PVC_PROTECTION), (Kind::Volume, finalizer::PV_PROTECTION)];
    protected.into_iter().find(|(known, _)| *known == kind).map(|(_, finalizer)| finalizer)
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn with(object: &Value, guard: &str) -> Value {
    let others = finalizers(object).filter(|name| *name != guard);
    others.chain([guard]).collect::<Vec<_>>().into()
}
