//! recycle_test.go: released volumes with the policy Recycle.
//!
//! Upstream's mock plugin is the host-path plugin here: a source below `/tmp`. Unlike upstream, a
//! volume is marked with its recycler pod (`scrub`) until it was scrubbed.

use bindery_model::ObjectKey;
use bindery_rules_api::Task;
use bindery_simulation::{SimulatedCluster, notation};
use serde_json::json;

use crate::case::{Case, multi, volume};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [scrubbed(), failures(), races(), pods()].into_iter().flatten().collect()
}

/// The volume is scrubbed and becomes Available again.
fn scrubbed() -> Vec<Case> {
    vec![
        volume("6-1 successful recycle", "volume6-1")
            .before("pv volume6-1 1Gi Bound ->claim6-1#uid6-1 bbc policy=Recycle source=hostPath:/tmp/6-1")
            .after("pv volume6-1 1Gi Available policy=Recycle source=hostPath:/tmp/6-1")
            .events(&["Normal VolumeRecycled Volume recycled"]),
        volume("6-2 successful recycle with prebound volume", "volume6-2")
            .before("pv volume6-2 1Gi Bound ->claim6-2#uid6-2 policy=Recycle source=hostPath:/tmp/6-2")
            .after("pv volume6-2 1Gi Available ->claim6-2 policy=Recycle source=hostPath:/tmp/6-2")
            .events(&["Normal VolumeRecycled Volume recycled"]),
        volume("6-9 prebound volume is recycled while the claim exists", "volume6-9")
            .before(
                "pv  volume6-9 1Gi Bound ->claim6-9#uid6-9 policy=Recycle source=hostPath:/tmp/6-9
                 pvc claim6-9#uid6-9-x 10Gi Pending",
            )
            .after(
                "pv  volume6-9 1Gi Available ->claim6-9 policy=Recycle source=hostPath:/tmp/6-9
                 pvc claim6-9#uid6-9-x 10Gi Pending",
            )
            .events(&["Normal VolumeRecycled Volume recycled"]),
    ]
}

/// The volume cannot be scrubbed.
fn failures() -> Vec<Case> {
    vec![
        volume("6-3 plugin not found", "volume6-3")
            .before("pv volume6-3 1Gi Bound ->claim6-3#uid6-3 policy=Recycle")
            .after(
                "pv volume6-3 1Gi Failed ->claim6-3#uid6-3 policy=Recycle \
                    msg=No_recycler_plugin_found_for_the_volume!",
            )
            .events(&["Warning VolumeFailedRecycle No recycler plugin found for the volume!"]),
        volume("6-4 newRecycler returns error", "volume6-4")
            .before("pv volume6-4 1Gi Bound ->claim6-4#uid6-4 policy=Recycle source=hostPath:/tmp/6-4")
            .script(Task::Recycle, &[Err("Mock plugin error: no recycleCalls configured")])
            .after(
                "pv volume6-4 1Gi Failed ->claim6-4#uid6-4 policy=Recycle source=hostPath:/tmp/6-4 scrub=pod-1 \
                    msg=Recycle_failed:_Mock_plugin_error:_no_recycleCalls_configured",
            )
            .events(&["Warning VolumeFailedRecycle Recycle failed: Mock plugin error: no recycleCalls configured"])
            // The retry succeeds.
            .stable("pv volume6-4 1Gi Available ->claim6-4 policy=Recycle source=hostPath:/tmp/6-4"),
        volume("6-5 recycle returns error", "volume6-5")
            .before("pv volume6-5 1Gi Bound ->claim6-5#uid6-5 policy=Recycle source=hostPath:/tmp/6-5")
            .script(Task::Recycle, &[Err("Mock recycle error")])
            .after(
                "pv volume6-5 1Gi Failed ->claim6-5#uid6-5 policy=Recycle source=hostPath:/tmp/6-5 scrub=pod-1 \
                    msg=Recycle_failed:_Mock_recycle_error",
            )
            .events(&["Warning VolumeFailedRecycle Recycle failed: Mock recycle error"])
            .stable("pv volume6-5 1Gi Available ->claim6-5 policy=Recycle source=hostPath:/tmp/6-5"),
        volume("6-10 unknown reclaim policy", "volume6-10")
            .before("pv volume6-10 1Gi Bound ->claim6-10#uid6-10 policy=Unknown source=hostPath:/tmp/6-10")
            .after(
                "pv volume6-10 1Gi Failed ->claim6-10#uid6-10 policy=Unknown source=hostPath:/tmp/6-10 \
                    msg=Volume_has_unrecognized_PersistentVolumeReclaimPolicy",
            )
            .events(&["Warning VolumeUnknownReclaimPolicy Volume has unrecognized PersistentVolumeReclaimPolicy"]),
        multi("7-1 recycle returns error")
            .before("pv volume7-1 1Gi Bound ->claim7-1#uid7-1 policy=Recycle source=hostPath:/tmp/7-1")
            .script(Task::Recycle, &[Err("Mock recycle error"), Ok(())])
            .after("pv volume7-1 1Gi Available ->claim7-1 policy=Recycle source=hostPath:/tmp/7-1")
            .events(&[
                "Warning VolumeFailedRecycle Recycle failed: Mock recycle error",
                "Normal VolumeRecycled Volume recycled",
            ]),
    ]
}

/// Another controller has scrubbed the volume and removed its `claimRef`.
fn clear_claim_ref(cluster: &mut SimulatedCluster, name: &str) {
    let patch = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": null}},
        "spec": {"claimRef": null},
        "status": {"phase": "Available"},
    });
    cluster.edit(&ObjectKey::volume(name), patch);
}

/// A change just before scrubbing.
fn races() -> Vec<Case> {
    vec![
        volume("6-6 volume is deleted before recycling", "volume6-6")
            .before("pv volume6-6 1Gi Bound ->claim6-6#uid6-6 policy=Recycle source=hostPath:/tmp/6-6")
            .unseen_change(|cluster| cluster.remove(&ObjectKey::volume("volume6-6")))
            .after("")
            .events(&[]),
        volume("6-7 volume is recycled before recycling", "volume6-7")
            .before("pv volume6-7 1Gi Bound ->claim6-7#uid6-7 bbc policy=Recycle source=hostPath:/tmp/6-7")
            .unseen_change(|cluster| clear_claim_ref(cluster, "volume6-7"))
            .after("pv volume6-7 1Gi Available policy=Recycle source=hostPath:/tmp/6-7")
            .events(&[]),
        volume("6-8 prebound volume is recycled before recycling", "volume6-8")
            .before("pv volume6-8 1Gi Bound ->claim6-8#uid6-8 policy=Recycle source=hostPath:/tmp/6-8")
            .unseen_change(|cluster| clear_claim_ref(cluster, "volume6-8"))
            .after("pv volume6-8 1Gi Available policy=Recycle source=hostPath:/tmp/6-8")
            .events(&[]),
    ]
}

/// Pods use a claim with the name in the `claimRef`.
fn pods() -> Vec<Case> {
    vec![
        volume("6-11 used by running pod", "volume6-11")
            .before(
                "pv  volume6-11 1Gi Bound ->runningClaim#uid6-11 bbc policy=Recycle source=hostPath:/tmp/6-11
                 pod runningPod claim=runningClaim phase=Running",
            )
            .after("pv volume6-11 1Gi Released ->runningClaim#uid6-11 bbc policy=Recycle source=hostPath:/tmp/6-11")
            .events(&["Normal VolumeFailedRecycle Volume is used by pods: default/runningPod"]),
        volume("6-11b the running pod ends", "volume6-11")
            .before(
                "pv  volume6-11 1Gi Bound ->runningClaim#uid6-11 bbc policy=Recycle source=hostPath:/tmp/6-11
                 pod runningPod claim=runningClaim phase=Running",
            )
            .after("pv volume6-11 1Gi Released ->runningClaim#uid6-11 bbc policy=Recycle source=hostPath:/tmp/6-11")
            .then(|cluster| notation::add(cluster, "pod runningPod claim=runningClaim phase=Succeeded"))
            .stable("pv volume6-11 1Gi Available policy=Recycle source=hostPath:/tmp/6-11"),
        volume("6-12 used by pending pod", "volume6-12")
            .before(
                "pv  volume6-12 1Gi Bound ->pendingClaim#uid6-12 bbc policy=Recycle source=hostPath:/tmp/6-12
                 pod pendingPod claim=pendingClaim phase=Pending",
            )
            .after("pv volume6-12 1Gi Released ->pendingClaim#uid6-12 bbc policy=Recycle source=hostPath:/tmp/6-12")
            .events(&["Normal VolumeFailedRecycle Volume is used by pods: default/pendingPod"]),
        volume("6-13 used by completed pod", "volume6-13")
            .before(
                "pv  volume6-13 1Gi Bound ->completedClaim#uid6-13 bbc policy=Recycle source=hostPath:/tmp/6-13
                 pod completedPod claim=completedClaim phase=Succeeded",
            )
            .after("pv volume6-13 1Gi Available policy=Recycle source=hostPath:/tmp/6-13")
            .events(&["Normal VolumeRecycled Volume recycled"]),
        volume("6-14 seemingly used by running pod", "volume6-14")
            .before(
                "pv  volume6-14 1Gi Bound ->completedClaim#uid6-14 bbc policy=Recycle source=hostPath:/tmp/6-14
                 pvc completedClaim#uid6-14-x 10Gi Bound
                 pod completedPod claim=completedClaim phase=Succeeded",
            )
            .after(
                "pv  volume6-14 1Gi Available policy=Recycle source=hostPath:/tmp/6-14
                 pvc completedClaim#uid6-14-x 10Gi Bound",
            )
            .events(&["Normal VolumeRecycled Volume recycled"])
            // The claim names no volume, so it is not bound, regardless of its status.
            .stable(
                "pv  volume6-14 1Gi Available policy=Recycle source=hostPath:/tmp/6-14
                 pvc completedClaim#uid6-14-x 10Gi Pending",
            ),
        volume("6-14b a running pod uses the new claim of that name", "volume6-14")
            .before(
                "pv  volume6-14 1Gi Bound ->claim6-14#uid6-14 bbc policy=Recycle source=hostPath:/tmp/6-14
                 pvc claim6-14#uid6-14-x 10Gi Pending
                 pod runningPod claim=claim6-14 phase=Running",
            )
            .after(
                "pv  volume6-14 1Gi Available policy=Recycle source=hostPath:/tmp/6-14
                 pvc claim6-14#uid6-14-x 10Gi Pending",
            )
            .events(&["Normal VolumeRecycled Volume recycled"]),
    ]
}
