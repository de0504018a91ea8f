//! Further cases: lost answers, failing requests, and changes once the cluster is stable.

use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::Task;
use bindery_simulation::notation;

use crate::case::{Case, claim, claim_key, multi, volume};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [deleting(), scrubbing(), saving(), awaited_objects(), pods(), life_cycles()].into_iter().flatten().collect()
}

fn broken() -> RequestError {
    RequestError::Error(500, "Mock server error".into())
}

/// A released volume is deleted in spite of rejections and lost answers.
fn deleting() -> Vec<Case> {
    let delete = |name| {
        multi(name)
            .before(
                "pv volume1 1Gi Bound ->claim1#uid1 policy=Delete source=hostPath:/tmp/1 \
                    fin=kubernetes.io/pv-controller",
            )
            .after("")
            .events(&[])
    };
    vec![
        delete("delete: the claim cannot be read").error("read", Kind::Claim, broken()),
        delete("delete: the volume cannot be read").error("read", Kind::Volume, broken()),
        delete("delete: marking the volume is rejected").error("write", Kind::Volume, broken()),
        delete("delete: the answer to marking the volume is lost").lost_answer("write", Kind::Volume),
        delete("delete: the deletion is rejected").error("delete", Kind::Volume, broken()),
        delete("delete: the deletion conflicts").error("delete", Kind::Volume, RequestError::Conflict),
        delete("delete: the answer to the deletion is lost").lost_answer("delete", Kind::Volume),
        delete("delete: every answer is lost once")
            .lost_answer("write", Kind::Volume)
            .lost_answer("write", Kind::Volume)
            .lost_answer("delete", Kind::Volume),
    ]
}

/// A released volume is scrubbed and becomes Available again.
fn scrubbing() -> Vec<Case> {
    let scrub = |name| {
        multi(name)
            .before("pv volume1 1Gi Bound ->claim1#uid1 bbc policy=Recycle source=hostPath:/tmp/1")
            .after("pv volume1 1Gi Available policy=Recycle source=hostPath:/tmp/1")
    };
    vec![
        scrub("recycle: the volume cannot be read").error("read", Kind::Volume, broken()),
        scrub("recycle: three writes are rejected")
            .error("write", Kind::Volume, broken())
            .error("write", Kind::Volume, RequestError::Conflict)
            .error("write", Kind::Volume, broken()),
        scrub("recycle: the answers to three writes are lost")
            .lost_answer("write", Kind::Volume)
            .lost_answer("write", Kind::Volume)
            .lost_answer("write", Kind::Volume),
    ]
}

/// Storage is never deleted while a volume for it may exist.
fn saving() -> Vec<Case> {
    let error = |case: Case, _| case.error("create", Kind::Volume, broken());
    vec![
        (1..=4)
            .fold(
                claim("provision.in-tree.discard: the answer to the fifth attempt to save it is lost", "claim1"),
                error,
            )
            .lost_answer("create", Kind::Volume)
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim1#uid1 1Gi Pending class=gold",
            )
            .after(
                "pv  pvc-uid1 1Gi Bound ->claim1#uid1 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                     source=hostPath:/tmp/hostpath_pv/uid1 fin=kubernetes.io/pv-controller
                 pvc claim1#uid1 1Gi Bound vol=pvc-uid1 bbc bc class=gold sp=kubernetes.io/host-path",
            )
            .events(&[]),
        multi("provision.in-tree.annotate: rejected, then the answer is lost")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim1#uid1 1Gi Pending class=gold",
            )
            .error("write", Kind::Claim, broken())
            .lost_answer("write", Kind::Claim)
            .error("read", Kind::Volume, broken())
            .after(
                "pv  pvc-uid1 1Gi Bound ->claim1#uid1 class=gold policy=Delete bbc by=kubernetes.io/host-path \
                     source=hostPath:/tmp/hostpath_pv/uid1 fin=kubernetes.io/pv-controller
                 pvc claim1#uid1 1Gi Bound vol=pvc-uid1 bbc bc class=gold sp=kubernetes.io/host-path",
            )
            .events(&["Normal ProvisioningSucceeded"]),
    ]
}

/// The object that a claim waits for is created.
fn awaited_objects() -> Vec<Case> {
    let created = |name, before| {
        claim(name, "claim1")
            .before(before)
            .unchanged()
            .events(&["Warning ProvisioningFailed"])
            .then(|cluster| notation::add(cluster, "sc slow vendor.com/slow"))
            .stable("pvc claim1#uid1 1Gi Pending class=slow sp=vendor.com/slow")
    };
    vec![
        created("provision.class-missing: it created", "pvc claim1#uid1 1Gi Pending class=slow"),
        created(
            "provision.no-plugin: the class is replaced",
            "sc slow kubernetes.io/unknown\n pvc claim1#uid1 1Gi Pending class=slow",
        ),
        created(
            "provision.in-tree.data-source: the class is replaced",
            "sc slow kubernetes.io/host-path\n pvc claim1#uid1 1Gi Pending class=slow source=VolumeSnapshot",
        ),
    ]
}

/// The pods that prevent scrubbing are deleted.
fn pods() -> Vec<Case> {
    let used = |name| {
        volume(name, "volume1")
            .before(
                "pv  volume1 1Gi Bound ->claim1#uid1 bbc policy=Recycle source=hostPath:/tmp/1
                 pod pod1 claim=claim1 phase=Running
                 pod pod2 claim=claim1 phase=Running",
            )
            .after("pv volume1 1Gi Released ->claim1#uid1 bbc policy=Recycle source=hostPath:/tmp/1")
            .events(&["Normal VolumeFailedRecycle Volume is used by pods: default/pod1,default/pod2"])
    };
    vec![
        used("reclaim.recycle.in-use: the pods are deleted")
            .then(|cluster| {
                for name in ["pod1", "pod2"] {
                    cluster.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: name.into() });
                }
            })
            .stable("pv volume1 1Gi Available policy=Recycle source=hostPath:/tmp/1"),
        used("reclaim.recycle.in-use: a new claim of that name is created")
            .then(|cluster| notation::add(cluster, "pvc claim1#uid2 10Gi Pending"))
            .stable(
                "pv  volume1 1Gi Available policy=Recycle source=hostPath:/tmp/1
                 pvc claim1#uid2 10Gi Pending",
            ),
    ]
}

/// From creation to deletion.
fn life_cycles() -> Vec<Case> {
    vec![
        multi("a volume is provisioned for a claim, and deleted after it")
            .before(
                "sc  gold kubernetes.io/host-path
                 pvc claim1#uid1 1Gi Pending class=gold",
            )
            .then(|cluster| cluster.delete(&claim_key("claim1")))
            .after("")
            .events(&["Normal ProvisioningSucceeded"]),
        multi("a volume is scrubbed after one claim, and bound to the next")
            .before(
                "pv  volume1 1Gi Available policy=Recycle source=hostPath:/tmp/1
                 pvc claim1#uid1 1Gi Pending",
            )
            .script(Task::Recycle, &[Err("Mock recycle error")])
            .then(|cluster| cluster.delete(&claim_key("claim1")))
            .then(|cluster| notation::add(cluster, "pvc claim2#uid2 1Gi Pending"))
            .after(
                "pv  volume1 1Gi Bound ->claim2#uid2 bbc policy=Recycle source=hostPath:/tmp/1
                 pvc claim2#uid2 1Gi Bound vol=volume1 bbc bc",
            )
            .events(&["Warning VolumeFailedRecycle Recycle failed: Mock recycle error", "Normal VolumeRecycled"]),
    ]
}
