//! The only way to change the store: encodes each object once, writes it, and updates the
//! background tasks.

use super::{Api, RequestContext};
use crate::kinds::Kind;
use crate::rng::Rng;
use crate::status::Status;
use crate::store::{self, Stored};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// The namespaces that every cluster has, in the order of their creation.
const SYSTEM_NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "default"];

/// The largest object that is stored: etcd's limit for a request.
const OBJECT_BYTES_MAX: usize = 3 << 19;

impl Api {
    /// Stores an object at a new revision, whatever its size: for changes that lead to a deletion.
    pub(super) fn commit(&mut self, kind: &Kind, key: &str, object: &Value, now: Timestamp) -> Arc<Stored> {
        let encoded = store::encode(object, self.store.revision() + 1);
        self.put(kind, key, encoded, object, now)
    }

    /// Stores an object that a client has changed.
    pub(super) fn commit_update(
        &mut self,
        kind: &Kind,
        key: &str,
        object: &Value,
        now: Timestamp,
    ) -> Result<Arc<Stored>, Status> {
        let encoded = store::encode(object, self.store.revision() + 1);
        self.check_size(kind, key, &encoded)?;
        Ok(self.put(kind, key, encoded, object, now))
    }

    /// Stores a new object.
    pub(super) fn commit_new(
        &mut self,
        kind: &Kind,
        key: &str,
        object: &Value,
        now: Timestamp,
    ) -> Result<Arc<Stored>, Status> {
        let is_draft = kind.behavior.starts_as_draft;
        let encoded = Stored { is_draft, ..store::encode(object, self.store.revision() + 1) };
        self.check_size(kind, key, &encoded)?;
        Ok(self.put(kind, key, encoded, object, now))
    }

    /// Rejects what is too large, with etcd's messages. An object that does not grow is accepted by
    /// a full store, so that finalizers can be removed.
    fn check_size(&self, kind: &Kind, key: &str, new: &Stored) -> Result<(), Status> {
        let before = self.store.get(kind.bucket(), key).map_or(0, |before| before.size());
        if new.size() <= before {
            return Ok(());
        }
        if new.size() > OBJECT_BYTES_MAX {
            return Err(Status::failure(500, "", "etcdserver: request is too large"));
        }
        let (size, max) = (self.store.bytes() - before + new.size(), self.store.settings().store_bytes);
        if size > max {
            let why = "etcdserver: mvcc: database space exceeded";
            let message = format!("{why}: all objects would have {size} bytes, and the limit is {max}. Delete objects");
            return Err(Status::failure(507, "InsufficientStorage", message));
        }
        Ok(())
    }

    fn put(&mut self, kind: &Kind, key: &str, encoded: Stored, object: &Value, now: Timestamp) -> Arc<Stored> {
        let before = self.store.get(kind.bucket(), key).cloned();
        self.background.on_put((kind.bucket(), key), before.as_deref(), &encoded, object, now);
        self.store.put(kind.bucket(), key, encoded, now)
    }

    /// Deletes an object at a new revision. Watches receive its last state.
    pub(super) fn commit_removal(&mut self, kind: &Kind, key: &str, last: &Value, now: Timestamp) -> Arc<Stored> {
        let encoded = store::encode(last, self.store.revision() + 1);
        self.background.on_delete(kind.bucket(), key, &encoded);
        self.store.remove(kind.bucket(), key, encoded, now)
    }

    pub(super) fn create_system_namespaces(&mut self, context: &RequestContext) {
        let kind = &crate::kinds::namespace::KIND;
        let mut rng = Rng::new(context.seed);
        for name in SYSTEM_NAMESPACES {
            if self.store.get(kind.bucket(), name).is_some() {
                continue;
            }
            let object = json!({
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "uid": rng.uid(),
                    "creationTimestamp": super::write::second(context.now),
                    "labels": {"kubernetes.io/metadata.name": name},
                    "managedFields": [{
                        "manager": "kube-apiserver", "operation": "Update", "apiVersion": "v1",
                        "time": super::write::second(context.now), "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}},
                    }],
                },
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            });
            self.commit(kind, name, &object, context.now);
        }
    }
}
