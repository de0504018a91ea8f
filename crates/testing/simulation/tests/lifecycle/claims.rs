//! pvc_protection_controller_test.go, TestPVCProtectionController: the cases without the `Unused`
//! condition, and further cases of the finalizer.

use bindery_engine::RequestError;
use bindery_model::Kind;

use crate::case::{Case, claim_key, pod_key, protected, put};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [claims(), pods(), ephemeral(), foreign(), stale(), recreated()].into_iter().flatten().collect()
}

fn forbidden() -> RequestError {
    RequestError::Error(403, "pods is forbidden: Mock error".into())
}

const LIST: &str = "list Pod default/";
const WRITE: &str = "write PersistentVolumeClaim default/claim1";
const LET_GO: &str = "write PersistentVolumeClaim default/claim1 [protection.claim.remove-finalizer]";

fn claims() -> Vec<Case> {
    let gone = "pvc claim1#uid1 1Gi Pending protected deleting";
    vec![
        protected("PVC without finalizer -> finalizer is added")
            .before(
                "pvc claim1#uid1 1Gi Pending
                 pvc other/claim2#uid2 1Gi Pending",
            )
            .after(
                "pvc claim1#uid1 1Gi Pending protected
                 pvc other/claim2#uid2 1Gi Pending protected",
            )
            .requests(&[WRITE, "write PersistentVolumeClaim other/claim2 [protection.claim.add-finalizer]"]),
        protected("PVC with finalizer -> no action")
            .before(
                "pvc claim1#uid1 1Gi Pending protected
                 pvc other/claim2#uid2 1Gi Pending protected",
            )
            .unchanged()
            .requests(&[]),
        protected("saving PVC finalizer fails -> controller retries")
            .before("pvc claim1#uid1 1Gi Pending")
            .error("write", Kind::Claim, forbidden())
            .error("write", Kind::Claim, forbidden())
            .after("pvc claim1#uid1 1Gi Pending protected")
            .requests(&[WRITE, WRITE, WRITE]),
        protected("deleted PVC with finalizers across different namespaces -> finalizer is removed")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pvc other/claim2#uid2 1Gi Pending protected deleting",
            )
            .after("")
            .requests(&[LIST, "list Pod other/", LET_GO, "write PersistentVolumeClaim other/claim2"]),
        protected("multiple PVCs with finalizer for the same namespace; no alive pods -> finalizer is removed")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pvc claim2#uid2 1Gi Pending protected deleting",
            )
            .after("")
            .requests(&[LIST, LET_GO, "write PersistentVolumeClaim default/claim2"]),
        protected("finalizer removal fails -> controller retries, and lists pods again each time")
            .before(gone)
            .error("write", Kind::Claim, forbidden())
            .error("write", Kind::Claim, forbidden())
            .after("")
            .requests(&[LIST, LET_GO, LIST, LET_GO, LIST, LET_GO]),
        protected("delete multiple PVCs of the same namespace; pod list fails once -> both are tried again")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pvc claim2#uid2 1Gi Pending protected deleting",
            )
            .error("list", Kind::Pod, forbidden())
            .after("")
            .requests(&[LIST, LIST, LET_GO, "write PersistentVolumeClaim default/claim2"]),
        protected("deleted PVC with finalizer + pod with the PVC exists -> finalizer is not removed")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pod pod1 claim=claim1 node=node1",
            )
            .unchanged()
            .requests(&[]),
        protected("deleted PVC with finalizer + pod with unrelated PVC and EmptyDir exists -> finalizer is removed")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pod pod1 claim=unrelated empty-dir node=node1",
            )
            .after("")
            .requests(&[LIST, LET_GO]),
        protected("deleted multiple PVCs with finalizer (same namespace) + pod with unrelated PVC and EmptyDir exists")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pvc claim2#uid2 1Gi Pending protected deleting
                 pvc claim3#uid3 1Gi Pending protected deleting
                 pod pod1 claim=unrelated empty-dir node=node1",
            )
            .after("")
            .requests(&[LIST, LET_GO, "write PersistentVolumeClaim", "write PersistentVolumeClaim"]),
        protected(
            "deleted PVC with finalizer + pod with the PVC finished but is not deleted -> finalizer is not removed",
        )
        .before(
            "pvc claim1#uid1 1Gi Pending protected deleting
                 pod pod1 claim=claim1 node=node1 phase=Failed",
        )
        .unchanged()
        .requests(&[]),
        protected("deleted PVC with finalizer + pod with the PVC is not in the cache yet -> finalizer is not removed")
            .before(gone)
            .late("pod pod1 claim=claim1 node=node1")
            .unchanged()
            .requests(&[LIST]),
        protected("mix of deleted PVCs with some used by a pod and some unused -> only the unused ones are deleted")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pvc claim2#uid2 1Gi Pending protected deleting
                 pvc other/claim3#uid3 1Gi Pending protected deleting",
            )
            .late(
                "pod pod1 claim=claim1 node=node1
                 pod other/pod2 claim=claim3 node=node1",
            )
            .after(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pvc other/claim3#uid3 1Gi Pending protected deleting",
            )
            .requests(&[LIST, "list Pod other/", "write PersistentVolumeClaim default/claim2"]),
    ]
}

/// A pod is watched, or its end.
fn pods() -> Vec<Case> {
    let in_use = |name, pod| {
        protected(name)
            .before("pvc claim1#uid1 1Gi Pending protected deleting fin=example.com/mine")
            .late(pod)
            .unchanged()
            .requests(&[LIST])
    };
    let released = |name, before| protected(name).before(before).after("");
    const USED: &str = "pvc claim1#uid1 1Gi Pending protected deleting
                        pod pod1 claim=claim1 node=node1 phase=Running";
    vec![
        in_use("updated running Pod -> no action", "pod pod1 claim=claim1 node=node1 phase=Running"),
        in_use("updated finished Pod -> finalizer is not removed", "pod pod1 claim=claim1 node=node1 phase=Succeeded"),
        released(
            "updated unscheduled Pod -> finalizer is removed",
            "pvc claim1#uid1 1Gi Pending protected deleting
             pod pod1 claim=claim1",
        )
        .requests(&[LIST, LET_GO]),
        released("deleted running Pod -> finalizer is removed", USED)
            .then(|cluster| cluster.remove(&pod_key("pod1")))
            .requests(&[LIST, LET_GO]),
        released("pod replaced under its name, old pod used deleted PVC -> finalizer is removed", USED)
            .then(|cluster| put(cluster, "pod pod1#uid2 node=node1"))
            .requests(&[LIST, LET_GO]),
        protected("pod replaced under its name, old pod used non-deleted PVC -> finalizer is not removed")
            .before(
                "pvc claim1#uid1 1Gi Pending protected
                 pod pod1 claim=claim1 node=node1",
            )
            .then(|cluster| put(cluster, "pod pod1#uid2 node=node1"))
            .unchanged()
            .requests(&[]),
        protected("pod replaced under its name, both pods reference deleted PVC -> finalizer is not removed")
            .before(USED)
            .then(|cluster| put(cluster, "pod pod1#uid2 claim=claim1 node=node1"))
            .unchanged()
            .requests(&[]),
        protected("pod update from unscheduled to scheduled, deleted PVC is referenced -> finalizer is not removed")
            .before("pvc claim1#uid1 1Gi Pending protected deleting")
            .late("pod pod1 claim=claim1 node=node1")
            .then(|cluster| put(cluster, "pod pod1 claim=claim1 node=node1 phase=Running"))
            .unchanged()
            .requests(&[LIST]),
    ]
}

/// Claims of ephemeral volumes: only their owner protects them, until its kubelet has finished with
/// it.
fn ephemeral() -> Vec<Case> {
    let owned = |name, before| protected(name).before(before);
    vec![
        owned(
            "a pod protects the claim of its ephemeral volume",
            "pvc pod1-vol#uid1 1Gi Bound vol=v protected deleting owner=uid2
             pod pod1#uid2 eph=vol node=node1 phase=Succeeded deleting=30",
        )
        .unchanged(),
        owned(
            "a pod without a node does not protect it",
            "pvc pod1-vol#uid1 1Gi Bound vol=v protected deleting owner=uid2
             pod pod1#uid2 eph=vol",
        )
        .after(""),
        owned(
            "a pod does not protect a claim of that name that it does not own",
            "pvc pod1-vol#uid1 1Gi Bound vol=v protected deleting owner=another
             pod pod1#uid2 eph=vol node=node1",
        )
        .after(""),
        owned(
            "a pod that its kubelet has finished with protects other claims, but not ephemeral ones",
            "pvc pod1-vol#uid1 1Gi Bound vol=v protected deleting owner=uid2
             pvc claim1#uid3 1Gi Bound vol=w protected deleting
             pod pod1#uid2 eph=vol claim=claim1 node=node1 deleting=0",
        )
        .after("pvc claim1#uid3 1Gi Bound vol=w protected deleting"),
        owned(
            "a pod stops protecting its claim when its kubelet has finished with it",
            "pvc pod1-vol#uid1 1Gi Bound vol=v protected deleting owner=uid2
             pod pod1#uid2 eph=vol node=node1 deleting=30",
        )
        .then(|cluster| put(cluster, "pod pod1#uid2 eph=vol node=node1 deleting=0"))
        .after(""),
    ]
}

/// Foreign finalizers, and pods of other namespaces.
fn foreign() -> Vec<Case> {
    vec![
        protected("foreign finalizers are kept in order when ours is added")
            .before("pvc claim1#uid1 1Gi Pending fin=example.com/a fin=example.com/b")
            .after("pvc claim1#uid1 1Gi Pending fin=example.com/a fin=example.com/b protected"),
        protected("foreign finalizers are kept when ours is removed, regardless of its position and duplicates")
            .before("pvc claim1#uid1 1Gi Pending fin=example.com/a protected fin=example.com/b protected deleting")
            .after("pvc claim1#uid1 1Gi Pending fin=example.com/a fin=example.com/b deleting"),
        protected("a claim that is being deleted without our finalizer does not get it")
            .before("pvc claim1#uid1 1Gi Pending fin=example.com/a deleting")
            .unchanged()
            .requests(&[]),
        protected("a pod of another namespace protects nothing here")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pod other/pod1 claim=claim1 node=node1",
            )
            .after("")
            .requests(&[LIST, LET_GO]),
        protected("a malformed claim is left alone until it is fixed")
            .before("pvc claim1#uid1 1Gi Pending protected deleting")
            .unseen_change(|cluster| {
                cluster.edit(&claim_key("claim1"), serde_json::json!({"spec": {"resources": "all"}}))
            })
            .then(|cluster| put(cluster, "pvc claim1#uid1 1Gi Pending protected deleting"))
            .after(""),
    ]
}

/// The cache is stale.
fn stale() -> Vec<Case> {
    vec![
        protected("a pod that only a live list showed is deleted: both watch events arrive")
            .before("pvc claim1#uid1 1Gi Pending protected deleting")
            .late("pod pod1 claim=claim1 node=node1")
            .then(|cluster| cluster.remove(&pod_key("pod1")))
            .after(""),
        protected("a list is rejected, then allowed")
            .before("pvc claim1#uid1 1Gi Pending protected deleting")
            .error("list", Kind::Pod, forbidden())
            .error("list", Kind::Pod, RequestError::Lost)
            .error(
                "list",
                Kind::Pod,
                RequestError::RetryAfter(std::time::Duration::from_secs(1), "too many requests".into()),
            )
            .after("")
            .requests(&[LIST, LIST, LIST, LIST, LET_GO]),
        protected("a list is rejected, and a pod that it would have shown uses the claim")
            .before("pvc claim1#uid1 1Gi Pending protected deleting")
            .error("list", Kind::Pod, forbidden())
            .late("pod pod1 claim=claim1 node=node1")
            .unchanged(),
        protected("the answer to removing the finalizer is lost")
            .before("pvc claim1#uid1 1Gi Pending protected deleting fin=example.com/a")
            .lost_answer("write", Kind::Claim)
            .after("pvc claim1#uid1 1Gi Pending deleting fin=example.com/a")
            .requests(&[LIST, LET_GO, "read PersistentVolumeClaim default/claim1"]),
        protected("a malformed pod may use any claim, until it is deleted")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pod pod1 claim=claim1 node=node1",
            )
            .unseen_change(|cluster| cluster.edit(&pod_key("pod1"), serde_json::json!({"spec": {"volumes": "none"}})))
            .unchanged()
            .requests(&[]),
        protected("the claim is deleted when the malformed pod is deleted")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pod pod1 node=node1",
            )
            .unseen_change(|cluster| cluster.edit(&pod_key("pod1"), serde_json::json!({"spec": {"volumes": "none"}})))
            .then(|cluster| cluster.remove(&pod_key("pod1")))
            .after(""),
        protected("the claim is deleted when the malformed pod is fixed and does not use it")
            .before(
                "pvc claim1#uid1 1Gi Pending protected deleting
                 pod pod1 node=node1",
            )
            .unseen_change(|cluster| cluster.edit(&pod_key("pod1"), serde_json::json!({"spec": {"volumes": "none"}})))
            .then(|cluster| put(cluster, "pod pod1 node=node1"))
            .after(""),
    ]
}

/// A claim is deleted and created again in between: the new one is another claim.
fn recreated() -> Vec<Case> {
    vec![
        protected("a claim created again under its name keeps its finalizer")
            .before("pvc claim1#uid1 1Gi Pending protected deleting")
            .late("pvc claim1#uid2 1Gi Pending protected")
            .after("pvc claim1#uid2 1Gi Pending protected")
            .requests(&[
                LIST,
                "write PersistentVolumeClaim default/claim1 [protection.claim.remove-finalizer]: ",
                "read",
            ]),
        protected("a claim created again under its name and in use is kept when it is deleted, too")
            .before("pvc claim1#uid1 1Gi Pending protected deleting")
            .then(|cluster| put(cluster, "pvc claim1#uid2 1Gi Pending protected"))
            .then(|cluster| put(cluster, "pod pod1 claim=claim1 node=node1"))
            .then(|cluster| cluster.delete(&claim_key("claim1")))
            .after("pvc claim1#uid2 1Gi Pending protected deleting"),
    ]
}
