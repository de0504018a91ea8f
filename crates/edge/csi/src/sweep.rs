//! Snapshots that were guarded while claims were filled from them, and that nobody needs any more.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::facts::{Found, Patch, Wrote};
use crate::fields::{has_finalizer, list, text, text_or_empty};
use crate::look::Look;
use crate::path;
use crate::prepare::SNAPSHOT_KEPT;

/// Where all snapshots are, and all claims.
const SNAPSHOTS: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshots";
const CLAIMS: &str = "/api/v1/persistentvolumeclaims";

/// Lets go of all snapshots that no claim is being filled from. Claims are read after snapshots: whoever guarded one of those did
/// so for a claim that was there already.
pub async fn sweep(look: &dyn Look) {
    let snapshots = match look.get(SNAPSHOTS).await {
        Found::Object(snapshots) => snapshots,
        Found::Missing(error) | Found::Failed(error) => {
            tracing::debug!(error, "snapshots cannot be listed: none that was left guarded is looked for");
            return;
        }
    };
    let guarded = |snapshot: &&Value| has_finalizer(snapshot, SNAPSHOT_KEPT);
    let guarded: Vec<&Value> = items(&snapshots).iter().filter(guarded).collect();
    if guarded.is_empty() {
        return;
    }
    let Found::Object(claims) = look.get(CLAIMS).await else { return };
    for patch in forgotten(&guarded, items(&claims)) {
        let_go(look, &patch).await;
    }
}

/// Lets go of the snapshot that a claim was filled from. The next sweep does so where this fails.
pub(crate) async fn release(look: &dyn Look, namespace: &str, name: &str) {
    let Ok(at) = path::snapshot(namespace, name) else { return };
    let Found::Object(snapshot) = look.get(&at).await else { return };
    if has_finalizer(&snapshot, SNAPSHOT_KEPT) {
        let_go(look, &unguarded(&at, &snapshot)).await;
    }
}

async fn let_go(look: &dyn Look, patch: &Patch) {
    match look.patch(patch).await {
        Wrote::Object(_) => tracing::debug!(snapshot = patch.path, "is not needed any more"),
        Wrote::Forbidden(error) | Wrote::Changed(error) | Wrote::Failed(error) => {
            tracing::debug!(snapshot = patch.path, error, "could not be let go of");
        }
    }
}

/// What lets go of those guarded snapshots that no claim is being filled from.
fn forgotten(guarded: &[&Value], claims: &[Value]) -> Vec<Patch> {
    let needed: BTreeSet<(String, String)> = claims.iter().filter_map(source).collect();
    let place = |snapshot: &Value| {
        let text = |field| text_or_empty(snapshot, field).to_owned();
        (text("/metadata/namespace"), text("/metadata/name"))
    };
    let idle = guarded.iter().filter(|snapshot| !needed.contains(&place(snapshot)));
    idle.filter_map(|snapshot| {
        let (namespace, name) = place(snapshot);
        Some(unguarded(&path::snapshot(&namespace, &name).ok()?, snapshot))
    })
    .collect()
}

fn unguarded(at: &str, snapshot: &Value) -> Patch {
    let mut finalizers = list(snapshot, "/metadata/finalizers");
    finalizers.retain(|finalizer| finalizer != SNAPSHOT_KEPT);
    Patch::finalizers(at, snapshot, &finalizers)
}

/// The snapshot that a claim is being filled from: its namespace, and its name.
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
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_nobody_is_filled_from_is_let_go_of() {
        let snapshot = |namespace: &str, name: &str| {
            json!({"metadata": {
                "namespace": namespace, "name": name, "uid": "1", "resourceVersion": "2", "finalizers": ["x/y", SNAPSHOT_KEPT],
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
        let forgotten = forgotten(&snapshots.iter().collect::<Vec<_>>(), &claims);
        let at: Vec<&str> = forgotten.iter().filter_map(|patch| patch.path.rsplit('/').next()).collect();
        assert_eq!(at, ["bound", "book", "far", "theirs"]);
        assert!(forgotten[2].path.contains("/ns/"), "the one in the other namespace is needed");
        let metadata = json!({"uid": "1", "resourceVersion": "2", "finalizers": ["x/y"]});
        assert_eq!(forgotten[0].body, json!({"metadata": metadata}));
    }
}
