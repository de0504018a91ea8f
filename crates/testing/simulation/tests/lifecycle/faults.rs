//! All lifecycle controllers together: from creation to deletion, with rejected and lost requests.

use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};

use crate::case::{Case, claim_key, pod_key, put, together};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [life_cycles(), every_request_fails_once()].into_iter().flatten().collect()
}

fn life_cycles() -> Vec<Case> {
    vec![
        together("a pod and its claim are created, bound and deleted")
            .before("pod pod1#uid1 eph=vol")
            .then(|cluster| put(cluster, "pvc pod1-vol#made-pod1-vol 1Gi Bound vol=v owner=uid1 protected"))
            .then(|cluster| put(cluster, "pod pod1#uid1 eph=vol node=node1 phase=Running"))
            // The pod is deleted, the garbage collector deletes its claim, and its kubelet
            // finishes.
            .then(|cluster| put(cluster, "pod pod1#uid1 eph=vol node=node1 phase=Running deleting=30"))
            .then(|cluster| cluster.delete(&claim_key("pod1-vol")))
            .then(|cluster| put(cluster, "pod pod1#uid1 eph=vol node=node1 phase=Succeeded deleting=0"))
            .then(|cluster| cluster.remove(&pod_key("pod1")))
            .after("")
            .events(&[]),
        together("a claim in use is deleted: it is kept until its pod is deleted, and created again for the next")
            .before(
                "pod pod1#uid1 eph=vol node=node1 phase=Running
                 pvc pod1-vol#uid2 1Gi Bound vol=v owner=uid1 protected used",
            )
            .then(|cluster| cluster.delete(&claim_key("pod1-vol")))
            .then(|cluster| put(cluster, "pod pod1#uid3 eph=vol"))
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid3 protected"),
        together("a volume, its claim and their attributes class are deleted in order")
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

/// Every request is rejected or lost once.
fn every_request_fails_once() -> Vec<Case> {
    let no = || RequestError::Error(500, "Mock server error".into());
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
    let deleting = |name| {
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
        all.iter().fold(protected("adding finalizers: rejected"), |case, kind| case.error("write", *kind, no())),
        all.iter().fold(protected("adding finalizers: conflicts"), |case, kind| {
            case.error("write", *kind, RequestError::Conflict)
        }),
        all.iter()
            .fold(protected("adding finalizers: answers are lost"), |case, kind| case.lost_answer("write", *kind)),
        protected("creating a claim: rejected, lost, and Retry-After")
            .error("create", Kind::Claim, no())
            .lost_answer("create", Kind::Claim),
        all.iter().fold(deleting("removing finalizers: rejected"), |case, kind| case.error("write", *kind, no())),
        all.iter()
            .fold(deleting("removing finalizers: answers are lost"), |case, kind| case.lost_answer("write", *kind)),
        lists
            .iter()
            .fold(deleting("removing finalizers: lists are rejected"), |case, kind| case.error("list", *kind, no())),
        lists.iter().fold(deleting("removing finalizers: lists are lost"), |case, kind| {
            case.error("list", *kind, RequestError::Lost)
        }),
        deleting("removing finalizers: a volume that is bound in the meantime is kept")
            .late("pv v 1Gi Bound ->claim9#uid9 protected deleting")
            .after("pv v 1Gi Bound ->claim9#uid9 protected deleting"),
        deleting("removing finalizers: another writer adds the finalizer again")
            .then(|cluster| put(cluster, "pv v 1Gi Available protected deleting"))
            .then(|cluster| cluster.delete(&ObjectKey::volume("v")))
            .after(""),
    ]
}
