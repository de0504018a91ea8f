//! Preparing CreateVolume requests, step by step, with objects in a map.

mod sources;
mod world;

use bindery_csi::Setup;
use bindery_provisioner_sdk::FailureEffect;
use serde_json::json;
use world::{World, failed, world};

#[test]
fn plain_claim_needs_no_reads() {
    let outcome = world().prepare();
    let expected = json!({
        "name": "pvc-1", "required_bytes": 1_610_612_736_i64, "access_modes": ["SINGLE_NODE_MULTI_WRITER"], "block": false,
        "fs_type": "ext4", "mount_flags": [], "parameters": {}, "mutable_parameters": {}, "source": null, "topology": null,
        "secrets": {
            "provisioner": null, "controller_publish": null, "node_stage": null, "node_publish": null,
            "controller_expand": null, "node_expand": null, "controller_modify": null,
        },
    });
    assert_eq!(outcome.result, Ok(expected));
    assert_eq!((outcome.read, outcome.written), (vec![], vec![]));
}

#[test]
fn request_combines_claim_and_class() {
    let world = world()
        .claim("/spec/accessModes", json!(["ReadWriteOncePod", "ReadOnlyMany"]))
        .claim("/spec/volumeMode", json!("Block"))
        .class("/mountOptions", json!(["noatime"]))
        .class("/parameters", json!({"color": "blue", "csi.storage.k8s.io/fstype": "xfs"}))
        .setup(|setup| Setup { extra_metadata: true, ..setup });
    let outcome = world.prepare().result.expect("prepared");
    assert_eq!(outcome["access_modes"], json!(["SINGLE_NODE_SINGLE_WRITER", "MULTI_NODE_READER_ONLY"]));
    assert_eq!(
        (&outcome["block"], &outcome["mount_flags"], &outcome["fs_type"]),
        (&json!(true), &json!(["noatime"]), &json!("xfs"))
    );
    let parameters = json!({
        "color": "blue", "csi.storage.k8s.io/pv/name": "pvc-1", "csi.storage.k8s.io/pvc/name": "c",
        "csi.storage.k8s.io/pvc/namespace": "ns",
    });
    assert_eq!(outcome["parameters"], parameters);
}

#[test]
fn sizes_are_rounded_up_to_bytes() {
    for (request, bytes) in [
        ("1Gi", 1_i64 << 30),
        ("1.5Gi", 1_610_612_736),
        ("1G", 1_000_000_000),
        ("5970004541", 5_970_004_541),
        ("1500m", 2),
        ("100Ki", 102_400),
    ] {
        let outcome = world().claim("/spec/resources/requests/storage", json!(request)).prepare();
        assert_eq!(outcome.result.expect("prepared")["required_bytes"], json!(bytes), "{request}");
    }
}

#[test]
fn errors_are_reported_in_order() {
    let clone = json!({"kind": "PersistentVolumeClaim", "name": "src"});
    let snapshot = json!({"kind": "VolumeSnapshot", "name": "s", "apiGroup": "snapshot.storage.k8s.io"});
    // Each state has one error more than the next, and the first error is reported.
    let everything = world()
        .claim("/spec/selector", json!({}))
        .class(
            "/parameters",
            json!({
                "fstype": "xfs", "csi.storage.k8s.io/fstype": "xfs", "csi.storage.k8s.io/nonsense": "x",
                "csi.storage.k8s.io/provisioner-secret-name": "x",
            }),
        )
        .claim("/spec/accessModes", json!(["Never"]));
    let nothing = |error: &str| failed(FailureEffect::Nothing, error);
    let table: Vec<(World, _)> = vec![
        (
            everything.clone().claim("/spec/dataSource", json!({"kind": "VolumeSnapshot", "name": ""})),
            nothing("the PVC source not found for PVC c"),
        ),
        (
            everything.clone().claim("/spec/dataSource", json!({"kind": "VolumeSnapshot", "name": "s"})),
            nothing("the PVC source does not belong to the right APIGroup. Expected snapshot.storage.k8s.io, Got "),
        ),
        (
            everything
                .clone()
                .claim("/spec/dataSourceRef", json!({"kind": "Book", "name": "b", "apiGroup": "example.com"})),
            failed(FailureEffect::NotOurs, "Assuming an external populator will provision the volume"),
        ),
        (
            everything
                .clone()
                .claim("/spec/dataSourceRef", json!({"kind": "VolumeSnapshot", "name": "s", "namespace": "o"})),
            nothing("dataSourceRef namespace specified but the CrossNamespaceVolumeDataSource feature is disabled"),
        ),
        (
            everything
                .clone()
                .claim("/spec/dataSource", clone)
                .capabilities(|capabilities| capabilities.clone_volume = false),
            nothing("CSI driver does not support clone operations: controller CLONE_VOLUME capability is not reported"),
        ),
        (
            everything
                .clone()
                .claim("/spec/dataSource", snapshot)
                .capabilities(|capabilities| capabilities.create_delete_snapshot = false),
            nothing(
                "CSI driver does not support snapshot restore: controller CREATE_DELETE_SNAPSHOT capability is not reported",
            ),
        ),
        (
            everything
                .clone()
                .claim("/spec/volumeAttributesClassName", json!("gold"))
                .capabilities(|capabilities| capabilities.modify_volume = false),
            nothing(
                "CSI driver does not support VolumeAttributesClass: controller MODIFY_VOLUME capability is not reported",
            ),
        ),
        (
            everything.clone().capabilities(|capabilities| capabilities.controller_service = false),
            nothing(
                "CSI driver does not support dynamic provisioning: plugin CONTROLLER_SERVICE capability is not reported",
            ),
        ),
        (
            everything.clone().capabilities(|capabilities| capabilities.create_delete_volume = false),
            nothing(
                "CSI driver does not support dynamic provisioning: controller CREATE_DELETE_VOLUME capability is not reported",
            ),
        ),
        (everything.clone(), nothing("claim Selector is not supported")),
    ];
    for (world, expected) in table {
        assert_eq!(world.prepare().result, Err(expected));
    }
    let next = everything.claim("/spec/selector", json!(null));
    let twice = "fstype specified in parameters with both \"fstype\" and \"csi.storage.k8s.io/fstype\" keys";
    assert_eq!(next.prepare().result, Err(nothing(twice)));
    let next = next.class("/parameters/fstype", json!(null)).claim("/spec/dataSource", json!(null));
    assert_eq!(next.prepare().result, Err(nothing("unsupported AccessMode combination: [Never]")));
    let unreachable = failed(FailureEffect::Reschedule, "no such node");
    let next = next.claim("/spec/accessModes", json!(["ReadWriteOnce"])).topology(Err(unreachable.clone()));
    assert_eq!(next.prepare().result, Err(unreachable));
    let next = next.topology(Ok(None));
    let half = "failed to get name and namespace template from params: either name and namespace for Provisioner secrets \
                specified, Both must be specified";
    assert_eq!(next.prepare().result, Err(failed(FailureEffect::NotAttempted, half)));
    let next = next.class("/parameters/csi.storage.k8s.io~1provisioner-secret-name", json!(null));
    let unknown = "failed to strip CSI Parameters of prefixed keys: found unknown parameter key \"csi.storage.k8s.io/nonsense\" \
                   with reserved namespace csi.storage.k8s.io/";
    assert_eq!(next.prepare().result, Err(nothing(unknown)));
}

#[test]
fn provisioner_secret_must_exist_and_is_not_stored() {
    let wanted = world().class(
        "/parameters",
        json!({
            "csi.storage.k8s.io/provisioner-secret-name": "${pvc.annotations['team']}",
            "csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
            "csi.storage.k8s.io/node-stage-secret-name": "other",
            "csi.storage.k8s.io/node-stage-secret-namespace": "ns",
        }),
    );
    let at = "/api/v1/namespaces/ns/secrets/blue";
    let missing = "error getting secret blue in namespace ns: secrets \"blue\" not found";
    assert_eq!(wanted.prepare().result, Err(failed(FailureEffect::NotAttempted, missing)));
    let outcome = wanted.object(at, json!({"data": {"user": "YWRtaW4="}})).prepare();
    assert_eq!(outcome.read, [at], "the other secrets are only referenced");
    let outcome = outcome.result.expect("prepared");
    assert_eq!(outcome["secrets"]["provisioner"], json!({"name": "blue", "namespace": "ns"}));
    assert_eq!(outcome["secrets"]["node_stage"], json!({"name": "other", "namespace": "ns"}));
    assert!(!outcome.to_string().contains("admin") && !outcome.to_string().contains("YWRtaW4="));
}

#[test]
fn attributes_class_must_belong_to_the_driver() {
    let wanted = world().claim("/spec/volumeAttributesClassName", json!("gold"));
    let at = "/apis/storage.k8s.io/v1/volumeattributesclasses/gold";
    let missing = "volumeattributesclasses \"gold\" not found";
    assert_eq!(wanted.prepare().result, Err(failed(FailureEffect::NotAttempted, missing)));
    let other = wanted.clone().object(at, json!({"driverName": "o.example.com"}));
    let error = "VAC gold referenced in PVC is for driver o.example.com which does not match driver name d.example.com";
    assert_eq!(other.prepare().result, Err(failed(FailureEffect::Nothing, error)));
    let ours = wanted.object(at, json!({"driverName": "d.example.com", "parameters": {"iops": "9"}}));
    assert_eq!(ours.prepare().result.expect("prepared")["mutable_parameters"], json!({"iops": "9"}));
    let disabled = ours.setup(|setup| Setup { attributes_classes: false, ..setup }).prepare();
    assert_eq!(disabled.result.expect("prepared")["mutable_parameters"], json!({}));
}
