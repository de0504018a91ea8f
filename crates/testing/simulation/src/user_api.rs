//! The side of a cluster that a user with kubectl sees: objects are created, patched and deleted
//! with the defaults, the finalizers and the validation of an API server.

use bindery_model::{Kind, ObjectKey, finalizer};
use serde_json::{Value, json};

use crate::{EngineApi, SimulatedCluster};

/// Requests of a user with kubectl.
pub trait UserApi: EngineApi {
    /// An empty cluster.
    fn empty() -> Self;

    /// Creates an object, with defaults and a protection finalizer. Returns its UID.
    fn create(&mut self, key: &ObjectKey, object: Value) -> Result<String, ApiError>;

    /// Applies a merge patch to an object. A patch that changes nothing does not change the
    /// version.
    fn patch(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), ApiError>;

    /// Applies a merge patch to the status of an object.
    fn patch_status(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), ApiError>;

    /// Deletes an object, or marks it as deleted if it has finalizers.
    fn delete(&mut self, key: &ObjectKey) -> Result<(), ApiError>;

    /// The JSON of an object.
    fn get(&self, key: &ObjectKey) -> Option<Value>;

    /// All claims and volumes, by key.
    fn objects(&self) -> Vec<(ObjectKey, Value)>;
}

/// Why an API server rejects a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiError {
    /// An object of that name exists.
    AlreadyExists,
    /// The object does not exist.
    NotFound,
    /// The object or the change is invalid.
    Invalid(String),
}

impl ApiError {
    /// The reason in an API status.
    pub fn reason(&self) -> &'static str {
        match self {
            ApiError::AlreadyExists => "AlreadyExists",
            ApiError::NotFound => "NotFound",
            ApiError::Invalid(_) => "Invalid",
        }
    }
}

/// Validates writes as an API server does.
impl UserApi for SimulatedCluster {
    fn empty() -> SimulatedCluster {
        let mut cluster = SimulatedCluster::default();
        cluster.check = Some(check);
        cluster
    }

    fn create(&mut self, key: &ObjectKey, mut object: Value) -> Result<String, ApiError> {
        if SimulatedCluster::get(self, key).is_some() {
            return Err(ApiError::AlreadyExists);
        }
        let uid = format!("uid-{}", self.version() + 1);
        object["metadata"]["uid"] = uid.as_str().into();
        if let Some(protection) = protection_finalizer(key.kind) {
            if object["spec"]["volumeMode"].is_null() {
                object["spec"]["volumeMode"] = "Filesystem".into();
            }
            object["status"] = json!({"phase": "Pending"});
            object["metadata"]["finalizers"] = with(&object, protection);
        }
        self.put(key.kind, object);
        Ok(uid)
    }

    fn patch(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), ApiError> {
        let object = SimulatedCluster::get(self, key).ok_or(ApiError::NotFound)?;
        let mut changed = object.clone();
        json_patch::merge(&mut changed, patch);
        check(key.kind, object, &changed).map_err(ApiError::Invalid)?;
        if changed == *object {
            return Ok(());
        }
        let is_finished = is_deleting(&changed) && finalizers(&changed).next().is_none();
        if is_finished {
            self.remove(key)
        } else {
            self.put(key.kind, changed)
        }
        Ok(())
    }

    fn patch_status(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), ApiError> {
        UserApi::patch(self, key, patch)
    }

    fn delete(&mut self, key: &ObjectKey) -> Result<(), ApiError> {
        SimulatedCluster::get(self, key).ok_or(ApiError::NotFound)?;
        SimulatedCluster::delete(self, key);
        Ok(())
    }

    fn get(&self, key: &ObjectKey) -> Option<Value> {
        SimulatedCluster::get(self, key).cloned()
    }

    fn objects(&self) -> Vec<(ObjectKey, Value)> {
        SimulatedCluster::objects(self).map(|(key, object)| (key.clone(), object.clone())).collect()
    }
}

/// Validates a change of an object.
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

/// The spec of a claim is immutable, except for an unset volume or class, and for the requests and
/// the attributes class of a bound claim.
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

/// The source and the mode of a volume are immutable, and its node affinity once it is set.
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

fn protection_finalizer(kind: Kind) -> Option<&'static str> {
    let protected = [(Kind::Claim, finalizer::PVC_PROTECTION), (Kind::Volume, finalizer::PV_PROTECTION)];
    protected.into_iter().find(|(known, _)| *known == kind).map(|(_, finalizer)| finalizer)
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn with(object: &Value, protection: &str) -> Value {
    let others = finalizers(object).filter(|name| *name != protection);
    others.chain([protection]).collect::<Vec<_>>().into()
}
