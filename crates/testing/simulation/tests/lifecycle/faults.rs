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
            .then(|cluster| put(cluster, "pvc pod1-vol#made-pod1-vol 1Gi Bound vol=v owner=uid1 protected"))
            .then(|cluster| put(cluster, "pod pod1#uid1 eph=vol node=node1 phase=Running"))
            // The pod is deleted, the garbage collector deletes its claim, and its node lets go of it.
            .then(|cluster| put(cluster, "pod pod1#uid1 eph=vol node=node1 phase=Running deleting=30"))
            .then(|cluster| cluster.delete(&claim_key("pod1-vol")))
            .then(|cluster| put(cluster, "pod pod1#uid1 eph=vol node=node1 phase=Succeeded deleting=0"))
            .then(|cluster| cluster.remove(&pod_key("pod1")))
            .after("")
            .events(&[]),
        together("a claim in use is deleted: it stays until its pod goes, and is made again for the next")
            .before(
                "pod pod1#uid1 eph=vol node=node1 phase=Running
                 pvc pod1-vol#uid2 1Gi Bound vol=v owner=uid1 protected used",
            )
            .then(|cluster| cluster.delete(&claim_key("pod1-vol")))
            .then(|cluster| put(cluster, "pod pod1#uid3 eph=vol"))
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid3 protected"),
        together("a volume, its claim and their attributes class go one after the other")
            .before(
                "vac vac1 protected deleting
                 pv  v 1Gi Bound ->claim1#uid1 vac=vac1 protected deleting
                 pvc claim1#uid1 1Gi Bound vol=v vac=vac1 protected deleting
                 pod pod1 claim=claim1 node=node1",
            )
            .then(|cluster| cluster.remove(&pod_key("pod1")))
            .then(|cluster| put(cluster, "pv v 1Gi Released ->claim1#uid1 vac=vac1 protected deleting"))
            .after(""),
    ]
}

/// Everything is refused or lost once.
fn lost() -> Vec<Case> {
    let no = || RequestError::Error("Mock server error".into());
    let protected = |name| {
        together(name)
            .before(
                "vac vac1
                 pv  v 1Gi Bound ->claim1#uid1 vac=vac1
                 pvc claim1#uid1 1Gi Bound vol=v vac=vac1
                 pod pod1#uid2 eph=vol",
            )
            .after(
                "vac vac1 protected
                 pv  v 1Gi Bound ->claim1#uid1 vac=vac1 protected
                 pvc claim1#uid1 1Gi Bound vol=v vac=vac1 protected unused
                 pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid2 protected",
            )
    };
    let gone = |name| {
        together(name)
            .before(
                "vac vac1 protected deleting
                 pv  v 1Gi Available protected deleting
                 pvc claim1#uid1 1Gi Lost vol=w protected deleting",
            )
            .after("")
    };
    let all = [Kind::Claim, Kind::Volume, Kind::AttributesClass];
    let lists = [Kind::Claim, Kind::Volume, Kind::Pod];
    vec![
        all.iter().fold(protected("guarding: refused"), |case, kind| case.error("write", *kind, no())),
        all.iter()
            .fold(protected("guarding: conflicts"), |case, kind| case.error("write", *kind, RequestError::Conflict)),
        all.iter().fold(protected("guarding: answers are lost"), |case, kind| case.lost_answer("write", *kind)),
        protected("making a claim: refused, lost, and answered late")
            .error("create", Kind::Claim, no())
            .lost_answer("create", Kind::Claim),
        all.iter().fold(gone("letting go: refused"), |case, kind| case.error("write", *kind, no())),
        all.iter().fold(gone("letting go: answers are lost"), |case, kind| case.lost_answer("write", *kind)),
        lists.iter().fold(gone("letting go: lists are refused"), |case, kind| case.error("list", *kind, no())),
        lists
            .iter()
            .fold(gone("letting go: lists are lost"), |case, kind| case.error("list", *kind, RequestError::Lost)),
        gone("letting go: a volume that is bound meanwhile stays")
            .late("pv v 1Gi Bound ->claim9#uid9 protected deleting")
            .after("pv v 1Gi Bound ->claim9#uid9 protected deleting"),
        gone("letting go: a volume is protected again by somebody who did not know better")
            .then(|cluster| put(cluster, "pv v 1Gi Available protected deleting"))
            .then(|cluster| cluster.delete(&ObjectKey::volume("v")))
            .after(""),
    ]
}
