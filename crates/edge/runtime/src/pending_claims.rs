//! Unbound claims as received, for workers that need more than the fields that rules read. They
//! come from the watch, so that no claim has to be read again before it is provisioned.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_model::{ClaimKey, Name};
use serde_json::Value;

/// The claims without a volume. One that is bound or deleted is dropped.
#[derive(Clone, Default)]
pub struct PendingClaims(Arc<Mutex<BTreeMap<ClaimKey, Arc<Value>>>>);

impl PendingClaims {
    /// A claim in this version or a later one.
    pub fn get(&self, key: &ClaimKey, uid: &Name, version: u64) -> Option<Arc<Value>> {
        let claim = self.claims().get(key).cloned()?;
        let seen = claim["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok()).unwrap_or(0);
        (claim["metadata"]["uid"] == **uid && seen >= version).then_some(claim)
    }

    /// A claim was created or changed.
    pub(crate) fn seen(&self, json: &str) {
        let Ok(mut claim) = serde_json::from_str::<Value>(json) else { return };
        let key = key(&claim);
        if claim["spec"]["volumeName"].as_str().is_some_and(|volume| !volume.is_empty()) {
            self.claims().remove(&key);
            return;
        }
        if let Some(metadata) = claim["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        self.claims().insert(key, Arc::new(claim));
    }

    /// A claim was deleted.
    pub(crate) fn deleted(&self, json: &str) {
        if let Ok(claim) = serde_json::from_str::<Value>(json) {
            self.claims().remove(&key(&claim));
        }
    }

    /// The claims are listed again.
    pub(crate) fn clear(&self) {
        self.claims().clear();
    }

    fn claims(&self) -> MutexGuard<'_, BTreeMap<ClaimKey, Arc<Value>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(claim: &Value) -> ClaimKey {
    let text = |field: &str| claim["metadata"][field].as_str().unwrap_or_default();
    ClaimKey::new(text("namespace"), text("name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_unbound_claims_are_kept_and_older_versions_are_not_used() {
        let claims = PendingClaims::default();
        let claim = |version: &str, volume: Option<&str>| {
            let metadata =
                json!({"namespace": "ns", "name": "c", "uid": "u", "resourceVersion": version, "managedFields": []});
            json!({"metadata": metadata, "spec": {"volumeName": volume}}).to_string()
        };
        let get = |uid: &str, version| claims.get(&ClaimKey::new("ns", "c"), &uid.into(), version);
        assert_eq!(get("u", 0), None);
        claims.seen(&claim("5", None));
        assert!(get("u", 5).is_some_and(|claim| claim["metadata"].get("managedFields").is_none()));
        assert_eq!((get("u", 6), get("other", 5)), (None, None), "too old, or another claim");
        claims.seen(&claim("7", Some("v")));
        assert_eq!(get("u", 5), None, "it is bound");
        claims.seen(&claim("8", None));
        claims.deleted(&claim("9", None));
        assert_eq!(get("u", 5), None, "it is deleted");
        claims.seen(&claim("8", None));
        claims.clear();
        assert_eq!(get("u", 5), None);
    }
}
