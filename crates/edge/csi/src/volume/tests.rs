//! PersistentVolumes built from CreateVolumeResponses.

use super::*;
use crate::prepare::Secrets;
use crate::proto::VolumeContentSource;
use crate::setup::Capabilities;
use bindery_provisioner_sdk::ProvisionRequest;
use std::collections::BTreeMap;

const GIB: i64 = 1 << 30;

fn setup() -> Setup {
    Setup {
        driver: "d.example.com".into(),
        identity: "id".into(),
        capabilities: Capabilities { topology: true, ..Capabilities::default() },
        attributes_classes: true,
        read_only: true,
        ..Setup::default()
    }
}

fn order() -> ProvisionRequest {
    let claim = bindery_model::ClaimKey::new("ns", "c");
    ProvisionRequest {
        claim,
        uid: "1".into(),
        version: 1,
        class: "k".into(),
        class_version: 0,
        provisioner: "d.example.com".into(),
        volume: "pvc-1".into(),
        has_finalizer: true,
        node: None,
        topology: Ok(None),
        attempt: None,
    }
}

fn prepared() -> Prepared {
    Prepared {
        name: "pvc-1".into(),
        required_bytes: GIB,
        access_modes: vec!["SINGLE_NODE_WRITER".into()],
        fs_type: "ext4".into(),
        ..Prepared::default()
    }
}

fn response(volume: Volume) -> CreateVolumeResponse {
    CreateVolumeResponse { volume: Some(Volume { volume_id: "handle".into(), ..volume }) }
}

fn topology(pairs: &[(&str, &str)]) -> Topology {
    Topology { segments: pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect() }
}

fn secret(name: &str) -> Option<SecretRef> {
    Some(SecretRef { name: name.into(), namespace: "ns".into() })
}

/// Builds the volume for a claim with this spec.
fn make(spec: Value, class: Value, prepared: &Prepared, volume: Volume) -> Result<Value, UnusableVolume> {
    let (order, claim) = (order(), json!({"metadata": {"name": "c", "namespace": "ns"}, "spec": spec}));
    let ask = ProvisionContext { request: &order, claim: &claim, class: &class };
    from_response(&setup(), ask, prepared, response(volume))
}

#[test]
fn minimal_response_produces_minimal_volume() {
    let volume_json = make(json!({"accessModes": ["ReadWriteOnce"]}), json!({}), &prepared(), Volume::default());
    let expected = json!({
        "metadata": {"annotations": {
            "volume.kubernetes.io/provisioner-deletion-secret-name": "",
            "volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
        }},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "csi": {
                "driver": "d.example.com", "volumeHandle": "handle", "fsType": "ext4",
                "volumeAttributes": {"storage.kubernetes.io/csiProvisionerIdentity": "id"},
            },
        },
    });
    assert_eq!(volume_json, Ok(expected));
}

#[test]
fn volume_combines_fields_of_claim_class_and_response() {
    let spec =
        json!({"accessModes": ["ReadOnlyMany"], "volumeMode": "Filesystem", "volumeAttributesClassName": "gold"});
    let class = json!({"reclaimPolicy": "Retain", "mountOptions": ["noatime"]});
    let prepared = Prepared {
        access_modes: vec!["MULTI_NODE_READER_ONLY".into()],
        secrets: Secrets {
            provisioner: secret("p"),
            controller_publish: secret("cp"),
            node_stage: secret("ns"),
            node_publish: secret("np"),
            controller_expand: secret("ce"),
            node_expand: secret("ne"),
            controller_modify: secret("cm"),
        },
        ..prepared()
    };
    let volume = Volume {
        capacity_bytes: 2 * GIB,
        volume_context: BTreeMap::from([("a".into(), "b".into())]),
        accessible_topology: vec![
            topology(&[("zone", "z1"), ("rack", "r1")]),
            topology(&[]),
            topology(&[("zone", "z2")]),
        ],
        ..Volume::default()
    };
    let at = |name: &str| json!({"name": name, "namespace": "ns"});
    let one = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let expected = json!({
        "metadata": {"annotations": {
            "volume.kubernetes.io/provisioner-deletion-secret-name": "p",
            "volume.kubernetes.io/provisioner-deletion-secret-namespace": "ns",
            "volume.kubernetes.io/controller-modify-secret-name": "cm",
            "volume.kubernetes.io/controller-modify-secret-namespace": "ns",
        }},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "2Gi"},
            "mountOptions": ["noatime"],
            "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": "Filesystem",
            "volumeAttributesClassName": "gold",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [one("rack", "r1"), one("zone", "z1")]},
                {"matchExpressions": [one("zone", "z2")]},
            ]}},
            "csi": {
                "driver": "d.example.com", "volumeHandle": "handle", "fsType": "ext4", "readOnly": true,
                "volumeAttributes": {"a": "b", "storage.kubernetes.io/csiProvisionerIdentity": "id"},
                "controllerPublishSecretRef": at("cp"), "nodeStageSecretRef": at("ns"), "nodePublishSecretRef": at("np"),
                "controllerExpandSecretRef": at("ce"), "nodeExpandSecretRef": at("ne"),
            },
        },
    });
    assert_eq!(make(spec, class, &prepared, volume), Ok(expected));
}

#[test]
fn block_volume_has_no_fs_type_and_empty_topology_means_no_node_affinity() {
    let volume = Volume { accessible_topology: vec![topology(&[])], ..Volume::default() };
    let volume_json = make(json!({"volumeMode": "Block"}), json!({}), &prepared(), volume).expect("a volume");
    assert_eq!((volume_json.pointer("/spec/csi/fsType"), volume_json.pointer("/spec/nodeAffinity")), (None, None));
}

#[test]
fn volume_that_does_not_satisfy_the_claim_is_unusable() {
    let small = make(json!({}), json!({}), &prepared(), Volume { capacity_bytes: GIB - 1, ..Volume::default() });
    let unusable =
        |error: &str, orphaned| Err(UnusableVolume { error: error.into(), handle: Some("handle".into()), orphaned });
    let message = "created volume capacity 1073741823 less than requested capacity 1073741824";
    assert_eq!(small, unusable(message, "Cleanup of volume"));
    let spec = json!({"dataSource": {"kind": "VolumeSnapshot", "name": "s"}});
    let empty = make(spec.clone(), json!({}), &prepared(), Volume::default());
    assert_eq!(empty, unusable("volume content source missing", "cleanup of volume"));
    let filled = Volume { content_source: Some(VolumeContentSource::default()), ..Volume::default() };
    assert!(make(spec, json!({}), &prepared(), filled).is_ok());
    let (order, nothing) = (order(), json!({}));
    let ask = ProvisionContext { request: &order, claim: &nothing, class: &nothing };
    for volume in [None, Some(Volume::default())] {
        let unusable =
            from_response(&setup(), ask, &prepared(), CreateVolumeResponse { volume }).expect_err("no volume");
        assert_eq!(unusable.handle, None, "without a handle nothing can be deleted");
    }
}

#[test]
fn bytes_are_formatted_in_the_largest_exact_unit() {
    for (bytes, written) in [
        (5_970_004_541, "5970004541"),
        (5_905_580_032, "5632Mi"),
        (5 * GIB, "5Gi"),
        (102_400, "100Ki"),
        (0, "0"),
        (1, "1"),
        (1023, "1023"),
        (1 << 60, "1Ei"),
        (i64::MAX, "9223372036854775807"),
    ] {
        assert_eq!(in_binary_units(bytes), written);
    }
}
