//! ephemeral/controller_test.go, TestSyncHandler, and further cases of claims for ephemeral
//! volumes.

use bindery_engine::RequestError;
use bindery_model::Kind;

use crate::case::{Case, claim_key, pod, pod_key, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [upstream(), several(), answers(), rejections(), changes()].into_iter().flatten().collect()
}

const QUOTA: &str = "persistentvolumeclaims \"pod1-vol\" is forbidden: exceeded quota";

fn upstream() -> Vec<Case> {
    vec![
        pod("create", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .events(&[])
            .requests(&["create PersistentVolumeClaim default/pod1-vol"]),
        pod("no-such-pod", "pod1").before("").unchanged().events(&[]).requests(&[]),
        pod("pod-deleted", "pod1").before("pod pod1#uid1 eph=vol deleting=30").after("").events(&[]).requests(&[]),
        pod("no-volumes", "pod1").before("pod pod1#uid1 claim=other empty-dir").after("").events(&[]).requests(&[]),
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
            .requests(&[]),
        pod("create-conflict", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, RequestError::Conflict)
            .after("")
            .events(&["Warning FailedBinding ephemeral volume vol: create PVC pod1-vol: "])
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1"),
    ]
}

/// Several volumes, and the fields that a claim gets from its template.
fn several() -> Vec<Case> {
    vec![
        pod("the template sets all fields except owner and name", "pod1")
            .before("pod pod1#uid1 eph=vol:5Gi:gold eph-label=app:db eph-node=node1 phase=Running node=node1")
            .after("pvc pod1-vol#made-pod1-vol 5Gi Pending class=gold node=node1 owner=uid1 label=app:db")
            .events(&[]),
        pod("every ephemeral volume gets a claim, even of a completed pod", "pod1")
            .before("pod pod1#uid1 claim=other eph=a empty-dir eph=b:2Gi phase=Succeeded")
            .after(
                "pvc pod1-a#made-pod1-a 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 2Gi Pending owner=uid1",
            )
            .events(&[]),
        pod("a conflicting claim blocks the volumes after it until it is deleted", "pod1")
            .before(
                "pod pod1#uid1 eph=a eph=b
                 pvc pod1-a#uid2 1Gi Pending owner=another",
            )
            .unchanged()
            .events(&["Warning FailedBinding ephemeral volume a: PVC default/pod1-a was not created"])
            .then(|cluster| cluster.delete(&claim_key("pod1-a")))
            .stable(
                "pvc pod1-a#made-pod1-a 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 1Gi Pending owner=uid1",
            ),
        pod("a conflict of a later volume does not affect the earlier ones", "pod1")
            .before(
                "pod pod1#uid1 eph=a eph=b
                 pvc pod1-b#uid2 1Gi Bound vol=v",
            )
            .after(
                "pvc pod1-a#made-pod1-a 1Gi Pending owner=uid1
                 pvc pod1-b#uid2 1Gi Bound vol=v",
            )
            .events(&["Warning FailedBinding ephemeral volume b: "]),
        pod("a claim that is being deleted is created again only after it is gone", "pod1")
            .before(
                "pod pod1#uid1 eph=vol
                 pvc pod1-vol#uid2 1Gi Bound vol=v owner=uid1 fin=example.com/mine deleting",
            )
            .unchanged()
            .events(&[])
            .then(|cluster| cluster.remove(&claim_key("pod1-vol")))
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1"),
    ]
}

/// Lost answers, and claims that exist already.
fn answers() -> Vec<Case> {
    let made = "pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1";
    vec![
        pod("the answer to the creation is lost", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .lost_answer("create", Kind::Claim)
            .after(made)
            .events(&[])
            .requests(&["create PersistentVolumeClaim default/pod1-vol: no response", "read PersistentVolumeClaim"]),
        pod("the creation is lost", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, RequestError::Lost)
            .after(made)
            .events(&[])
            .requests(&["create", "read", "create"]),
        pod("the creation is lost twice: one event, and a retry", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, RequestError::Lost)
            .error("create", Kind::Claim, RequestError::Lost)
            .after("")
            .events(&["Warning FailedBinding ephemeral volume vol: create PVC pod1-vol: no response"])
            .stable(made)
            .requests(&["create", "read", "create", "read", "create"]),
        pod("we created the claim, and it is not in the cache yet", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .late("pvc pod1-vol#uid2 1Gi Pending owner=uid1")
            .after("pvc pod1-vol#uid2 1Gi Pending owner=uid1")
            .events(&[])
            .requests(&["create PersistentVolumeClaim default/pod1-vol: the object already exists", "read"]),
        pod("another writer created the claim, and it is not in the cache yet", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .late("pvc pod1-vol#uid2 1Gi Pending owner=another")
            .after("pvc pod1-vol#uid2 1Gi Pending owner=another")
            .events(&["Warning FailedBinding ephemeral volume vol: PVC default/pod1-vol was not created"])
            .requests(&["create", "read"]),
    ]
}

/// The API server rejects the creation.
fn rejections() -> Vec<Case> {
    let no = || RequestError::Error(403, QUOTA.into());
    vec![
        pod("quota exceeded, then available: one event", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, no())
            .after("")
            .events(&[
                "Warning FailedBinding ephemeral volume vol: create PVC pod1-vol: persistentvolumeclaims \"pod1-vol\" is \
                 forbidden: exceeded quota",
            ])
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1"),
        crate::case::together("quota exceeded five times: one event")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending protected owner=uid1")
            .events(&["Warning FailedBinding ephemeral volume vol: create PVC pod1-vol: "]),
        crate::case::together("Retry-After is honored without an event")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, RequestError::RetryAfter(std::time::Duration::from_secs(1), "too many requests".into()))
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending protected owner=uid1")
            .events(&[]),
        pod("quota exceeded twice, and the pod is deleted afterwards", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .error("create", Kind::Claim, no())
            .error("create", Kind::Claim, no())
            .after("")
            .events(&["Warning FailedBinding"])
            .then(|cluster| cluster.remove(&pod_key("pod1")))
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1"),
    ]
}

/// Changes once the cluster is stable.
fn changes() -> Vec<Case> {
    vec![
        pod("a deleted claim is created again", "pod1")
            .before("pod pod1#uid1 eph=a eph=b")
            .after(
                "pvc pod1-a#made-pod1-a 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 1Gi Pending owner=uid1",
            )
            .then(|cluster| cluster.remove(&claim_key("pod1-a")))
            .stable(
                "pvc pod1-a#made-pod1-a-2 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 1Gi Pending owner=uid1",
            ),
        pod("a claim that is replaced by a foreign one is reported", "pod1")
            .before(
                "pod pod1#uid1 eph=vol
                 pvc pod1-vol#uid2 1Gi Pending owner=uid1",
            )
            .unchanged()
            .events(&[])
            .then(|cluster| put(cluster, "pvc pod1-vol#uid3 1Gi Pending"))
            .stable("pvc pod1-vol#uid3 1Gi Pending"),
        pod("the pod becomes the owner of a foreign claim", "pod1")
            .before(
                "pod pod1#uid1 eph=a eph=b
                 pvc pod1-a#uid2 1Gi Pending owner=another",
            )
            .unchanged()
            .then(|cluster| put(cluster, "pvc pod1-a#uid2 1Gi Pending owner=uid1"))
            .stable(
                "pvc pod1-a#uid2 1Gi Pending owner=uid1
                 pvc pod1-b#made-pod1-b 1Gi Pending owner=uid1",
            ),
        pod("a new pod of the same name waits until the claim of the old one is deleted", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .then(|cluster| put(cluster, "pod pod1#uid9 eph=vol"))
            .then(|cluster| cluster.remove(&claim_key("pod1-vol")))
            .stable("pvc pod1-vol#made-pod1-vol-2 1Gi Pending owner=uid9"),
        pod("a pod that is being deleted gets no claim", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .then(|cluster| put(cluster, "pod pod1#uid1 eph=vol deleting=30"))
            .then(|cluster| cluster.remove(&claim_key("pod1-vol")))
            .stable(""),
        pod("a malformed pod is left alone until it is fixed", "pod1")
            .before("pod pod1#uid1 eph=vol")
            .unseen_change(|cluster| cluster.edit(&pod_key("pod1"), serde_json::json!({"spec": {"volumes": "none"}})))
            .after("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .stable("pvc pod1-vol#made-pod1-vol 1Gi Pending owner=uid1")
            .then(|cluster| put(cluster, "pod pod1#uid1 eph=vol")),
    ]
}
