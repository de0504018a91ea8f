//! The one way into the store: every change is encoded once, logged, and noticed by whoever has work to do because of it.

use super::{Api, Moment};
use crate::chance::Chance;
use crate::kinds::Kind;
use crate::store::{self, Stored};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

/// The namespaces that every cluster has, in the order in which they are made.
const SYSTEM_NAMESPACES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "default"];

impl Api {
    /// Keeps an object at a new revision.
    pub(super) fn commit(&mut self, kind: &Kind, key: &str, object: &Value, now: Timestamp) -> Arc<Stored> {
        self.commit_as(kind, key, object, now, false)
    }

    /// Keeps a new object.
    pub(super) fn commit_new(&mut self, kind: &Kind, key: &str, object: &Value, now: Timestamp) -> Arc<Stored> {
        self.commit_as(kind, key, object, now, kind.manners.starts_as_draft)
    }

    fn commit_as(&mut self, kind: &Kind, key: &str, object: &Value, now: Timestamp, is_draft: bool) -> Arc<Stored> {
        let encoded = Stored { is_draft, ..store::encode(object, self.store.revision() + 1) };
        let before = self.store.get(kind.space, key).cloned();
        self.chores.notice_put((kind.space, key), before.as_deref(), &encoded, object, now);
        self.store.put(kind.space, key, encoded, now)
    }

    /// Takes an object away at a new revision. Watches are shown what it was last.
    pub(super) fn commit_removal(&mut self, kind: &Kind, key: &str, last: &Value, now: Timestamp) -> Arc<Stored> {
        let encoded = store::encode(last, self.store.revision() + 1);
        self.chores.notice_removal(kind.space, key, &encoded);
        self.store.remove(kind.space, key, encoded, now)
    }

    pub(super) fn make_system_namespaces(&mut self, moment: &Moment) {
        let kind = &crate::kinds::namespace::KIND;
        let mut chance = Chance::new(moment.seed);
        for name in SYSTEM_NAMESPACES {
            if self.store.get(kind.space, name).is_some() {
                continue;
            }
            let object = json!({
                "kind": "Namespace",
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "uid": chance.uid(),
                    "creationTimestamp": super::call::second(moment.now),
                    "labels": {"kubernetes.io/metadata.name": name},
                    "managedFields": [{
                        "manager": "kube-apiserver", "operation": "Update", "apiVersion": "v1",
                        "time": super::call::second(moment.now), "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}},
                    }],
                },
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            });
            self.commit(kind, name, &object, moment.now);
        }
    }
}
