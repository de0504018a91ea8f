//! pv_protection_controller_test.go, TestPVProtectionController, and further cases of the
//! finalizer.

use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};
use serde_json::json;

use crate::case::{Case, put, volume};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [upstream(), further()].into_iter().flatten().collect()
}

fn forbidden() -> RequestError {
    RequestError::Error(403, "forbidden: Mock error".into())
}

const GUARD: &str = "write PersistentVolume volume1 [protection.volume.add-finalizer]";
const LET_GO: &str = "write PersistentVolume volume1 [protection.volume.remove-finalizer]";

fn upstream() -> Vec<Case> {
    vec![
        volume("PV without finalizer -> finalizer is added", "volume1")
            .before("pv volume1 1Gi Pending")
            .after("pv volume1 1Gi Pending protected")
            .requests(&[GUARD]),
        volume("PV with finalizer -> no action", "volume1")
            .before("pv volume1 1Gi Pending protected")
            .unchanged()
            .requests(&[]),
        volume("saving PV finalizer fails -> controller retries", "volume1")
            .before("pv volume1 1Gi Pending")
            .error("write", Kind::Volume, forbidden())
            .error("write", Kind::Volume, forbidden())
            .after("pv volume1 1Gi Pending")
            .stable("pv volume1 1Gi Pending protected")
            .requests(&[GUARD, GUARD, GUARD]),
        volume("deleted PV with finalizer -> finalizer is removed", "volume1")
            .before("pv volume1 1Gi Pending protected deleting")
            .after("")
            .requests(&[LET_GO]),
        volume("finalizer removal fails -> controller retries", "volume1")
            .before("pv volume1 1Gi Pending protected deleting")
            .error("write", Kind::Volume, forbidden())
            .error("write", Kind::Volume, forbidden())
            .after("pv volume1 1Gi Pending protected deleting")
            .stable("")
            .requests(&[LET_GO, LET_GO, LET_GO]),
        volume("deleted PV with finalizer + PV is bound -> finalizer is not removed", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 protected deleting")
            .unchanged()
            .requests(&[]),
    ]
}

fn further() -> Vec<Case> {
    let deleted = |name, before| volume(name, "volume1").before(before).after("").requests(&[LET_GO]);
    vec![
        deleted(
            "an available volume is deleted, although it is reserved",
            "pv volume1 1Gi Available ->claim1 protected deleting",
        ),
        deleted("a released volume is deleted", "pv volume1 1Gi Released ->claim1#uid1 protected deleting"),
        deleted("a failed volume is deleted", "pv volume1 1Gi Failed ->claim1#uid1 protected deleting"),
        volume("a bound volume is deleted once it is released", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 protected deleting")
            .unchanged()
            .then(|cluster| put(cluster, "pv volume1 1Gi Released ->claim1#uid1 protected deleting"))
            .stable(""),
        volume("foreign finalizers are kept", "volume1")
            .before("pv volume1 1Gi Released fin=example.com/a protected fin=kubernetes.io/pv-controller deleting")
            .after("pv volume1 1Gi Released fin=example.com/a fin=kubernetes.io/pv-controller deleting")
            .requests(&[LET_GO]),
        volume("it is bound in the meantime, which is not in the cache yet", "volume1")
            .before("pv volume1 1Gi Available protected deleting")
            .late("pv volume1 1Gi Bound ->claim1#uid1 protected deleting")
            .after("pv volume1 1Gi Bound ->claim1#uid1 protected deleting"),
        volume("the answer to adding the finalizer is lost", "volume1")
            .before("pv volume1 1Gi Pending")
            .lost_answer("write", Kind::Volume)
            .after("pv volume1 1Gi Pending protected")
            .requests(&[GUARD, "read PersistentVolume volume1"]),
        volume("a deleted volume", "volume1").before("").unchanged().requests(&[]),
        volume("a malformed volume is left alone until it is fixed", "volume1")
            .before("pv volume1 1Gi Available protected deleting")
            .unseen_change(|cluster| {
                cluster.edit(&ObjectKey::volume("volume1"), json!({"status": {"phase": "Melted"}}))
            })
            .after("pv volume1 1Gi Melted protected deleting")
            .then(|cluster| put(cluster, "pv volume1 1Gi Available protected deleting"))
            .stable(""),
    ]
}
