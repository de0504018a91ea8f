//! Removes the finalizers from VolumeSnapshots that no pending claim is restored from.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::facts::{Patch, ReadResult, WriteResult};
use crate::fields::{has_finalizer, list, text, text_or_empty};
use crate::objects::ObjectClient;
use crate::path;
use crate::prepare::SNAPSHOT_FINALIZER;
use bindery_runtime::Records;

/// The collections to list.
const SNAPSHOTS: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshots";
const CLAIMS: &str = "/api/v1/persistentvolumeclaims";

/// Removes our finalizer from all snapshots that no pending claim is restored from, and no recorded
/// request of a claim that was deleted. Claims are listed after snapshots: a finalizer is only
/// added for a claim that existed already.
pub async fn remove_stale_snapshot_finalizers(objects: &dyn ObjectClient, records: &Records) {
    let snapshots = match objects.get(SNAPSHOTS).await {
        ReadResult::Object(snapshots) => snapshots,
        ReadResult::Missing(error) | ReadResult::Failed(error) => {
            tracing::debug!(error, "cannot list VolumeSnapshots, skipping stale finalizers");
            return;
        }
    };
    let protected = |snapshot: &&Value| has_finalizer(snapshot, SNAPSHOT_FINALIZER);
    let protected: Vec<&Value> = items(&snapshots).iter().filter(protected).collect();
    if protected.is_empty() {
        return;
    }
    let ReadResult::Object(claims) = objects.get(CLAIMS).await else { return };
    let claims = [items(&claims), &recorded_claims(records)].concat();
    for patch in stale(&protected, &claims) {
        apply(objects, &patch).await;
    }
}

/// The claims of all recorded requests, which may have been deleted.
pub(crate) fn recorded_claims(records: &Records) -> Vec<Value> {
    records.all().iter().map(|record| record.request["found"]["claim"].clone()).collect()
}

/// Removes our finalizer from the snapshot that a claim was restored from, unless another claim of
/// the namespace or a recorded one is being restored from it. If this fails, the next run of
/// [`remove_stale_snapshot_finalizers`] does it.
pub(crate) async fn remove_from(
    objects: &dyn ObjectClient,
    namespace: &str,
    name: &str,
    restored: &str,
    recorded: &[Value],
) {
    let Ok(at) = path::snapshot(namespace, name) else { return };
    let ReadResult::Object(snapshot) = objects.get(&at).await else { return };
    if !has_finalizer(&snapshot, SNAPSHOT_FINALIZER) {
        return;
    }
    let Ok(collection) = path::claims(namespace) else { return };
    let ReadResult::Object(claims) = objects.get(&collection).await else { return };
    let is_other = |claim: &&Value| text_or_empty(claim, "/metadata/uid") != restored;
    let mut others = items(&claims).iter().chain(recorded).filter(is_other).filter_map(source);
    if others.any(|other| other == (namespace.to_owned(), name.to_owned())) {
        return;
    }
    apply(objects, &without_finalizer(&at, &snapshot)).await;
}

async fn apply(objects: &dyn ObjectClient, patch: &Patch) {
    match objects.patch(patch).await {
        WriteResult::Object(_) => tracing::debug!(snapshot = patch.path, "snapshot finalizer removed"),
        WriteResult::Forbidden(error) | WriteResult::Conflict(error) | WriteResult::Failed(error) => {
            tracing::debug!(snapshot = patch.path, error, "cannot remove snapshot finalizer");
        }
    }
}

/// Patches for those snapshots that no pending claim is restored from.
fn stale(protected: &[&Value], claims: &[Value]) -> Vec<Patch> {
    let needed: BTreeSet<(String, String)> = claims.iter().filter_map(source).collect();
    let key = |snapshot: &Value| {
        let text = |field| text_or_empty(snapshot, field).to_owned();
        (text("/metadata/namespace"), text("/metadata/name"))
    };
    let unused = protected.iter().filter(|snapshot| !needed.contains(&key(snapshot)));
    unused
        .filter_map(|snapshot| {
            let (namespace, name) = key(snapshot);
            Some(without_finalizer(&path::snapshot(&namespace, &name).ok()?, snapshot))
        })
        .collect()
}

fn without_finalizer(at: &str, snapshot: &Value) -> Patch {
    let mut finalizers = list(snapshot, "/metadata/finalizers");
    finalizers.retain(|finalizer| finalizer != SNAPSHOT_FINALIZER);
    Patch::finalizers(at, snapshot, &finalizers)
}

/// The namespace and name of the snapshot that a pending claim is restored from.
fn source(claim: &Value) -> Option<(String, String)> {
    if !matches!(text_or_empty(claim, "/status/phase"), "" | "Pending") {
        return None;
    }
    let home = text_or_empty(claim, "/metadata/namespace");
    let sources = ["/spec/dataSource", "/spec/dataSourceRef"].into_iter().filter_map(|field| claim.pointer(field));
    let mut snapshots = sources.filter(|source| {
        let group = text(source, "/apiGroup");
        text(source, "/kind") == Some("VolumeSnapshot") && group.is_none_or(|group| group == "snapshot.storage.k8s.io")
    });
    let source = snapshots.next()?;
    let namespace = text(source, "/namespace").filter(|namespace| !namespace.is_empty()).unwrap_or(home);
    Some((namespace.to_owned(), text_or_empty(source, "/name").to_owned()))
}

fn items(list: &Value) -> &[Value] {
    list.pointer("/items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::future::{BoxFuture, ready};
    use serde_json::json;

    use super::*;

    #[test]
    fn only_finalizers_that_no_pending_claim_needs_are_removed() {
        let snapshot = |namespace: &str, name: &str| {
            json!({"metadata": {
                "namespace": namespace, "name": name, "uid": "1", "resourceVersion": "2", "finalizers": ["x/y", SNAPSHOT_FINALIZER],
            }})
        };
        let claim = |phase: &str, source: Value| json!({"metadata": {"namespace": "ns"}, "spec": source, "status": {"phase": phase}});
        let of = |name: &str| json!({"dataSource": {"kind": "VolumeSnapshot", "name": name}});
        let claims = [
            claim("Pending", of("pending")),
            claim("", of("new")),
            claim("Bound", of("bound")),
            claim("Pending", json!({"dataSource": {"kind": "Book", "name": "book"}})),
            claim("Pending", json!({"dataSourceRef": {"kind": "VolumeSnapshot", "name": "far", "namespace": "other"}})),
            claim(
                "Pending",
                json!({"dataSource": {"kind": "VolumeSnapshot", "name": "theirs", "apiGroup": "example.com"}}),
            ),
        ];
        let names = ["pending", "new", "bound", "book", "far", "theirs"];
        let mut snapshots: Vec<Value> = names.iter().map(|name| snapshot("ns", name)).collect();
        snapshots.push(snapshot("other", "far"));
        let stale = stale(&snapshots.iter().collect::<Vec<_>>(), &claims);
        let at: Vec<&str> = stale.iter().filter_map(|patch| patch.path.rsplit('/').next()).collect();
        assert_eq!(at, ["bound", "book", "far", "theirs"]);
        assert!(stale[2].path.contains("/ns/"), "the snapshot in the other namespace is needed");
        let metadata = json!({"uid": "1", "resourceVersion": "2", "finalizers": ["x/y"]});
        assert_eq!(stale[0].body, json!({"metadata": metadata}));
    }

    /// A snapshot with our finalizer, and claims.
    struct Objects {
        claims: Vec<Value>,
        patched: Mutex<usize>,
    }

    impl ObjectClient for Objects {
        fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, ReadResult> {
            let found = match path.ends_with("/persistentvolumeclaims") {
                true => json!({"items": self.claims}),
                false => json!({"metadata": {"uid": "1", "resourceVersion": "2", "finalizers": [SNAPSHOT_FINALIZER]}}),
            };
            Box::pin(ready(ReadResult::Object(found)))
        }

        fn patch<'a>(&'a self, _: &'a Patch) -> BoxFuture<'a, WriteResult> {
            *self.patched.lock().expect("no test panics with the lock") += 1;
            Box::pin(ready(WriteResult::Object(Value::Null)))
        }
    }

    #[tokio::test]
    async fn snapshot_keeps_its_finalizer_while_another_claim_is_restored_from_it() {
        let claim = |uid: &str, phase: &str, field: &str, name: &str| {
            let source = json!({"kind": "VolumeSnapshot", "name": name});
            json!({"metadata": {"namespace": "ns", "uid": uid}, "spec": {field: source}, "status": {"phase": phase}})
        };
        let removed = async |claims: Vec<Value>, recorded: Vec<Value>| {
            let objects = Objects { claims, patched: Mutex::new(0) };
            remove_from(&objects, "ns", "snap", "u1", &recorded).await;
            objects.patched.into_inner().expect("no test panics with the lock")
        };
        let own = claim("u1", "Pending", "dataSource", "snap");
        let done = claim("u2", "Bound", "dataSource", "snap");
        let elsewhere = claim("u3", "Pending", "dataSource", "other");
        assert_eq!(removed(vec![own.clone(), done, elsewhere], vec![own.clone()]).await, 1, "nothing else needs it");
        for field in ["dataSource", "dataSourceRef"] {
            let other = claim("u4", "Pending", field, "snap");
            assert_eq!(removed(vec![own.clone(), other.clone()], vec![]).await, 0, "a claim needs it");
            assert_eq!(removed(vec![own.clone()], vec![other]).await, 0, "the request of a deleted claim needs it");
        }
    }
}
