//! pv_protection_controller_test.go, TestPVProtectionController, and what else is promised of a volume's finalizer.

use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};
use serde_json::json;

use crate::case::{Case, put, volume};

/// All cases.
pub fn cases() -> Vec<Case> {
    [upstream(), ours()].into_iter().flatten().collect()
}

fn forbidden() -> RequestError {
    RequestError::Error("forbidden: Mock error".into())
}

const GUARD: &str = "write PersistentVolume volume1 [protection.volume.add-finalizer]";
const LET_GO: &str = "write PersistentVolume volume1 [protection.volume.remove-finalizer]";

fn upstream() -> Vec<Case> {
    vec![
        volume("PV without finalizer -> finalizer is added", "volume1")
            .before("pv volume1 1Gi Pending")
            .after("pv volume1 1Gi Pending guarded")
            .history(&[GUARD]),
        volume("PV with finalizer -> no action", "volume1")
            .before("pv volume1 1Gi Pending guarded")
            .unchanged()
            .history(&[]),
        volume("saving PV finalizer fails -> controller retries", "volume1")
            .before("pv volume1 1Gi Pending")
            .error("write", Kind::Volume, forbidden())
            .error("write", Kind::Volume, forbidden())
            .after("pv volume1 1Gi Pending")
            .stable("pv volume1 1Gi Pending guarded")
            .history(&[GUARD, GUARD, GUARD]),
        volume("deleted PV with finalizer -> finalizer is removed", "volume1")
            .before("pv volume1 1Gi Pending guarded deleting")
            .after("")
            .history(&[LET_GO]),
        volume("finalizer removal fails -> controller retries", "volume1")
            .before("pv volume1 1Gi Pending guarded deleting")
            .error("write", Kind::Volume, forbidden())
            .error("write", Kind::Volume, forbidden())
            .after("pv volume1 1Gi Pending guarded deleting")
            .stable("")
            .history(&[LET_GO, LET_GO, LET_GO]),
        volume("deleted PV with finalizer + PV is bound -> finalizer is not removed", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 guarded deleting")
            .unchanged()
            .history(&[]),
    ]
}

fn ours() -> Vec<Case> {
    let goes = |name, before| volume(name, "volume1").before(before).after("").history(&[LET_GO]);
    vec![
        goes("an available volume goes, though it is reserved", "pv volume1 1Gi Available ->claim1 guarded deleting"),
        goes("a released volume goes", "pv volume1 1Gi Released ->claim1#uid1 guarded deleting"),
        goes("a failed volume goes", "pv volume1 1Gi Failed ->claim1#uid1 guarded deleting"),
        volume("a bound volume goes when it is released", "volume1")
            .before("pv volume1 1Gi Bound ->claim1#uid1 guarded deleting")
            .unchanged()
            .then(|world| put(world, "pv volume1 1Gi Released ->claim1#uid1 guarded deleting"))
            .stable(""),
        volume("foreign finalizers stay", "volume1")
            .before("pv volume1 1Gi Released fin=example.com/a guarded fin=kubernetes.io/pv-controller deleting")
            .after("pv volume1 1Gi Released fin=example.com/a fin=kubernetes.io/pv-controller deleting")
            .history(&[LET_GO]),
        volume("it is bound meanwhile, and word has not come", "volume1")
            .before("pv volume1 1Gi Available guarded deleting")
            .late("pv volume1 1Gi Bound ->claim1#uid1 guarded deleting")
            .after("pv volume1 1Gi Bound ->claim1#uid1 guarded deleting"),
        volume("the answer to guarding it is lost", "volume1")
            .before("pv volume1 1Gi Pending")
            .lost_answer("write", Kind::Volume)
            .after("pv volume1 1Gi Pending guarded")
            .history(&[GUARD, "read PersistentVolume volume1"]),
        volume("a volume that is gone", "volume1").before("").unchanged().history(&[]),
        volume("a volume that makes no sense is left alone, until it is mended", "volume1")
            .before("pv volume1 1Gi Available guarded deleting")
            .meanwhile(|world| world.edit(&ObjectKey::volume("volume1"), json!({"status": {"phase": "Melted"}})))
            .after("pv volume1 1Gi Melted guarded deleting")
            .then(|world| put(world, "pv volume1 1Gi Available guarded deleting"))
            .stable(""),
    ]
}
