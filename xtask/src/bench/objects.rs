//! Claims and volumes with realistic contents, including managedFields.

use bindery_model::{Claim, Volume};
use serde_json::{Value, json};

/// A UID in the usual format.
fn uid(kind: u32, n: usize) -> String {
    format!("{kind:08x}-5d7a-4c21-9f3e-{n:012x}")
}

fn managed_fields(manager: &str) -> Value {
    let owned = json!({
        "f:metadata": {"f:annotations": {".": {}, "f:pv.kubernetes.io/bound-by-controller": {}}, "f:labels": {".": {}, "f:app": {}}},
        "f:spec": {"f:accessModes": {}, "f:capacity": {".": {}, "f:storage": {}}, "f:storageClassName": {}, "f:volumeMode": {}},
        "f:status": {"f:phase": {}},
    });
    json!([
        {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-11-01T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": owned},
        {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-11-01T10:00:01Z", "fieldsType": "FieldsV1", "fieldsV1": owned, "subresource": "status"},
    ])
}

/// The JSON of a claim, bound to volume `n` or unbound.
pub fn claim_json(n: usize, size_gib: usize, bound: bool) -> Value {
    let mut claim = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": format!("data-postgres-{n}"),
            "namespace": format!("team-{}", n % 97),
            "uid": uid(1, n),
            "resourceVersion": (1_000_000 + n).to_string(),
            "creationTimestamp": "2026-11-01T10:00:00Z",
            "labels": {"app": "postgres", "team": format!("team-{}", n % 97)},
            "annotations": {"example.com/owner": "a team that writes long annotations about what it does and why"},
            "finalizers": ["kubernetes.io/pvc-protection"],
            "managedFields": managed_fields("kubectl-client-side-apply"),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": format!("{size_gib}Gi")}},
            "storageClassName": "fast-ssd",
            "volumeMode": "Filesystem",
        },
        "status": {"phase": "Pending"},
    });
    if bound {
        claim["spec"]["volumeName"] = volume_name(n).into();
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes".into();
        claim["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] = "yes".into();
        claim["status"] = json!({
            "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": format!("{size_gib}Gi")},
        });
    }
    claim
}

fn volume_name(n: usize) -> String {
    format!("pvc-{}", uid(1, n))
}

/// The JSON of a volume, bound to claim `n` or available.
pub fn volume_json(n: usize, size_gib: usize, bound: bool) -> Value {
    let mut volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": volume_name(n),
            "uid": uid(2, n),
            "resourceVersion": (2_000_000 + n).to_string(),
            "creationTimestamp": "2026-11-01T10:00:00Z",
            "annotations": {"pv.kubernetes.io/provisioned-by": "csi.example.com"},
            "finalizers": ["kubernetes.io/pv-protection"],
            "managedFields": managed_fields("csi-provisioner"),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": format!("{size_gib}Gi")},
            "csi": {"driver": "csi.example.com", "volumeHandle": format!("vol-{n:017x}"), "fsType": "ext4",
                    "volumeAttributes": {"storage.kubernetes.io/csiProvisionerIdentity": "1762000000000-8081-csi.example.com"}},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "fast-ssd",
            "volumeMode": "Filesystem",
        },
        "status": {"phase": "Available"},
    });
    if bound {
        let claim = claim_json(n, size_gib, false);
        volume["spec"]["claimRef"] = json!({
            "kind": "PersistentVolumeClaim", "apiVersion": "v1", "resourceVersion": "999",
            "namespace": claim["metadata"]["namespace"], "name": claim["metadata"]["name"], "uid": claim["metadata"]["uid"],
        });
        volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] = "yes".into();
        volume["status"]["phase"] = "Bound".into();
    }
    volume
}

/// A decoded claim.
pub fn claim(n: usize, size_gib: usize, bound: bool) -> Claim {
    Claim::from_json(claim_json(n, size_gib, bound).to_string().as_bytes()).expect("a claim has a name")
}

/// A decoded volume.
pub fn volume(n: usize, size_gib: usize, bound: bool) -> Volume {
    Volume::from_json(volume_json(n, size_gib, bound).to_string().as_bytes()).expect("a volume has a name")
}

/// A size for object `n`: evenly distributed over 1 to 1000 GiB, unordered.
pub fn size_gib(n: usize) -> usize {
    1 + (n * 7919) % 1000
}
