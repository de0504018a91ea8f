//! ephemeral/controller_test.go, TestSyncHandler, and what else is promised: the claims of pods' ephemeral volumes.

use bindery_engine::RequestError;
use bindery_model::Kind;

use crate::case::{Case, claim_key, pod, pod_key, put};

/// All cases.
pub fn cases() -> Vec<Case> {
    [upstream(), several(), answers(), refusals(), later()].into_iter().flatten().collect()
}

const QUOTA: &str = "persistentvolumeclaims \"pod1-vol\" is forbidden: exceeded quota";

fn upstream() -> Vec<Case> {
    vec![
        pod("create", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .events(&[])
            .history(&["create PersistentVolumeClaim default/pod1-vol"]),
        pod("no-such-pod", "pod1").before("").unchanged().events(&[]).history(&[]),
        pod("pod-deleted", "pod1").before("pod pod1#uid1 eph=vol deleting=30").after("").events(&[]).history(&[]),
        pod("no-volumes", "pod1").before("pod pod1#uid1 claim=other empty-dir").after("").events(&[]).history(&[]),
        pod("create-with-other-PVC", "pod1")
            .before(
                "pod pod1#uid1 eph=vol
                 pvc elsewhere/pod1-vol#uid2 1Gi Pending",
            )
            .after(
                "pvc elsewhere/pod1-vol#uid2 1Gi Pending
                 pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1",
            )
            .events(&[]),
        pod("wrong-PVC-owner", "pod1")
            .before(
                "pod pod1#uid1 eph=vol
                 pvc pod1-vol#uid2 1Gi Pending",
            )
            .unchanged()
            .events(&[
                "Warning FailedBinding ephemeral volume vol: PVC default/pod1-vol was not created for pod default/pod1 \
                 (pod is not owner)",
            ])
            .history(&[]),
        pod("create-conflict", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, RequestError::Conflict)
            .after("")
            .events(&["Warning FailedBinding ephemeral volume vol: create PVC pod1-vol: "])
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1"),
    ]
}

/// More than one volume, and what a claim takes over from its template.
fn several() -> Vec<Case> {
    vec![
        pod("all of the template is taken over, but the owner and the name", "pod1")
            .before("pod pod1#uid1 eph=vol:5Gi:gold eph-label=app:db eph-node=node1 phase=Running node=node1")
            .after("pvc pod1-vol#made-pod1-vol 5Gi Pending class=gold node=node1 owner=uid1 label=app:db")
            .events(&[]),
        pod("every ephemeral volume gets a claim, even of a pod that is done", "pod1")
            .before("pod pod1#uid1 claim=other eph=a empty-dir eph=b:2Gi phase=Succeeded")
            .after(
                "pvc pod1-a#made-pod1-a 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 2Gi Pending owner=uid1",
            )
            .events(&[]),
        pod("the first volume in conflict holds up those after it, until it is gone", "pod1")
            .before(
                "pod pod1#uid1 eph=a eph=b
                 pvc pod1-a#uid2 1Gi Pending owner=another",
            )
            .unchanged()
            .events(&["Warning FailedBinding ephemeral volume a: PVC default/pod1-a was not created"])
            .then(|world| world.delete(&claim_key("pod1-a")))
            .stable(
                "pvc pod1-a#made-pod1-a 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 1Gi Pending owner=uid1",
            ),
        pod("a later volume in conflict does not take back the earlier", "pod1")
            .before(
                "pod pod1#uid1 eph=a eph=b
                 pvc pod1-b#uid2 1Gi Bound vol=v",
            )
            .after(
                "pvc pod1-a#made-pod1-a 1Gi Pending owner=uid1
                 pvc pod1-b#uid2 1Gi Bound vol=v",
            )
            .events(&["Warning FailedBinding ephemeral volume b: "]),
        pod("a claim that is being deleted is not made a second time before it is gone", "pod1")
            .before(
                "pod pod1#uid1 eph=vol
                 pvc pod1-vol#uid2 1Gi Bound vol=v owner=uid1 fin=example.com/mine deleting",
            )
            .unchanged()
            .events(&[])
            .then(|world| world.remove(&claim_key("pod1-vol")))
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1"),
    ]
}

/// Answers that are lost, and claims that are there already.
fn answers() -> Vec<Case> {
    let made = "pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1";
    vec![
        pod("the answer to making it is lost", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .lost_answer("create", Kind::Claim)
            .after(made)
            .events(&[])
            .history(&["create PersistentVolumeClaim default/pod1-vol: no response", "read PersistentVolumeClaim"]),
        pod("making it is lost before it is done", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, RequestError::Lost)
            .after(made)
            .events(&[])
            .history(&["create", "read", "create"]),
        pod("it is lost twice: that is said, once, and tried again later", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, RequestError::Lost)
            .error("create", Kind::Claim, RequestError::Lost)
            .after("")
            .events(&["Warning FailedBinding ephemeral volume vol: create PVC pod1-vol: no response"])
            .stable(made)
            .history(&["create", "read", "create", "read", "create"]),
        pod("we made it, and do not know: word has not come", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .late("pvc pod1-vol#uid2 1Gi Pending owner=uid1")
            .after("pvc pod1-vol#uid2 1Gi Pending owner=uid1")
            .events(&[])
            .history(&["create PersistentVolumeClaim default/pod1-vol: the object already exists", "read"]),
        pod("somebody else made it, and word has not come", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .late("pvc pod1-vol#uid2 1Gi Pending owner=another")
            .after("pvc pod1-vol#uid2 1Gi Pending owner=another")
            .events(&["Warning FailedBinding ephemeral volume vol: PVC default/pod1-vol was not created"])
            .history(&["create", "read"]),
    ]
}

/// The API server says no.
fn refusals() -> Vec<Case> {
    let no = || RequestError::Error(QUOTA.into());
    vec![
        pod("no quota, then there is: it is said once", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, no())
            .after("")
            .events(&[
                "Warning FailedBinding ephemeral volume vol: create PVC pod1-vol: persistentvolumeclaims \"pod1-vol\" is \
                 forbidden: exceeded quota",
            ])
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1"),
        crate::case::together("no quota, five times: one event in all")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending guarded owner=uid1")
            .events(&["Warning FailedBinding ephemeral volume vol: create PVC pod1-vol: "]),
        crate::case::together("a server that asks for patience gets it, and nobody is told")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, RequestError::RetryAfter(std::time::Duration::from_secs(1), "too many requests".into()))
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending guarded owner=uid1")
            .events(&[]),
        pod("no quota, twice, and the pod goes when all is done", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .after("")
            .events(&["Warning FailedBinding"])
            .then(|world| world.remove(&pod_key("pod1")))
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1"),
    ]
}

/// What happens once all is quiet.
fn later() -> Vec<Case> {
    vec![
        pod("a claim that somebody deleted is made again", "pod1")
            .before("pod pod1#uid1 eph=a eph=b")
            .after(
                "pvc pod1-a#made-pod1-a 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 1Gi Pending owner=uid1",
            )
            .then(|world| world.remove(&claim_key("pod1-a")))
            .stable(
                "pvc pod1-a#made-pod1-a-2 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 1Gi Pending owner=uid1",
            ),
        pod("a claim that is replaced by a foreign one is complained of", "pod1")
            .before(
                "pod pod1#uid1 eph=vol
                 pvc pod1-vol#uid2 1Gi Pending owner=uid1",
            )
            .unchanged()
            .events(&[])
            .then(|world| put(world, "pvc pod1-vol#uid3 1Gi Pending"))
            .stable("pvc pod1-vol#uid3 1Gi Pending"),
        pod("a foreign claim is given to the pod", "pod1")
            .before(
                "pod pod1#uid1 eph=a eph=b
                 pvc pod1-a#uid2 1Gi Pending owner=another",
            )
            .unchanged()
            .then(|world| put(world, "pvc pod1-a#uid2 1Gi Pending owner=uid1"))
            .stable(
                "pvc pod1-a#uid2 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 1Gi Pending owner=uid1",
            ),
        pod("a pod of the same name is another pod: the old one's claim has to go first", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .then(|world| put(world, "pod pod1#uid9 eph=vol"))
            .then(|world| world.remove(&claim_key("pod1-vol")))
            .stable("pvc pod1-vol#made-pod1-vol-2 1Gi Pending owner=uid9"),
        pod("a pod that is deleted gets no claim any more", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .then(|world| put(world, "pod pod1#uid1 eph=vol deleting=30"))
            .then(|world| world.remove(&claim_key("pod1-vol")))
            .stable(""),
        pod("a pod that makes no sense is left alone, until it is mended", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .meanwhile(|world| world.edit(&pod_key("pod1"), serde_json::json!({"spec": {"volumes": "none"}})))
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .then(|world| put(world, "pod pod1#uid1 eph=vol")),
    ]
}
