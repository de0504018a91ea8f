//! delete_test.go: released volumes with the policy Delete.
//!
//! Upstream's mock plugin is the host-path plugin here: a source below `/tmp`.

use bindery_model::ObjectKey;
use bindery_rules_api::Task;
use bindery_simulation::notation;

use crate::case::{Case, multi, volume};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [in_tree(), failures(), races(), external(), several()].into_iter().flatten().collect()
}

/// A plugin deletes the backing storage.
fn in_tree() -> Vec<Case> {
    vec![
        volume("8-1 successful delete", "volume8-1")
            .before("pv volume8-1 1Gi Bound ->claim8-1#uid8-1 bbc policy=Delete source=hostPath:/tmp/8-1")
            .after("")
            .events(&[]),
        volume("8-2 successful delete with prebound volume", "volume8-2")
            .before("pv volume8-2 1Gi Bound ->claim8-2#uid8-2 policy=Delete source=hostPath:/tmp/8-2")
            .after("")
            .events(&[]),
        volume("8-9 prebound volume is deleted while the claim exists", "volume8-9")
            .before(
                "pv  volume8-9 1Gi Bound ->claim8-9#uid8-9 policy=Delete source=hostPath:/tmp/8-9
                 pvc claim8-9#uid8-9-x 10Gi Pending",
            )
            .after("pvc claim8-9#uid8-9-x 10Gi Pending")
            .events(&[]),
        volume("8-13 volume has deletion timestamp and processed", "volume8-13")
            .before(
                "pv volume8-13 1Gi Bound ->claim8-13#uid8-13 bbc policy=Delete source=hostPath:/tmp/8-13 \
                    fin=kubernetes.io/pv-controller deleting",
            )
            .after("")
            .events(&[]),
    ]
}

/// The backing storage cannot be deleted.
fn failures() -> Vec<Case> {
    vec![
        volume("8-3 plugin not found", "volume8-3")
            .before("pv volume8-3 1Gi Bound ->claim8-3#uid8-3 policy=Delete")
            .after(
                "pv volume8-3 1Gi Failed ->claim8-3#uid8-3 policy=Delete \
                    msg=error_getting_deleter_volume_plugin_for_volume_\"volume8-3\":_no_volume_plugin_matched",
            )
            .events(&["Warning VolumeFailedDelete error getting deleter volume plugin for volume \"volume8-3\": no \
                 volume plugin matched"]),
        volume("8-4 newDeleter returns error", "volume8-4")
            .before(
                "pv volume8-4 1Gi Bound ->claim8-4#uid8-4 policy=Delete \
                    by=kubernetes.io/host-path fin=kubernetes.io/pv-controller",
            )
            .after(
                "pv volume8-4 1Gi Failed ->claim8-4#uid8-4 policy=Delete \
                    by=kubernetes.io/host-path fin=kubernetes.io/pv-controller \
                    msg=failed_to_create_deleter_for_volume_\"volume8-4\":_spec.PersistentVolumeSource.HostPath_is_nil",
            )
            .events(&["Warning VolumeFailedDelete failed to create deleter for volume \"volume8-4\": \
                 spec.PersistentVolumeSource.HostPath is nil"]),
        volume("8-5 delete returns error", "volume8-5")
            .before("pv volume8-5 1Gi Bound ->claim8-5#uid8-5 policy=Delete source=hostPath:/tmp/8-5")
            .script(Task::DeleteStorage, &[Err("Mock delete error")])
            .after(
                "pv volume8-5 1Gi Failed ->claim8-5#uid8-5 policy=Delete source=hostPath:/tmp/8-5 \
                    msg=Mock_delete_error",
            )
            .events(&["Warning VolumeFailedDelete Mock delete error"])
            // The retry succeeds.
            .stable(""),
        multi("9-1 delete returns error")
            .before(
                "pv volume9-1 1Gi Bound ->claim9-1#uid9-1 policy=Delete source=hostPath:/tmp/9-1 \
                    fin=kubernetes.io/pv-controller",
            )
            .script(Task::DeleteStorage, &[Err("Mock delete error"), Ok(())])
            .after("")
            .events(&["Warning VolumeFailedDelete Mock delete error"]),
    ]
}

/// A change just before the deletion.
fn races() -> Vec<Case> {
    vec![
        volume("8-6 volume is deleted before deleting", "volume8-6")
            .before("pv volume8-6 1Gi Bound ->claim8-6#uid8-6 policy=Delete source=hostPath:/tmp/8-6")
            .unseen_change(|cluster| cluster.remove(&ObjectKey::volume("volume8-6")))
            .after("")
            .events(&[]),
        volume("8-7 volume is bound before deleting", "volume8-7")
            .before("pv volume8-7 1Gi Bound ->claim8-7#uid8-7 bbc policy=Delete source=hostPath:/tmp/8-7")
            .unseen_change(|cluster| notation::add(cluster, "pvc claim8-7#uid8-7 10Gi Bound vol=volume8-7"))
            .after(
                "pv  volume8-7 1Gi Bound ->claim8-7#uid8-7 bbc policy=Delete source=hostPath:/tmp/8-7
                 pvc claim8-7#uid8-7 10Gi Bound vol=volume8-7",
            )
            .events(&[])
            // The bind of the claim is completed as well.
            .stable(
                "pv  volume8-7 1Gi Bound ->claim8-7#uid8-7 bbc policy=Delete source=hostPath:/tmp/8-7
                 pvc claim8-7#uid8-7 10Gi Bound vol=volume8-7 bc",
            ),
    ]
}

/// An external provisioner deletes the volume.
fn external() -> Vec<Case> {
    vec![
        volume("8-10-1 external deleter when volume is dynamic provisioning", "volume8-10-1")
            .before(
                "pv volume8-10-1 1Gi Bound ->claim10-1-1#uid10-1-1 bbc policy=Delete \
                    source=csi:pd.csi.storage.gke.io by=external.io/test",
            )
            .after(
                "pv volume8-10-1 1Gi Released ->claim10-1-1#uid10-1-1 bbc policy=Delete \
                    source=csi:pd.csi.storage.gke.io by=external.io/test",
            )
            .events(&[]),
        volume("8-10-2 external deleter when volume is static provisioning", "volume8-10-2")
            .before(
                "pv volume8-10-2 1Gi Bound ->claim10-1-2#uid10-1-2 bbc policy=Delete \
                    source=csi:pd.csi.storage.gke.io",
            )
            .after(
                "pv volume8-10-2 1Gi Released ->claim10-1-2#uid10-1-2 bbc policy=Delete \
                    source=csi:pd.csi.storage.gke.io",
            )
            .events(&[]),
        volume("8-10-3 external deleter when volume is migrated", "volume8-10-3")
            .before(
                "pv volume8-10-3 1Gi Bound ->claim10-1-3#uid10-1-3 policy=Delete \
                    by=kubernetes.io/gce-pd migrated=pd.csi.storage.gke.io",
            )
            .after(
                "pv volume8-10-3 1Gi Released ->claim10-1-3#uid10-1-3 policy=Delete \
                    by=kubernetes.io/gce-pd migrated=pd.csi.storage.gke.io",
            )
            .events(&[]),
    ]
}

/// Two volumes were provisioned for one claim: the unbound one is deleted.
fn several() -> Vec<Case> {
    vec![
        volume("8-11 two PVs provisioned for a single claim", "volume8-11-1")
            .before(
                "pv volume8-11-1 1Gi Bound ->claim8-11#uid8-11 policy=Delete source=hostPath:/tmp/8-11-1 \
                    by=kubernetes.io/host-path
                 pv volume8-11-2 1Gi Bound ->claim8-11#uid8-11 policy=Delete source=hostPath:/tmp/8-11-2 \
                    by=kubernetes.io/host-path
                 pvc claim8-11#uid8-11 10Gi Bound vol=volume8-11-2",
            )
            .after(
                "pv volume8-11-2 1Gi Bound ->claim8-11#uid8-11 policy=Delete source=hostPath:/tmp/8-11-2 \
                    by=kubernetes.io/host-path
                 pvc claim8-11#uid8-11 10Gi Bound vol=volume8-11-2",
            )
            .events(&[])
            // The other volume gets its finalizer, and the bind is completed.
            .stable(
                "pv volume8-11-2 1Gi Bound ->claim8-11#uid8-11 policy=Delete source=hostPath:/tmp/8-11-2 \
                    by=kubernetes.io/host-path fin=kubernetes.io/pv-controller
                 pvc claim8-11#uid8-11 10Gi Bound vol=volume8-11-2 bc",
            ),
        volume("8-12 two PVs externally provisioned for a single claim", "volume8-12-1")
            .before(
                "pv volume8-12-1 1Gi Bound ->claim8-12#uid8-12 policy=Delete source=csi:pd.csi.storage.gke.io \
                    by=external.io/test
                 pv volume8-12-2 1Gi Bound ->claim8-12#uid8-12 policy=Delete source=csi:pd.csi.storage.gke.io \
                    by=pd.csi.storage.gke.io
                 pvc claim8-12#uid8-12 10Gi Bound vol=volume8-12-2",
            )
            .after(
                "pv volume8-12-1 1Gi Released ->claim8-12#uid8-12 policy=Delete source=csi:pd.csi.storage.gke.io \
                    by=external.io/test
                 pv volume8-12-2 1Gi Bound ->claim8-12#uid8-12 policy=Delete source=csi:pd.csi.storage.gke.io \
                    by=pd.csi.storage.gke.io
                 pvc claim8-12#uid8-12 10Gi Bound vol=volume8-12-2",
            )
            .events(&[])
            .stable(
                "pv volume8-12-1 1Gi Released ->claim8-12#uid8-12 policy=Delete source=csi:pd.csi.storage.gke.io \
                    by=external.io/test
                 pv volume8-12-2 1Gi Bound ->claim8-12#uid8-12 policy=Delete source=csi:pd.csi.storage.gke.io \
                    by=pd.csi.storage.gke.io
                 pvc claim8-12#uid8-12 10Gi Bound vol=volume8-12-2 bc",
            ),
    ]
}
