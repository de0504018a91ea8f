//! pvc_protection_controller_test.go, TestPVCProtectionController: the cases of the `Unused`
//! condition, and further cases: which pods count as users, and when the condition is kept.

use bindery_engine::RequestError;
use bindery_model::Kind;

use crate::case::{Case, claim_key, pod_key, protected, put, reported};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [upstream(), users(), kept()].into_iter().flatten().collect()
}

const LIST: &str = "list Pod default/";
const USED: &str = "write PersistentVolumeClaim default/claim1 [protection.claim.used]";
const UNUSED: &str = "write PersistentVolumeClaim default/claim1 [protection.claim.unused]";
const LET_GO: &str = "write PersistentVolumeClaim default/claim1 [protection.claim.remove-finalizer]";
const BOUND: &str = "pvc claim1#uid1 1Gi Bound vol=v protected";
const BOUND_UNUSED: &str = "pvc claim1#uid1 1Gi Bound vol=v protected unused";
const BOUND_USED: &str = "pvc claim1#uid1 1Gi Bound vol=v protected used";

fn upstream() -> Vec<Case> {
    vec![
        reported("unused bound PVC with no pods -> Unused=True condition set")
            .before(BOUND)
            .after(BOUND_UNUSED)
            .requests(&[LIST, UNUSED]),
        reported("pending PVC -> no Unused condition")
            .before("pvc claim1#uid1 1Gi Pending protected")
            .unchanged()
            .requests(&[]),
        reported("bound PVC already has Unused=True and is still unused -> no update")
            .before("pvc claim1#uid1 1Gi Bound vol=v protected unused@2020-01-01T00:00:00Z")
            .unchanged()
            .requests(&[]),
        reported("running pod references bound PVC with Unused=True -> condition set to False")
            .before("pvc claim1#uid1 1Gi Bound vol=v protected unused@2020-01-01T00:00:00Z")
            .then(|cluster| put(cluster, "pod pod1 claim=claim1 node=node1 phase=Running"))
            .after(BOUND_USED)
            .requests(&[USED]),
        reported("bound PVC in use by running pod without condition -> Unused=False set proactively")
            .before(
                "pvc claim1#uid1 1Gi Bound vol=v protected
                 pod pod1 claim=claim1 node=node1 phase=Running",
            )
            .after(BOUND_USED)
            .requests(&[USED]),
        reported("deleting PVC -> condition not updated, finalizer removed")
            .before("pvc claim1#uid1 1Gi Bound vol=v protected deleting fin=example.com/a")
            .after("pvc claim1#uid1 1Gi Bound vol=v deleting fin=example.com/a")
            .requests(&[LIST, LET_GO]),
        protected("feature disabled: unused PVC with no pods -> no condition action")
            .before(BOUND)
            .unchanged()
            .requests(&[]),
        reported("unscheduled pending pod references bound PVC -> Unused=False set proactively")
            .before(
                "pvc claim1#uid1 1Gi Bound vol=v protected
                 pod pod1 claim=claim1",
            )
            .after(BOUND_USED)
            .requests(&[USED]),
        reported("terminated (Succeeded) pod does not count as using bound PVC -> Unused=True set")
            .before(
                "pvc claim1#uid1 1Gi Bound vol=v protected
                 pod pod1 claim=claim1 node=node1 phase=Succeeded",
            )
            .after(BOUND_UNUSED)
            .requests(&[LIST, UNUSED]),
        reported("terminated (Failed) pod does not count as using bound PVC -> Unused=True set")
            .before(
                "pvc claim1#uid1 1Gi Bound vol=v protected
                 pod pod1 claim=claim1 node=node1 phase=Failed",
            )
            .after(BOUND_UNUSED)
            .requests(&[LIST, UNUSED]),
        reported("status update fails -> controller retries, and lists pods again each time")
            .before(BOUND)
            .error("write", Kind::Claim, RequestError::Error(403, "forbidden: Mock error".into()))
            .error("write", Kind::Claim, RequestError::Error(403, "forbidden: Mock error".into()))
            .after(BOUND_UNUSED)
            .requests(&[LIST, UNUSED, LIST, UNUSED, LIST, UNUSED]),
        reported("pod not in informer cache but exists in API -> Unused=False set proactively")
            .before(BOUND)
            .late("pod pod1 claim=claim1 node=node1")
            .after(BOUND_USED)
            // After the write pods are listed again, because the pod is not in the cache yet.
            .requests(&[LIST, USED, LIST]),
        reported("one of two pods deleted, remaining pod keeps bound PVC in use -> Unused=False set proactively")
            .before(
                "pvc claim1#uid1 1Gi Bound vol=v protected
                 pod pod1 claim=claim1 node=node1
                 pod pod2 claim=claim1 node=node1",
            )
            .then(|cluster| cluster.remove(&pod_key("pod2")))
            .after(BOUND_USED)
            .requests(&[USED]),
        reported("deleting PVC that already has Unused=True condition -> condition preserved when removing finalizer")
            .before("pvc claim1#uid1 1Gi Bound vol=v protected deleting unused@2020-01-01T00:00:00Z fin=example.com/a")
            .after("pvc claim1#uid1 1Gi Bound vol=v deleting unused@2020-01-01T00:00:00Z fin=example.com/a")
            .requests(&[LIST, LET_GO]),
        reported("pod deleted, bound PVC becomes unused -> Unused=True condition set")
            .before(
                "pvc claim1#uid1 1Gi Bound vol=v protected used@2020-01-01T00:00:00Z
                 pod pod1 claim=claim1 node=node1",
            )
            .then(|cluster| cluster.remove(&pod_key("pod1")))
            .after(BOUND_UNUSED)
            .requests(&[LIST, UNUSED]),
        reported("used bound PVC without finalizer -> Unused=False set then finalizer added")
            .before(
                "pvc claim1#uid1 1Gi Bound vol=v
                 pod pod1 claim=claim1 node=node1",
            )
            .after(BOUND_USED)
            .requests(&[USED, "write PersistentVolumeClaim default/claim1 [protection.claim.add-finalizer]"]),
        reported("deleted PVC with finalizer and pod using it -> finalizer kept")
            .before(
                "pvc claim1#uid1 1Gi Bound vol=v protected deleting
                 pod pod1 claim=claim1 node=node1",
            )
            .unchanged()
            .requests(&[]),
    ]
}

/// Which pods count as users.
fn users() -> Vec<Case> {
    let used = |name, before| reported(name).before(before).after(BOUND_USED).requests(&[USED]);
    let unused = |name, before| reported(name).before(before).after(BOUND_UNUSED).requests(&[LIST, UNUSED]);
    vec![
        used(
            "a pod that is being deleted, with a running container",
            "pvc claim1#uid1 1Gi Bound vol=v protected
             pod pod1 claim=claim1 node=node1 deleting=30 init-container=terminated container=running container=waiting",
        ),
        used(
            "a pod that is being deleted, with a running init container",
            "pvc claim1#uid1 1Gi Bound vol=v protected
             pod pod1 claim=claim1 node=node1 deleting=30 init-container=running container=waiting",
        ),
        used(
            "a pod that is being deleted, with a running ephemeral container",
            "pvc claim1#uid1 1Gi Bound vol=v protected
             pod pod1 claim=claim1 node=node1 deleting=30 container=terminated debug-container=running",
        ),
        used(
            "a pod that is being deleted, with a container without state",
            "pvc claim1#uid1 1Gi Bound vol=v protected
             pod pod1 claim=claim1 node=node1 deleting=30 container=nothing",
        ),
        unused(
            "a pod that is being deleted, without running containers, is no user",
            "pvc claim1#uid1 1Gi Bound vol=v protected
             pod pod1 claim=claim1 node=node1 deleting=30 container=waiting container=terminated",
        ),
        unused(
            "a pod that is being deleted and never had a container is no user",
            "pvc claim1#uid1 1Gi Bound vol=v protected
             pod pod1 claim=claim1 deleting=30",
        ),
        unused(
            "a pod of another namespace is no user",
            "pvc claim1#uid1 1Gi Bound vol=v protected
             pod other/pod1 claim=claim1 node=node1",
        ),
        reported("a pod uses the claim of its ephemeral volume only if it owns it")
            .before(
                "pvc pod1-a#uid1 1Gi Bound vol=v protected owner=uid2
                 pvc pod1-b#uid3 1Gi Bound vol=w protected owner=?uid2
                 pod pod1#uid2 eph=a eph=b node=node1",
            )
            .after(
                "pvc pod1-a#uid1 1Gi Bound vol=v protected owner=uid2 used
                 pvc pod1-b#uid3 1Gi Bound vol=w protected owner=?uid2 unused",
            ),
        reported("a claim is used once a pod becomes its owner")
            .before(
                "pvc pod1-a#uid1 1Gi Bound vol=v protected unused
                 pod pod1#uid2 eph=a node=node1",
            )
            .then(|cluster| put(cluster, "pvc pod1-a#uid1 1Gi Bound vol=v protected unused owner=uid2"))
            .after("pvc pod1-a#uid1 1Gi Bound vol=v protected owner=uid2 used"),
    ]
}

/// When the condition is kept, and when it is updated.
fn kept() -> Vec<Case> {
    vec![
        reported("Unused=Unknown and used: it is kept")
            .before(
                "pvc claim1#uid1 1Gi Bound vol=v protected cond=Unused:Unknown:Why
                 pod pod1 claim=claim1",
            )
            .unchanged()
            .requests(&[]),
        reported("Unused=Unknown and not used: it is set")
            .before("pvc claim1#uid1 1Gi Bound vol=v protected cond=Unused:Unknown:Why")
            .after(BOUND_UNUSED)
            .requests(&[LIST, UNUSED]),
        reported("a Lost claim keeps its condition")
            .before(
                "pvc claim1#uid1 1Gi Lost vol=v protected unused
                 pod pod1 claim=claim1",
            )
            .unchanged()
            .requests(&[]),
        reported("conditions of other controllers are kept")
            .before("pvc claim1#uid1 1Gi Bound vol=v protected cond=Mine:True:Because resizing")
            .after("pvc claim1#uid1 1Gi Bound vol=v protected unused cond=Mine:True:Because resizing"),
        reported("a claim is bound, used, and unused again")
            .before("pvc claim1#uid1 1Gi Pending protected")
            .then(|cluster| put(cluster, BOUND))
            .then(|cluster| put(cluster, "pod pod1 claim=claim1"))
            .then(|cluster| put(cluster, "pod pod1 claim=claim1 node=node1 phase=Failed"))
            .after(BOUND_UNUSED)
            .requests(&[LIST, UNUSED, USED, LIST, UNUSED]),
        reported("the condition is removed by another writer: it is set again")
            .before(BOUND_UNUSED)
            .then(|cluster| put(cluster, BOUND))
            .after(BOUND_UNUSED)
            .requests(&[LIST, UNUSED]),
        reported("a malformed claim is fixed")
            .before(BOUND)
            .unseen_change(|cluster| {
                let patch = serde_json::json!({"spec": {"resources": {"requests": {"storage": "much"}}}});
                cluster.edit(&claim_key("claim1"), patch);
            })
            .then(|cluster| put(cluster, BOUND))
            .after(BOUND_UNUSED)
            .requests(&[LIST, UNUSED]),
        reported("the answer is lost").before(BOUND).lost_answer("write", Kind::Claim).after(BOUND_UNUSED).requests(&[
            LIST,
            UNUSED,
            "read PersistentVolumeClaim default/claim1",
        ]),
    ]
}
