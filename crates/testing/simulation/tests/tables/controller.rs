//! pv_controller_test.go, TestControllerSync: the effects of changes by others. The start times of
//! operations, which upstream asserts as well, are not part of a state.

use bindery_model::ObjectKey;
use bindery_simulation::notation;

use crate::case::{Case, claim_key, multi};

/// All cases of this table.
pub fn cases() -> Vec<Case> {
    [binds(), deletions(), external(), migration()].into_iter().flatten().collect()
}

fn binds() -> Vec<Case> {
    vec![
        multi("5-2 complete bind")
            .before("pv volume5-2 1Gi Available")
            .then(|cluster| notation::add(cluster, "pvc claim5-2#uid5-2 1Gi Pending"))
            .after(
                "pv  volume5-2 1Gi Bound ->claim5-2#uid5-2 bbc
                 pvc claim5-2#uid5-2 1Gi Bound vol=volume5-2 bbc bc",
            )
            .events(&[]),
        multi("5-2-2 complete bind when PV and PVC both exist")
            .before(
                "pv  volume5-2 1Gi Available
                 pvc claim5-2#uid5-2 1Gi Pending",
            )
            .after(
                "pv  volume5-2 1Gi Bound ->claim5-2#uid5-2 bbc
                 pvc claim5-2#uid5-2 1Gi Bound vol=volume5-2 bbc bc",
            )
            .events(&[]),
        multi("5-2-3 complete bind when PV has the pre-resize capacity annotation")
            .before("pv volume5-2 2Gi Available pre-resize=1Gi")
            .then(|cluster| notation::add(cluster, "pvc claim5-2#uid5-2 2Gi Pending got=2Gi/"))
            .after(
                "pv  volume5-2 2Gi Bound ->claim5-2#uid5-2 pre-resize=1Gi bbc
                 pvc claim5-2#uid5-2 2Gi Bound vol=volume5-2 got=1Gi/RWO,ROX bbc bc",
            )
            .events(&[]),
    ]
}

fn deletions() -> Vec<Case> {
    vec![
        multi("5-3 delete claim")
            .before(
                "pv  volume5-3 10Gi Bound ->claim5-3#uid5-3 bbc
                 pvc claim5-3#uid5-3 1Gi Bound vol=volume5-3 bbc bc",
            )
            .then(|cluster| cluster.delete(&claim_key("claim5-3")))
            .after("pv volume5-3 10Gi Released ->claim5-3#uid5-3 bbc")
            .events(&[]),
        multi("5-4 delete volume")
            .before(
                "pv  volume5-4 1Gi Bound ->claim5-4#uid5-4
                 pvc claim5-4#uid5-4 1Gi Bound vol=volume5-4 bbc bc",
            )
            .then(|cluster| cluster.delete(&ObjectKey::volume("volume5-4")))
            .after("pvc claim5-4#uid5-4 1Gi Lost vol=volume5-4 bbc bc")
            .events(&["Warning ClaimLost Bound claim has lost its PersistentVolume."]),
    ]
}

/// Volumes of an external provisioner.
fn external() -> Vec<Case> {
    vec![
        multi("5-5 delete claim and delete volume")
            .before(
                "sc  external gcr.io/vendor-csi
                 pv  volume5-5 10Gi Bound ->claim5-5#uid5-5 class=external policy=Delete by=gcr.io/vendor-csi bbc
                 pvc claim5-5#uid5-5 1Gi Bound vol=volume5-5 class=external sp-ga=gcr.io/vendor-csi bbc bc",
            )
            .then(|cluster| cluster.delete(&claim_key("claim5-5")))
            .then(|cluster| cluster.delete(&ObjectKey::volume("volume5-5")))
            .after("")
            .events(&[]),
        multi("5-6 delete claim and waiting for external volume deletion")
            .before(
                "sc  external gcr.io/vendor-csi
                 pv  volume5-6 10Gi Bound ->claim5-6#uid5-6 class=external policy=Delete by=gcr.io/vendor-csi bbc \
                     source=csi:fake.driver.csi
                 pvc claim5-6#uid5-6 1Gi Bound vol=volume5-6 class=external sp-ga=gcr.io/vendor-csi bbc bc",
            )
            .then(|cluster| cluster.delete(&claim_key("claim5-6")))
            .after(
                "pv  volume5-6 10Gi Released ->claim5-6#uid5-6 class=external policy=Delete by=gcr.io/vendor-csi bbc \
                     source=csi:fake.driver.csi",
            )
            .events(&[]),
        // The volume is removed at once, regardless of finalizers.
        multi("5-7 delete volume event makes claim lost, then delete claim")
            .before(
                "sc  external gcr.io/vendor-csi
                 pv  volume5-7 10Gi Bound ->claim5-7#uid5-7 class=external policy=Delete bbc \
                     by=kubernetes.io/mock-volume
                 pvc claim5-7#uid5-7 1Gi Bound vol=volume5-7 class=external sp-ga=gcr.io/vendor-csi bbc bc",
            )
            .then(|cluster| cluster.remove(&ObjectKey::volume("volume5-7")))
            .then(|cluster| cluster.delete(&claim_key("claim5-7")))
            .after("")
            .events(&["Warning ClaimLost Bound claim has lost its PersistentVolume."]),
        multi("5-8 delete a claim that is being provisioned")
            .before(
                "sc  external gcr.io/vendor-csi
                 pvc claim5-8#uid5-8 1Gi Pending class=external sp-ga=gcr.io/vendor-csi",
            )
            .then(|cluster| cluster.delete(&claim_key("claim5-8")))
            .after("")
            .events(&["Normal ExternalProvisioning"]),
    ]
}

fn migration() -> Vec<Case> {
    vec![
        multi("5-9 volume has its external PV deletion protection finalizer removed as CSI migration is disabled")
            .before(
                "pv volume-5-9 1Gi Available policy=Delete by=kubernetes.io/mock-volume migrated=pd.csi.storage.gke.io \
                    fin=external-provisioner.volume.kubernetes.io/finalizer",
            )
            .after(
                "pv volume-5-9 1Gi Available policy=Delete by=kubernetes.io/mock-volume \
                    fin=kubernetes.io/pv-controller",
            )
            .events(&[]),
    ]
}
