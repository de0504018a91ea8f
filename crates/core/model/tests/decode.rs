//! Decoding: what is read of real objects, and what becomes of bad ones.

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
fn a_claim_is_read_as_far_as_rules_need_it() {
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
    assert_eq!(claim.annotations.iter().count(), 1, "a foreign annotation is not kept");
    assert_eq!(claim.modes.iter().collect::<Vec<_>>(), [AccessMode::ReadWriteMany, AccessMode::ReadWriteOnce]);
    assert_eq!(claim.request.as_ref().map(|q| q.as_str()), Some("10Gi"));
    assert_eq!((claim.class().as_str(), claim.volume_mode), ("fast", VolumeMode::Block));
    assert_eq!((claim.volume.clone(), claim.status.phase), (None, ClaimPhase::Lost));
    assert_eq!(claim.flaw, None);
}

#[test]
fn a_volume_is_read_as_far_as_rules_need_it() {
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
    assert_eq!(volume.capacity.as_ref().map(|q| q.nanos()), Some(5_000 * 1_000_000_000), "a bare number is a quantity");
    assert_eq!(volume.claim_ref.as_ref().map(|claim| claim.key.to_string()), Some("ns/c".into()));
    assert_eq!((volume.policy.clone(), volume.phase), (ReclaimPolicy::Delete, VolumePhase::Released));
    assert_eq!(volume.source, Source::HostPath("/tmp/v".into()));
    assert_eq!(volume.labels.get("disk").map(Name::as_str), Some("ssd"));
}

#[test]
fn the_old_class_annotation_wins_even_when_it_is_empty() {
    let with = |annotations: Value, field: Value| {
        claim(json!({"metadata": {"name": "c", "annotations": annotations}, "spec": {"storageClassName": field}}))
    };
    let key = Annotation::BetaStorageClass.key();
    assert_eq!(with(json!({key: "old"}), json!("new")).class(), "old");
    let empty = with(json!({key: ""}), json!("new"));
    assert_eq!((empty.class().as_str(), empty.has_class()), ("", true));
    let none = with(json!(null), json!(null));
    assert_eq!((none.class().as_str(), none.has_class()), ("", false));
    assert!(with(json!({}), json!("")).has_class(), "an empty field says that it wants none");
}

#[test]
fn classes_pods_and_nodes_are_read() {
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

/// What is wrong with a claim or volume, as `field: problem`.
fn flaw_of(kind: Kind, spec: Value, status: Value) -> String {
    let json = json!({"metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}, "spec": spec, "status": status});
    let object = Object::from_json(kind, json.to_string().as_bytes()).expect("it has a name");
    object.flaw().map(FieldError::to_string).unwrap_or_default()
}

#[test]
fn a_bad_field_is_named_and_quoted() {
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
        let found = flaw_of(kind, spec, status);
        assert!(found.starts_with(expected), "found {found:?}, expected {expected:?}");
    }
}

#[test]
fn a_version_that_is_no_number_is_a_flaw() {
    let claim = claim(json!({"metadata": {"name": "c", "uid": "u", "resourceVersion": "xxx"}}));
    assert_eq!(claim.flaw.map(|flaw| flaw.field), Some("metadata.resourceVersion".into()));
}

#[test]
fn an_object_without_a_uid_cannot_be_told_from_another_of_its_name() {
    let claim = claim(json!({"metadata": {"name": "c", "resourceVersion": "1"}}));
    assert_eq!(claim.flaw.map(|flaw| flaw.to_string()), Some("metadata.uid: it is missing".into()));
}

#[test]
fn what_is_not_bad_enough_is_no_flaw() {
    assert_eq!(flaw_of(Kind::Volume, json!({}), json!({})), "", "a missing capacity counts as nothing");
    assert_eq!(
        flaw_of(Kind::Volume, json!({"persistentVolumeReclaimPolicy": "Burn"}), json!({})),
        "",
        "a rule deals with it"
    );
    assert_eq!(
        flaw_of(Kind::Claim, json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}), json!({})),
        ""
    );
    assert_eq!(flaw_of(Kind::Claim, json!({"unknown": {"deep": [1, 2]}}), json!({"phase": ""})), "");
}

#[test]
fn an_object_without_a_name_is_refused_with_a_reason() {
    let refusal = |text: &str| Claim::from_json(text.as_bytes()).expect_err("refused").to_string();
    assert_eq!(refusal("{}"), "metadata.name: it is missing");
    assert_eq!(refusal(r#"{"metadata": {"name": 7}}"#), "metadata.name: it is missing");
    assert!(refusal("{").contains("it is not JSON"));
    assert!(refusal("[]").contains("metadata.name"));
}

#[test]
fn a_megabyte_of_annotations_is_not_kept() {
    let long = "x".repeat(1 << 20);
    let claim = claim(
        json!({"metadata": {"name": "c", "annotations": {"notes": long, "pv.kubernetes.io/bind-completed": "yes"}}}),
    );
    assert!(claim.is_bind_completed());
    assert_eq!(claim.annotations.iter().count(), 1);
}

/// JSON of any shape, with keys that objects really have, so that much of it gets deep into the decoder.
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
    fn no_json_stops_the_decoder(metadata in any_json(), spec in any_json(), status in any_json()) {
        let mut object = json!({"metadata": metadata, "spec": spec, "status": status});
        for named in [false, true] {
            if named {
                object["metadata"] = json!({"name": "x"});
            }
            for kind in Kind::ALL {
                let decoded = Object::from_json(kind, object.to_string().as_bytes());
                prop_assert!(decoded.is_ok() || !named, "what has a name is always decoded");
            }
        }
    }

    #[test]
    fn no_bytes_stop_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for kind in Kind::ALL {
            let _ = Object::from_json(kind, &bytes);
        }
    }
}
