//! All companions together: from a pod to nothing, and whatever is refused or lost on the way.

use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};

use crate::case::{Case, claim_key, pod_key, put, together};

/// All cases.
pub fn cases() -> Vec<Case> {
    [lives(), lost()].into_iter().flatten().collect()
}

fn lives() -> Vec<Case> {
    vec![
        together("a pod and its claim come, are bound, and go")
            .before("pod pod1#uid1 eph=vol")
            .then(|world| put(world, "pvc pod1-vol#made-pod1-vol 1Gi Bound vol=v owner=uid1 guarded"))
            .then(|world| put(world, "pod pod1#uid1 eph=vol node=node1 phase=Running"))
            // The pod is deleted, the garbage collector deletes its claim, and its node lets go of it.
            .then(|world| put(world, "pod pod1#uid1 eph=vol node=node1 phase=Running deleting=30"))
            .then(|world| world.delete(&claim_key("pod1-vol")))
            .then(|world| put(world, "pod pod1#uid1 eph=vol node=node1 phase=Succeeded deleting=0"))
            .then(|world| world.remove(&pod_key("pod1")))
            .after("")
            .events(&[]),
        together("a claim in use is deleted: it stays until its pod goes, and is made again for the next")
            .before(
                "pod pod1#uid1 eph=vol node=node1 phase=Running
                 pvc pod1-vol#uid2 1Gi Bound vol=v owner=uid1 guarded used",
            )
            .then(|world| world.delete(&claim_key("pod1-vol")))
            .then(|world| put(world, "pod pod1#uid3 eph=vol"))
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid3 guarded"),
        together("a volume, its claim and their attributes class go one after the other")
            .before(
                "vac vac1 guarded deleting
                 pv  v 1Gi Bound ->claim1#uid1 vac=vac1 guarded deleting
                 pvc claim1#uid1 1Gi Bound vol=v vac=vac1 guarded deleting
                 pod pod1 claim=claim1 node=node1",
            )
            .then(|world| world.remove(&pod_key("pod1")))
            .then(|world| put(world, "pv v 1Gi Released ->claim1#uid1 vac=vac1 guarded deleting"))
            .after(""),
    ]
}

/// Everything is refused or lost once.
fn lost() -> Vec<Case> {
    let no = || RequestError::Error("Mock server error".into());
    let guarded = |name| {
        together(name)
            .before(
                "vac vac1
                 pv  v 1Gi Bound ->claim1#uid1 vac=vac1
                 pvc claim1#uid1 1Gi Bound vol=v vac=vac1
                 pod pod1#uid2 eph=vol",
            )
            .after(
                "vac vac1 guarded
                 pv  v 1Gi Bound ->claim1#uid1 vac=vac1 guarded
                 pvc claim1#uid1 1Gi Bound vol=v vac=vac1 guarded unused
                 pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid2 guarded",
            )
    };
    let gone = |name| {
        together(name)
            .before(
                "vac vac1 guarded deleting
                 pv  v 1Gi Available guarded deleting
                 pvc claim1#uid1 1Gi Lost vol=w guarded deleting",
            )
            .after("")
    };
    let all = [Kind::Claim, Kind::Volume, Kind::AttributesClass];
    let lists = [Kind::Claim, Kind::Volume, Kind::Pod];
    vec![
        all.iter().fold(guarded("guarding: refused"), |case, kind| case.error("write", *kind, no())),
        all.iter()
            .fold(guarded("guarding: conflicts"), |case, kind| case.error("write", *kind, RequestError::Conflict)),
        all.iter().fold(guarded("guarding: answers are lost"), |case, kind| case.lost_answer("write", *kind)),
        guarded("making a claim: refused, lost, and answered late")
            .error("create", Kind::Claim, no())
            .lost_answer("create", Kind::Claim),
        all.iter().fold(gone("letting go: refused"), |case, kind| case.error("write", *kind, no())),
        all.iter().fold(gone("letting go: answers are lost"), |case, kind| case.lost_answer("write", *kind)),
        lists.iter().fold(gone("letting go: lists are refused"), |case, kind| case.error("list", *kind, no())),
        lists
            .iter()
            .fold(gone("letting go: lists are lost"), |case, kind| case.error("list", *kind, RequestError::Lost)),
        gone("letting go: a volume that is bound meanwhile stays")
            .late("pv v 1Gi Bound ->claim9#uid9 guarded deleting")
            .after("pv v 1Gi Bound ->claim9#uid9 guarded deleting"),
        gone("letting go: a volume is guarded again by somebody who did not know better")
            .then(|world| put(world, "pv v 1Gi Available guarded deleting"))
            .then(|world| world.delete(&ObjectKey::volume("v")))
            .after(""),
    ]
}
