//! Decoding of objects, valid and malformed.

use bindery_model::{
    AccessMode, Annotation, BindingMode, Claim, ClaimKey, ClaimPhase, Class, FieldError, Kind, Name, Node, Object, Pod,
    PodPhase, ReclaimPolicy, Source, Volume, VolumeMode, VolumePhase,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn claim(json: Value) -> Claim {
    Claim::from_json(json.to_string().as_bytes()).expect("it has a name")
}

fn volume(json: Value) -> Volume {
    Volume::from_json(json.to_string().as_bytes()).expect("it has a name")
}

#[test]
fn claim_is_decoded() {
    let claim = claim(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data", "namespace": "default", "uid": "u1", "resourceVersion": "42",
            "annotations": {"volume.kubernetes.io/selected-node": "n1", "foreign": "x"},
            "finalizers": ["kubernetes.io/pvc-protection"],
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": "fast", "volumeMode": "Block", "volumeName": "",
            "selector": {"matchLabels": {"disk": "ssd"}},
            "dataSource": {"kind": "VolumeSnapshot", "name": "s"},
        },
        "status": {"phase": "Lost", "later": {"field": 1}},
    }));
    assert_eq!(claim.key(), ClaimKey::new("default", "data"));
    assert_eq!((claim.meta.uid.as_str(), claim.meta.version), ("u1", 42));
    assert!(claim.deleting && claim.source.is_some() && claim.is_node_selected());
    assert_eq!(claim.annotations.iter().count(), 1, "other annotations are not kept");
    assert_eq!(claim.modes.iter().collect::<Vec<_>>(), [AccessMode::ReadWriteMany, AccessMode::ReadWriteOnce]);
    assert_eq!(claim.request.as_ref().map(|q| q.as_str()), Some("10Gi"));
    assert_eq!((claim.class().as_str(), claim.volume_mode), ("fast", VolumeMode::Block));
    assert_eq!((claim.volume.clone(), claim.status.phase), (None, ClaimPhase::Lost));
    assert_eq!(claim.field_error, None);
}

#[test]
fn volume_is_decoded() {
    let volume = volume(json!({
        "metadata": {"name": "v", "uid": "u", "resourceVersion": "7", "labels": {"disk": "ssd"}},
        "spec": {
            "capacity": {"storage": 5_000}, "accessModes": ["ReadOnlyMany"],
            "claimRef": {"namespace": "ns", "name": "c", "uid": "cu", "resourceVersion": "1"},
            "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "slow",
            "hostPath": {"path": "/tmp/v", "type": ""},
        },
        "status": {"phase": "Released", "message": "why"},
    }));
    assert_eq!(volume.capacity.as_ref().map(|q| q.nanos()), Some(5_000 * 1_000_000_000), "a number is a quantity");
    assert_eq!(volume.claim_ref.as_ref().map(|claim| claim.key.to_string()), Some("ns/c".into()));
    assert_eq!((volume.policy.clone(), volume.phase), (ReclaimPolicy::Delete, VolumePhase::Released));
    assert_eq!(volume.source, Source::HostPath("/tmp/v".into()));
    assert_eq!(volume.labels.get("disk").map(Name::as_str), Some("ssd"));
}

#[test]
fn class_annotation_overrides_the_field_even_when_empty() {
    let with = |annotations: Value, field: Value| {
        claim(json!({"metadata": {"name": "c", "annotations": annotations}, "spec": {"storageClassName": field}}))
    };
    let key = Annotation::BetaStorageClass.key();
    assert_eq!(with(json!({key: "old"}), json!("new")).class(), "old");
    let empty = with(json!({key: ""}), json!("new"));
    assert_eq!((empty.class().as_str(), empty.has_class()), ("", true));
    let none = with(json!(null), json!(null));
    assert_eq!((none.class().as_str(), none.has_class()), ("", false));
    assert!(with(json!({}), json!("")).has_class(), "an empty field specifies no class");
}

#[test]
fn classes_pods_and_nodes_are_decoded() {
    let class = Class::from_json(
        json!({
            "metadata": {"name": "fast", "annotations": {"storageclass.beta.kubernetes.io/is-default-class": "true"}},
            "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer", "mountOptions": ["ro"],
        })
        .to_string()
        .as_bytes(),
    )
    .expect("a class");
    assert!(class.is_default());
    assert_eq!(class.binding, Some(BindingMode::WaitForFirstConsumer));
    assert_eq!(class.policy, ReclaimPolicy::Delete, "the API's default");

    let pod = |status: Value, deleting: bool| {
        let mut pod = json!({
            "metadata": {"name": "p", "namespace": "ns"},
            "spec": {"volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "c", "emptyDir": {}},
            ]},
            "status": status,
        });
        if deleting {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        Pod::from_json(pod.to_string().as_bytes()).expect("a pod")
    };
    let claims = pod(json!({}), false).claim_keys().map(|key| key.to_string()).collect::<Vec<_>>();
    assert_eq!(claims, ["ns/data", "ns/p-b"]);
    assert_eq!(pod(json!({"phase": "Succeeded"}), false).phase, PodPhase::Succeeded);
    let running = json!({"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]});
    let waiting = json!({"phase": "Running", "containerStatuses": [{"state": {"waiting": {}}}]});
    assert!(!pod(running.clone(), false).is_terminated() && !pod(running, true).is_terminated());
    assert!(!pod(waiting.clone(), false).is_terminated() && pod(waiting, true).is_terminated());

    let node = json!({"metadata": {"name": "n", "labels": {"zone": "a"}}, "spec": {"unschedulable": true}});
    let node = Node::from_json(node.to_string().as_bytes()).expect("a node");
    assert!(node.unschedulable && node.labels.get("zone").is_some());
}

/// The field error of a claim or volume, as `field: problem`.
fn error_of(kind: Kind, spec: Value, status: Value) -> String {
    let json = json!({"metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}, "spec": spec, "status": status});
    let object = Object::from_json(kind, json.to_string().as_bytes()).expect("it has a name");
    object.field_error().map(FieldError::to_string).unwrap_or_default()
}

#[test]
fn field_error_names_the_field_and_quotes_the_value() {
    let cases = [
        (
            Kind::Volume,
            json!({"capacity": {"storage": "10Xi"}}),
            json!({}),
            "spec.capacity.storage: \"10Xi\": its unit",
        ),
        (
            Kind::Volume,
            json!({"capacity": {"storage": "1e999"}}),
            json!({}),
            "spec.capacity.storage: \"1e999\": it is too large",
        ),
        (Kind::Volume, json!({"capacity": {"storage": ["1"]}}), json!({}), "spec.capacity.storage: invalid type"),
        (
            Kind::Volume,
            json!({"accessModes": ["ReadWriteSometimes"]}),
            json!({}),
            "spec.accessModes: \"ReadWriteSometimes\"",
        ),
        (Kind::Volume, json!({"volumeMode": "Tape"}), json!({}), "spec.volumeMode: \"Tape\""),
        (Kind::Volume, json!({}), json!({"phase": "Melted"}), "status.phase: \"Melted\""),
        (Kind::Volume, json!({"claimRef": "me"}), json!({}), "spec.claimRef: invalid type"),
        (Kind::Volume, json!(7), json!({}), "spec: invalid type"),
        (
            Kind::Claim,
            json!({"resources": {"requests": {"storage": ""}}}),
            json!({}),
            "spec.resources.requests.storage: \"\": it is empty",
        ),
        (Kind::Claim, json!({}), json!({"phase": "Bounded"}), "status.phase: \"Bounded\""),
        (Kind::Claim, json!({"accessModes": "ReadWriteOnce"}), json!({}), "spec.accessModes: invalid type"),
        (
            Kind::Claim,
            json!({"accessModes": vec!["ReadWriteOnce"; 17]}),
            json!({}),
            "spec.accessModes: it lists more than 16",
        ),
    ];
    for (kind, spec, status, expected) in cases {
        let found = error_of(kind, spec, status);
        assert!(found.starts_with(expected), "found {found:?}, expected {expected:?}");
    }
}

#[test]
fn non_numeric_resource_version_is_a_field_error() {
    let claim = claim(json!({"metadata": {"name": "c", "uid": "u", "resourceVersion": "xxx"}}));
    assert_eq!(claim.field_error.map(|error| error.field), Some("metadata.resourceVersion".into()));
}

#[test]
fn missing_uid_is_a_field_error() {
    let claim = claim(json!({"metadata": {"name": "c", "resourceVersion": "1"}}));
    assert_eq!(claim.field_error.map(|error| error.to_string()), Some("metadata.uid: it is missing".into()));
}

#[test]
fn absent_and_unknown_fields_are_no_error() {
    assert_eq!(error_of(Kind::Volume, json!({}), json!({})), "", "a missing capacity counts as zero");
    assert_eq!(
        error_of(Kind::Volume, json!({"persistentVolumeReclaimPolicy": "Burn"}), json!({})),
        "",
        "a rule handles it"
    );
    assert_eq!(
        error_of(Kind::Claim, json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}), json!({})),
        ""
    );
    assert_eq!(error_of(Kind::Claim, json!({"unknown": {"deep": [1, 2]}}), json!({"phase": ""})), "");
}

#[test]
fn object_without_a_name_is_rejected() {
    let error = |text: &str| Claim::from_json(text.as_bytes()).expect_err("rejected").to_string();
    assert_eq!(error("{}"), "metadata.name: it is missing");
    assert_eq!(error(r#"{"metadata": {"name": 7}}"#), "metadata.name: it is missing");
    assert!(error("{").contains("it is not JSON"));
    assert!(error("[]").contains("metadata.name"));
}

#[test]
fn unknown_annotations_are_not_kept() {
    let long = "x".repeat(1 << 20);
    let claim = claim(
        json!({"metadata": {"name": "c", "annotations": {"notes": long, "pv.kubernetes.io/bind-completed": "yes"}}}),
    );
    assert!(claim.is_bind_completed());
    assert_eq!(claim.annotations.iter().count(), 1);
}

/// JSON of any shape, with keys of real objects so that much of it reaches deep into the decoder.
fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "metadata",
        "spec",
        "status",
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "annotations",
        "labels",
        "finalizers",
        "capacity",
        "storage",
        "accessModes",
        "claimRef",
        "phase",
        "volumeMode",
        "resources",
        "requests",
        "selector",
        "matchLabels",
        "matchExpressions",
        "operator",
        "key",
        "values",
        "volumes",
        "hostPath",
        "path",
        "ReadWriteOnce",
        "Available",
        "10Gi",
        "1e400",
        "pv.kubernetes.io/bind-completed",
        "volumeBindingMode",
        "containerStatuses",
        "state",
    ];
    let word = prop_oneof![4 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,8}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word.clone(), inner, 0..6).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_object_with_a_name_is_decoded(metadata in any_json(), spec in any_json(), status in any_json()) {
        let mut object = json!({"metadata": metadata, "spec": spec, "status": status});
        for named in [false, true] {
            if named {
                object["metadata"] = json!({"name": "x"});
            }
            for kind in Kind::ALL {
                let decoded = Object::from_json(kind, object.to_string().as_bytes());
                prop_assert!(decoded.is_ok() || !named, "an object with a name is always decoded");
            }
        }
    }

    #[test]
    fn decoder_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for kind in Kind::ALL {
            let _ = Object::from_json(kind, &bytes);
        }
    }
}
