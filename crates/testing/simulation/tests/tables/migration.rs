//! pv_controller_test.go, TestModifyDeletionFinalizers and TestAnnealMigrationAnnotations: the
//! annotations and finalizers of migrated volumes, with the real table of migrated plugins.
//! Upstream tests single functions; here a bound pair ensures that the binder does nothing else.

use bindery_model::ObjectKey;
use serde_json::json;

use crate::case::{Case, claim, claim_key, volume};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    let finalizers = [csi(), rolled_back(), migrated(), static_volumes(), not_deleted()];
    let annotations = [annealed_on(), annealed_off(), not_annealed()];
    finalizers.into_iter().chain(annotations).flatten().collect()
}

/// The volume was provisioned by a CSI driver that never was an in-tree plugin.
fn csi() -> Vec<Case> {
    vec![
        volume("migration 13-1 never enabled, volume has the finalizer", "volume-13-1")
            .before(
                "pv  volume-13-1 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=rbd.csi.ceph.com bbc source=csi:rbd.csi.ceph.com \
                     fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-1 class=copper bbc bc",
            )
            .unchanged()
            .events(&[]),
        volume("migration 13-2 never enabled, volume does not have the finalizer", "volume-13-2")
            .before(
                "pv  volume-13-2 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=rbd.csi.ceph.com bbc source=csi:rbd.csi.ceph.com
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-2 class=copper bbc bc",
            )
            .unchanged()
            .events(&[]),
    ]
}

/// The volume was provisioned by an in-tree plugin: it has the binder's finalizer only.
fn rolled_back() -> Vec<Case> {
    vec![
        volume("migration 13-3 was disabled, volume has existing custom finalizer", "volume-13-3")
            .before(
                "pv  volume-13-3 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc fin=test.volume.kubernetes.io/finalizer
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-3 class=copper bbc bc",
            )
            .after(
                "pv  volume-13-3 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc \
                     fin=test.volume.kubernetes.io/finalizer fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-3 class=copper bbc bc",
            )
            .events(&[]),
        volume("migration 13-4 was disabled, volume has no finalizers", "volume-13-4")
            .before(
                "pv  volume-13-4 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-4 class=copper bbc bc",
            )
            .after(
                "pv  volume-13-4 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-4 class=copper bbc bc",
            )
            .events(&[]),
        volume("migration 13-5 was disabled, volume has external finalizer", "volume-13-5")
            .before(
                "pv  volume-13-5 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-5 class=copper bbc bc",
            )
            .after(
                "pv  volume-13-5 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-5 class=copper bbc bc",
            )
            .events(&[]),
        volume("migration 13-6 was disabled, volume has multiple finalizers", "volume-13-6")
            .before(
                "pv  volume-13-6 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc \
                     fin=external-provisioner.volume.kubernetes.io/finalizer fin=test.volume.kubernetes.io/finalizer
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-6 class=copper bbc bc",
            )
            .after(
                "pv  volume-13-6 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc \
                     fin=test.volume.kubernetes.io/finalizer fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-6 class=copper bbc bc",
            )
            .events(&[]),
        volume("migration 13-8 plugin migration is disabled, volume has external finalizer", "volume-13-8")
            .before(
                "pv  volume-13-8 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-8 class=copper bbc bc",
            )
            .after(
                "pv  volume-13-8 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-8 class=copper bbc bc",
            )
            .events(&[]),
        volume("migration 13-9 plugin migration is disabled, volume has multiple finalizers", "volume-13-9")
            .before(
                "pv  volume-13-9 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc \
                     fin=external-provisioner.volume.kubernetes.io/finalizer fin=test.volume.kubernetes.io/finalizer
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-9 class=copper bbc bc",
            )
            .after(
                "pv  volume-13-9 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/host-path bbc \
                     fin=test.volume.kubernetes.io/finalizer fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-9 class=copper bbc bc",
            )
            .events(&[]),
    ]
}

/// The volume was provisioned by a migrated plugin: it has the external provisioner's finalizer.
fn migrated() -> Vec<Case> {
    vec![
        volume("migration 13-7 is enabled, volume has both finalizers", "volume-13-7")
            .before(
                "pv  volume-13-7 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/gce-pd migrated=pd.csi.storage.gke.io \
                     fin=external-provisioner.volume.kubernetes.io/finalizer fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-7 class=copper bbc bc",
            )
            .after(
                "pv  volume-13-7 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     by=kubernetes.io/gce-pd migrated=pd.csi.storage.gke.io \
                     fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-7 class=copper bbc bc",
            )
            .events(&[]),
    ]
}

/// The volume was created manually.
fn static_volumes() -> Vec<Case> {
    vec![
        volume("migration 13-10 missing annotations but finalizers exist", "volume-13-10")
            .before(
                "pv  volume-13-10 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete \
                     fin=external-provisioner.volume.kubernetes.io/finalizer
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-10 class=copper bbc bc",
            )
            .unchanged()
            .events(&[]),
        volume("migration 13-11 missing annotations and finalizers", "volume-13-11")
            .before(
                "pv  volume-13-11 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Delete
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-11 class=copper bbc bc",
            )
            .unchanged()
            .events(&[]),
        volume("migration 13-15 is disabled, statically provisioned PV", "volume-13-14")
            .before("pv volume-13-14 1Gi Available class=copper policy=Delete")
            .unchanged()
            .events(&[]),
    ]
}

/// Volumes with other policies than Delete need no finalizer.
fn not_deleted() -> Vec<Case> {
    vec![
        volume("migration 13-12 is disabled, no finalizers, reclaimPolicy is Retain", "volume-13-12")
            .before(
                "pv  volume-13-12 1Gi Bound ->claim11-23#uid11-23 class=copper by=kubernetes.io/host-path bbc
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-12 class=copper bbc bc",
            )
            .unchanged()
            .events(&[]),
        volume("migration 13-13 is disabled, no finalizers, reclaimPolicy is Recycle", "volume-13-13")
            .before(
                "pv  volume-13-13 1Gi Bound ->claim11-23#uid11-23 class=copper policy=Recycle \
                     by=kubernetes.io/host-path bbc
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-13 class=copper bbc bc",
            )
            .unchanged()
            .events(&[]),
        volume("migration 13-14 is disabled, in-tree finalizer, reclaimPolicy is Retain", "volume-13-14")
            .before(
                "pv  volume-13-14 1Gi Bound ->claim11-23#uid11-23 class=copper \
                     by=kubernetes.io/host-path bbc fin=kubernetes.io/pv-controller
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-14 class=copper bbc bc",
            )
            .after(
                "pv  volume-13-14 1Gi Bound ->claim11-23#uid11-23 class=copper by=kubernetes.io/host-path bbc
                 pvc claim11-23#uid11-23 1Gi Bound vol=volume-13-14 class=copper bbc bc",
            )
            .events(&[]),
    ]
}

/// The provisioner is migrated to CSI.
fn annealed_on() -> Vec<Case> {
    vec![
        volume("anneal migration on: volume", "volume")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc by=kubernetes.io/gce-pd
                 pvc claim#uid 1Gi Bound vol=volume bbc bc",
            )
            .after(
                "pv  volume 1Gi Bound ->claim#uid bbc by=kubernetes.io/gce-pd migrated=pd.csi.storage.gke.io
                 pvc claim#uid 1Gi Bound vol=volume bbc bc",
            )
            .events(&[]),
        claim("anneal migration on: claim", "claim")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-ga=kubernetes.io/gce-pd",
            )
            .after(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-ga=kubernetes.io/gce-pd migrated=pd.csi.storage.gke.io",
            )
            .events(&[]),
        claim("anneal migration on with Beta annotation: claim", "claim")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-beta=kubernetes.io/gce-pd",
            )
            .after(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-beta=kubernetes.io/gce-pd migrated=pd.csi.storage.gke.io",
            )
            .events(&[]),
    ]
}

/// The provisioner is not migrated, or was rolled back.
fn annealed_off() -> Vec<Case> {
    vec![
        volume("anneal migration off: volume", "volume")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc by=kubernetes.io/rbd
                 pvc claim#uid 1Gi Bound vol=volume bbc bc",
            )
            .unchanged()
            .events(&[]),
        claim("anneal migration off: claim", "claim")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-ga=kubernetes.io/rbd",
            )
            .unchanged()
            .events(&[]),
        volume("anneal migration off removes migrated-to (rollback): volume", "volume")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc by=kubernetes.io/rbd migrated=rbd.csi.ceph.com
                 pvc claim#uid 1Gi Bound vol=volume bbc bc",
            )
            .after(
                "pv  volume 1Gi Bound ->claim#uid bbc by=kubernetes.io/rbd
                 pvc claim#uid 1Gi Bound vol=volume bbc bc",
            )
            .events(&[]),
        claim("anneal migration off removes migrated-to (rollback): claim", "claim")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-ga=kubernetes.io/rbd migrated=rbd.csi.ceph.com",
            )
            .after(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-ga=kubernetes.io/rbd",
            )
            .events(&[]),
        claim("anneal migration off removes migrated-to (rollback) with Beta annotation: claim", "claim")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-beta=kubernetes.io/rbd migrated=rbd.csi.ceph.com",
            )
            .after(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-beta=kubernetes.io/rbd",
            )
            .events(&[]),
    ]
}

/// Another provisioner, or none.
fn not_annealed() -> Vec<Case> {
    vec![
        volume("anneal other plugin not affected: volume", "volume")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc by=non-migrated-plugin
                 pvc claim#uid 1Gi Bound vol=volume bbc bc",
            )
            .unchanged()
            .events(&[]),
        claim("anneal other plugin not affected: claim", "claim")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc sp-ga=non-migrated-plugin",
            )
            .unchanged()
            .events(&[]),
        volume("anneal not dynamically provisioned: volume", "volume")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc",
            )
            .unchanged()
            .events(&[]),
        claim("anneal not dynamically provisioned: claim", "claim")
            .before(
                "pv  volume 1Gi Bound ->claim#uid bbc
                 pvc claim#uid 1Gi Bound vol=volume bbc bc",
            )
            .unchanged()
            .events(&[]),
        volume("anneal nil annotations: volume", "volume")
            .before("pv volume 1Gi Available")
            .unseen_change(|cluster| {
                cluster.edit(&ObjectKey::volume("volume"), json!({"metadata": {"annotations": null}}))
            })
            .unchanged()
            .events(&[]),
        claim("anneal nil annotations: claim", "claim")
            .before("pvc claim#uid 1Gi Pending vol=volume")
            .unseen_change(|cluster| cluster.edit(&claim_key("claim"), json!({"metadata": {"annotations": null}})))
            .unchanged()
            .events(&[]),
    ]
}
