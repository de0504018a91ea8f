//! Claims with a data source.

use bindery_csi::Setup;
use bindery_provisioner_sdk::FailureEffect;
use serde_json::{Value, json};

use crate::world::{World, failed, world};

const SOURCE: &str = "/api/v1/namespaces/ns/persistentvolumeclaims/src";
const VOLUME: &str = "/api/v1/persistentvolumes/pv";
const SNAPSHOT: &str = "/apis/snapshot.storage.k8s.io/v1/namespaces/ns/volumesnapshots/snap";
const CONTENT: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/cont";
const CLONING: &str = "provisioner.storage.kubernetes.io/cloning-protection";
const RESTORING: &str = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";

/// A clone of a claim that is bound and large enough.
fn clone() -> World {
    let source = json!({
        "metadata": {"name": "src", "namespace": "ns", "uid": "2", "resourceVersion": "7", "finalizers": ["x/y"]},
        "spec": {"storageClassName": "other", "volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    });
    let volume = json!({
        "spec": {
            "csi": {"driver": "d.example.com", "volumeHandle": "h"},
            "claimRef": {"uid": "2", "namespace": "ns", "name": "src"},
        },
        "status": {"phase": "Bound"},
    });
    let named = json!({"kind": "PersistentVolumeClaim", "name": "src"});
    world().claim("/spec/dataSource", named).object(SOURCE, source).object(VOLUME, volume)
}

/// A claim that is restored from a snapshot that is ready.
fn restore() -> World {
    let snapshot = json!({
        "metadata": {"name": "snap", "namespace": "ns", "uid": "3", "resourceVersion": "8"},
        "status": {"boundVolumeSnapshotContentName": "cont", "readyToUse": true, "restoreSize": "1Gi"},
    });
    let content = json!({
        "metadata": {"name": "cont"},
        "spec": {"driver": "d.example.com", "volumeSnapshotRef": {"uid": "3", "namespace": "ns", "name": "snap"}},
        "status": {"snapshotHandle": "sh"},
    });
    let named = json!({"kind": "VolumeSnapshot", "name": "snap", "apiGroup": "snapshot.storage.k8s.io"});
    world().claim("/spec/dataSource", named).object(SNAPSHOT, snapshot).object(CONTENT, content)
}

/// The content source of a claim, and the patches written before.
fn filled(world: &World) -> (Value, Vec<Value>) {
    let outcome = world.prepare();
    (outcome.result.expect("prepared")["source"].clone(), outcome.written.into_iter().map(|patch| patch.body).collect())
}

#[test]
fn source_claim_of_a_clone_gets_a_finalizer() {
    let kept = json!({"metadata": {"uid": "2", "resourceVersion": "7", "finalizers": ["x/y", CLONING]}});
    assert_eq!(filled(&clone()), (json!({"Volume": "h"}), vec![kept]));
    let kept_already = clone().change(SOURCE, "/metadata/finalizers", json!([CLONING]));
    assert_eq!(filled(&kept_already), (json!({"Volume": "h"}), vec![]));
    assert_eq!(clone().forbid(SOURCE).prepare().result, Err(failed(FailureEffect::NotAttempted, "you may not")));
}

#[test]
fn source_is_read_again_after_a_conflict() {
    for world in [clone().busy(SOURCE, 3), restore().busy(SNAPSHOT, 3)] {
        let outcome = world.prepare();
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        assert_eq!(outcome.written.len(), 4);
    }
    let never = clone().busy(SOURCE, usize::MAX).prepare().result;
    assert_eq!(never, Err(failed(FailureEffect::NotAttempted, "it has changed")), "fails in the end");
}

#[test]
fn source_snapshot_gets_a_finalizer_if_allowed() {
    let kept = json!({"metadata": {"uid": "3", "resourceVersion": "8", "finalizers": [RESTORING]}});
    assert_eq!(filled(&restore()), (json!({"Snapshot": "sh"}), vec![kept.clone()]));
    assert_eq!(filled(&restore().forbid(SNAPSHOT)), (json!({"Snapshot": "sh"}), vec![kept]));
    let in_use = restore().change(SNAPSHOT, "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")).change(
        SNAPSHOT,
        "/metadata/finalizers",
        json!([RESTORING]),
    );
    assert_eq!(filled(&in_use), (json!({"Snapshot": "sh"}), vec![]));
}

/// Checks that each state fails with its error, and nothing is written.
fn check(kind: &str, name: &str, table: Vec<(World, &str)>) {
    for (world, error) in table {
        let outcome = world.prepare();
        let message = format!("error getting handle for DataSource Type {kind} by Name {name}: {error}");
        assert_eq!(outcome.result, Err(failed(FailureEffect::NotAttempted, &message)));
        assert_eq!(outcome.written, [], "{error}");
    }
}

#[test]
fn source_claim_of_a_clone_must_be_bound_and_not_larger() {
    let vague = "claim in dataSource not bound or invalid";
    let deleted = json!("2026-01-01T00:00:00Z");
    let mode = "the source PVC and destination PVCs must have the same volume mode for cloning.  Source is";
    let block = format!("{mode} Block, but new PVC requested Filesystem");
    let filesystem = format!("{mode} Filesystem, but new PVC requested Block");
    check(
        "PersistentVolumeClaim",
        "src",
        vec![
            (
                world().claim("/spec/dataSource", json!({"kind": "PersistentVolumeClaim", "name": "src"})),
                "error getting PVC src (namespace \"ns\") from api server: persistentvolumeclaim \"src\" not found",
            ),
            (
                clone().change(SOURCE, "/status/phase", json!("Pending")),
                "the PVC DataSource src must have a status of Bound.  Got {Pending [] map[] [] map[] map[] <nil> nil}",
            ),
            (
                clone().change(SOURCE, "/metadata/deletionTimestamp", deleted),
                "the PVC DataSource src is currently being deleted",
            ),
            (
                clone().change(SOURCE, "/spec/storageClassName", json!(null)),
                "the source PVC (src) storageclass cannot be empty",
            ),
            (
                clone().change(SOURCE, "/spec/resources/requests/storage", json!("2Gi")),
                "error, new PVC request must be greater than or equal in size to the specified PVC data source, requested \
             1610612736 but source is 2147483648",
            ),
            (clone().change(SOURCE, "/spec/volumeName", json!(null)), "volume name is empty in source PVC src"),
            (clone().change(SOURCE, "/spec/volumeName", json!("gone")), vague),
            (clone().change(VOLUME, "/spec/csi", json!(null)), vague),
            (clone().change(VOLUME, "/spec/csi/driver", json!("o.example.com")), vague),
            (clone().change(VOLUME, "/spec/claimRef", json!(null)), vague),
            (clone().change(VOLUME, "/spec/claimRef/uid", json!("9")), vague),
            (clone().change(VOLUME, "/status/phase", json!("Released")), vague),
            (clone().change(VOLUME, "/spec/volumeMode", json!("Block")), &block),
            (clone().claim("/spec/volumeMode", json!("Block")), &filesystem),
        ],
    );
    check(
        "PersistentVolumeClaim",
        "../../secrets/x",
        vec![(
            clone().claim("/spec/dataSource/name", json!("../../secrets/x")),
            "invalid resource name \"../../secrets/x\"",
        )],
    );
}

#[test]
fn source_snapshot_must_be_ready_of_this_driver_and_not_larger() {
    let deleted = json!("2026-01-01T00:00:00Z");
    check(
        "VolumeSnapshot",
        "snap",
        vec![
            (
                world().claim(
                    "/spec/dataSource",
                    json!({"kind": "VolumeSnapshot", "name": "snap", "apiGroup": "snapshot.storage.k8s.io"}),
                ),
                "error getting snapshot snap from api server: volumesnapshots \"snap\" not found",
            ),
            (restore().change(SNAPSHOT, "/metadata/deletionTimestamp", deleted), "snapshot snap is being deleted"),
            (restore().change(SNAPSHOT, "/status", json!(null)), "snapshot snap not bound"),
            (
                restore().change(SNAPSHOT, "/status/boundVolumeSnapshotContentName", json!("gone")),
                "error getting snapshotcontent gone for snapshot snap",
            ),
            (
                restore().change(CONTENT, "/spec/volumeSnapshotRef/uid", json!("9")),
                "snapshotcontent cont for snapshot snap is bound to a different snapshot",
            ),
            (
                restore().change(CONTENT, "/spec/driver", json!("o.example.com")),
                "snapshotcontent cont for snapshot snap is not handled by CSI driver of StorageClass k",
            ),
            (restore().change(SNAPSHOT, "/status/readyToUse", json!(false)), "snapshot snap is not Ready"),
            (restore().change(CONTENT, "/status", json!(null)), "snapshot handle snap is not available"),
            (
                restore().change(SNAPSHOT, "/status/restoreSize", json!("2Ti")),
                "requested volume size 1610612736 is less than the size 2199023255552 for the source snapshot snap",
            ),
        ],
    );
}

#[test]
fn volume_mode_of_a_snapshot_may_change_only_if_allowed() {
    let other = restore()
        .change(CONTENT, "/spec/sourceVolumeMode", json!("Filesystem"))
        .claim("/spec/volumeMode", json!("Block"));
    let key = "snapshot.storage.kubernetes.io/allow-volume-mode-change";
    let allowed = |value: &str| other.clone().change(CONTENT, "/metadata/annotations", json!({key: value}));
    let rejected =
        "requested volume ns/c modifies the mode of the source volume but does not have permission to do so.";
    let absent = format!("{rejected} {key} annotation is not present on snapshotcontent cont");
    let no = format!("{rejected} {key} is set to false on snapshotcontent cont");
    let nonsense = format!(
        "{rejected} failed to convert {key} annotation value to boolean with error: strconv.ParseBool: parsing \"perhaps\": \
         invalid syntax"
    );
    check(
        "VolumeSnapshot",
        "snap",
        vec![(other.clone(), &absent), (allowed("false"), &no), (allowed("perhaps"), &nonsense)],
    );
    assert_eq!(filled(&allowed("true")).0, json!({"Snapshot": "sh"}));
    let unchecked = other.setup(|setup| Setup { keep_volume_mode: false, ..setup });
    assert_eq!(filled(&unchecked).0, json!({"Snapshot": "sh"}));
}

#[test]
fn other_namespace_must_grant_the_reference() {
    let grants = "/apis/gateway.networking.k8s.io/v1beta1/namespaces/other/referencegrants";
    let theirs = "/apis/snapshot.storage.k8s.io/v1/namespaces/other/volumesnapshots/snap";
    let named =
        json!({"kind": "VolumeSnapshot", "name": "snap", "apiGroup": "snapshot.storage.k8s.io", "namespace": "other"});
    let snapshot = json!({
        "metadata": {"name": "snap", "namespace": "other", "uid": "3"},
        "status": {"boundVolumeSnapshotContentName": "cont", "readyToUse": true},
    });
    let cross_namespace = restore()
        .claim("/spec/dataSource", json!(null))
        .claim("/spec/dataSourceRef", named)
        .object(theirs, snapshot)
        .change(CONTENT, "/spec/volumeSnapshotRef/namespace", json!("other"))
        .setup(|setup| Setup { cross_namespace: true, ..setup });
    let grant = |from: &str, kind: &str, name: Value| {
        let from = json!([{"group": "", "kind": "PersistentVolumeClaim", "namespace": from}]);
        let to = json!([{"group": "snapshot.storage.k8s.io", "kind": kind, "name": name}]);
        cross_namespace.clone().object(grants, json!({"items": [{"spec": {"from": from, "to": to}}]}))
    };
    let rejected = "accessing other/snap of VolumeSnapshot dataSource from ns/c isn't allowed";
    for (world, granted) in [
        (cross_namespace.clone().object(grants, json!({"items": []})), false),
        (grant("elsewhere", "VolumeSnapshot", json!(null)), false),
        (grant("ns", "Book", json!(null)), false),
        (grant("ns", "VolumeSnapshot", json!("another")), false),
        (grant("ns", "VolumeSnapshot", json!("snap")), true),
        (grant("ns", "VolumeSnapshot", json!("")), true),
        (grant("ns", "VolumeSnapshot", json!(null)), true),
    ] {
        match world.prepare().result {
            Ok(outcome) => assert!(granted && outcome["source"] == json!({"Snapshot": "sh"})),
            Err(failure) => {
                assert_eq!(failure, failed(FailureEffect::Nothing, rejected));
                assert!(!granted);
            }
        }
    }
}
