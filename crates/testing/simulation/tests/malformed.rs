//! S15: malformed objects next to valid ones. The engine leaves the malformed objects alone and
//! names the invalid field; the valid objects are bound, served and deleted as usual.

use bindery_binder::Binder;
use bindery_engine::Input;
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::RuleSet;
use bindery_simulation::run::{Restart, Run, lifecycle_controllers};
use bindery_simulation::{SimulatedCluster, notation};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The valid objects: a pair to bind, a pod with an ephemeral volume, a claim to delete. Their
/// names occur nowhere else, so that no other object refers to them.
const HEALTHY: &str = "sc healthy-class kubernetes.io/no-provisioner
                       pv healthy-volume 1Gi Pending class=healthy-class
                       pvc healthy/claim#healthy-uid 1Gi Pending class=healthy-class
                       pvc healthy/gone#healthy-gone 1Gi Lost vol=healthy-none protected deleting
                       pod healthy/pod#healthy-pod eph=vol:9Gi:healthy-class node=healthy-node";

fn controllers() -> Vec<Box<dyn RuleSet + Send>> {
    let binder: Box<dyn RuleSet + Send> = Box::new(Binder::default());
    std::iter::once(binder).chain(lifecycle_controllers()).collect()
}

fn decode(kind: Kind, object: &Value) -> Object {
    Object::from_json(kind, object.to_string().as_bytes()).expect("the object has a name")
}

/// Runs an engine with the valid objects and these ones until it is stable. The simulated cluster
/// sets numeric versions; the objects in `watched` are delivered unchanged.
fn run(objects: &[(Kind, Value)], watched: &[(Kind, Value)]) -> SimulatedCluster {
    let mut cluster = SimulatedCluster::default();
    for (kind, object) in objects {
        cluster.put(*kind, object.clone());
    }
    notation::add(&mut cluster, HEALTHY);
    let mut run = Run::start(cluster, &controllers, Restart::Never);
    for (kind, object) in watched {
        run.handle(Input::Watched(decode(*kind, object)));
    }
    run.until_stable();
    assert_healthy(&run.cluster);
    for (kind, object) in objects.iter().chain(watched) {
        assert_left_alone(&run, *kind, object);
    }
    run.cluster
}

fn assert_healthy(cluster: &SimulatedCluster) {
    let pair = |line: &&str| line.contains("healthy");
    let found: Vec<String> = notation::render(cluster).lines().filter(pair).map(str::to_owned).collect();
    assert_eq!(
        found,
        [
            "pv healthy-volume 1Gi Bound ->healthy/claim#healthy-uid class=healthy-class protected bbc",
            "pvc healthy/claim#healthy-uid 1Gi Bound vol=healthy-volume class=healthy-class protected bbc bc",
            "pvc healthy/pod-vol#made-pod-vol 9Gi Pending class=healthy-class protected owner=healthy-pod",
        ]
    );
}

/// A malformed object is unchanged, and every verdict about it names the field.
fn assert_left_alone(run: &Run<'_>, kind: Kind, object: &Value) {
    let key = decode(kind, object).key();
    let known = run.engine.known();
    // A valid one may have been deleted, or replaced by another object of the same name.
    let Some(shown) = known.object(&key) else { return };
    for (set, verdict) in run.engine.would_decide(&key) {
        let rule = verdict.rule.name;
        let Some(error) = shown.field_error() else {
            // The volume of a bound claim may be malformed.
            let note = verdict.note.unwrap_or_default();
            let is_another =
                note.split_once(": ").is_some_and(|(name, _)| name != key.name && rule.starts_with("expansion"));
            assert!(!rule.ends_with("malformed") || is_another, "{key} is valid, but {set} reports {rule}");
            continue;
        };
        assert!(rule.ends_with("malformed"), "{key}: {error}, but {set} reports {rule}");
        // Rule sets that have nothing to do need not report it; the binder always does.
        let is_reported = set != "persistentvolume-binder" || run.report.rules.contains(rule);
        assert!(is_reported, "the engine did not report it");
        let note = verdict.note.unwrap_or_default();
        assert!(!error.field.is_empty() && note.starts_with(&error.field), "{key}: {note:?} names {:?}", error.field);
    }
    let Some(error) = shown.field_error() else { return };
    let touched = run.cluster.history.iter().any(|words| words.starts_with(&format!("write {key} ")));
    assert!(!touched, "{key} was written though it is malformed: {error}");
}

// === Known field errors ===

/// A valid object with an invalid field.
fn broken(kind: Kind, name: &str, patch: &Value) -> Value {
    let lines = match kind {
        Kind::Claim => format!("pvc other/{name}#uid-{name} 1Gi Pending class="),
        Kind::Volume => format!("pv {name} 1Gi Available"),
        Kind::Pod => format!("pod other/{name}#uid-{name} eph=vol:1Gi: claim={name} node=node1"),
        Kind::AttributesClass => format!("vac {name} protected deleting"),
        Kind::Class
        | Kind::Node
        | Kind::CsiNode
        | Kind::CsiDriver
        | Kind::Capacity
        | Kind::Attachment
        | Kind::Record => panic!("no decision"),
    };
    let cluster = notation::parse(&lines);
    let mut object = cluster.objects().next().expect("a line is an object").1.clone();
    json_patch::merge(&mut object, patch);
    object
}

#[test]
fn every_field_error_is_reported_and_other_objects_proceed() {
    let long = "1".repeat(5_000);
    let cases = [
        (Kind::Volume, json!({"spec": {"capacity": {"storage": "10Xi"}}}), "spec.capacity.storage"),
        (Kind::Volume, json!({"spec": {"capacity": {"storage": "1e400"}}}), "spec.capacity.storage"),
        (Kind::Volume, json!({"spec": {"capacity": {"storage": long}}}), "spec.capacity.storage"),
        (Kind::Volume, json!({"spec": {"capacity": {"storage": {}}}}), "spec.capacity.storage"),
        (Kind::Volume, json!({"spec": {"capacity": "10Gi"}}), "spec.capacity"),
        (Kind::Volume, json!({"spec": {"accessModes": ["ReadWriteSometimes"]}}), "spec.accessModes"),
        (Kind::Volume, json!({"spec": {"volumeMode": "Tape"}}), "spec.volumeMode"),
        (Kind::Volume, json!({"spec": {"claimRef": 7}}), "spec.claimRef"),
        (Kind::Volume, json!({"status": {"phase": "Melted"}}), "status.phase"),
        (Kind::Volume, json!({"metadata": {"labels": {"disk": 7}}}), "metadata.labels"),
        (
            Kind::Claim,
            json!({"spec": {"resources": {"requests": {"storage": "-"}}}}),
            "spec.resources.requests.storage",
        ),
        (Kind::Claim, json!({"spec": {"accessModes": vec!["ReadWriteOnce"; 17]}}), "spec.accessModes"),
        (Kind::Claim, json!({"spec": {"accessModes": "ReadWriteOnce"}}), "spec.accessModes"),
        (Kind::Claim, json!({"spec": {"selector": {"matchLabels": ["disk"]}}}), "spec.selector.matchLabels"),
        (Kind::Claim, json!({"spec": {"volumeName": 7}}), "spec.volumeName"),
        (Kind::Claim, json!({"status": {"phase": "Bounded"}}), "status.phase"),
        (Kind::Claim, json!({"status": {"capacity": {"storage": ""}}}), "status.capacity.storage"),
        (Kind::Claim, json!({"metadata": {"annotations": "none"}}), "metadata.annotations"),
        (Kind::Claim, json!({"metadata": {"ownerReferences": [{"uid": 7}]}}), "metadata.ownerReferences"),
        (Kind::Claim, json!({"metadata": {"finalizers": "none", "deletionTimestamp": "x"}}), "metadata.finalizers"),
        (Kind::Claim, json!({"status": {"conditions": "none"}}), "status.conditions"),
        (Kind::Claim, json!({"status": {"allocatedResources": {"storage": "x"}}}), "status.allocatedResources.storage"),
        (Kind::Claim, json!({"status": {"modifyVolumeStatus": 7}}), "status.modifyVolumeStatus"),
        (Kind::Pod, json!({"spec": {"volumes": "none"}}), "spec.volumes"),
        (Kind::Pod, json!({"spec": {"volumes": [{"name": "vol", "ephemeral": 7}]}}), "spec.volumes"),
        (Kind::Pod, json!({"spec": {"volumes": [{"persistentVolumeClaim": {"claimName": []}}]}}), "spec.volumes"),
        (Kind::Pod, json!({"spec": {"nodeName": 7}}), "spec.nodeName"),
        (Kind::Pod, json!({"status": {"containerStatuses": "none"}}), "status.containerStatuses"),
        (Kind::Pod, json!({"status": {"phase": {}}}), "status.phase"),
        (Kind::Pod, json!({"metadata": {"deletionGracePeriodSeconds": "soon"}}), "metadata.deletionGracePeriodSeconds"),
        (Kind::Pod, json!({"metadata": {"uid": null}}), "metadata.uid"),
        (Kind::AttributesClass, json!({"driverName": 7}), "driverName"),
        (Kind::AttributesClass, json!({"metadata": {"finalizers": "none"}}), "metadata.finalizers"),
        (Kind::AttributesClass, json!({"metadata": {"uid": 7}}), "metadata.uid"),
    ];
    let mut objects = Vec::new();
    for (place, (kind, patch, field)) in cases.iter().enumerate() {
        let object = broken(*kind, &format!("bad-{place}"), patch);
        let decoded = decode(*kind, &object);
        let error = decoded.field_error().unwrap_or_else(|| panic!("{patch} is accepted"));
        assert!(error.field.starts_with(field), "{error} is not about {field}");
        objects.push((*kind, object));
    }
    run(&objects, &[]);
}

#[test]
fn non_numeric_version_is_reported() {
    let odd = json!({"metadata": {"resourceVersion": "xxx"}});
    let huge = json!({"metadata": {"resourceVersion": "18446744073709551616"}});
    let watched: Vec<_> = [(Kind::Volume, &odd), (Kind::Claim, &odd), (Kind::Volume, &huge), (Kind::Claim, &huge)]
        .into_iter()
        .enumerate()
        .map(|(place, (kind, patch))| (kind, broken(kind, &format!("bad-{place}"), patch)))
        .collect();
    for (kind, object) in &watched {
        let field = decode(*kind, object).field_error().map(|error| error.field.clone());
        assert_eq!(field.as_deref(), Some("metadata.resourceVersion"));
    }
    run(&[], &watched);
}

#[test]
fn unusual_but_valid_objects_are_accepted() {
    let notes = "x".repeat(1 << 20);
    let patches = [
        (Kind::Volume, json!({"spec": {"capacity": null}})),
        (
            Kind::Volume,
            json!({"spec": {"persistentVolumeReclaimPolicy": "Burn", "claimRef": {"name": "c", "uid": "u"}}}),
        ),
        (Kind::Claim, json!({"spec": {"resources": null, "accessModes": null}})),
        (Kind::Claim, json!({"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}})),
        (Kind::Claim, json!({"spec": {"resources": {"requests": {"storage": "-5Gi"}}}})),
        (
            Kind::Volume,
            json!({"metadata": {"annotations": {"notes": notes}}, "spec": {"capacity": {"storage": "0.1n"}}}),
        ),
        (Kind::Claim, json!({"metadata": {"annotations": {"notes": notes}}})),
        (Kind::Claim, json!({"status": {"conditions": [{"type": "Unused", "status": "Perhaps"}, {}]}})),
        (Kind::Claim, json!({"metadata": {"ownerReferences": [{"controller": true}, {"uid": "a"}]}})),
        (Kind::Pod, json!({"status": {"phase": "Thinking", "containerStatuses": [{}]}})),
        (Kind::Pod, json!({"spec": {"volumes": [{}, {"ephemeral": {}}, {"name": "", "ephemeral": {}}]}})),
        (Kind::Pod, json!({"spec": {"volumes": [{"ephemeral": {"volumeClaimTemplate": "none"}}]}})),
        (Kind::AttributesClass, json!({"parameters": 7, "driverName": null})),
    ];
    let odd = |(place, (kind, patch)): (usize, &(Kind, Value))| (*kind, broken(*kind, &format!("odd-{place}"), patch));
    let objects: Vec<_> = patches.iter().enumerate().map(odd).collect();
    for (kind, object) in &objects {
        assert_eq!(decode(*kind, object).field_error(), None);
    }
    let cluster = run(&objects, &[]);
    let keeps_unknown_fields =
        |key: &ObjectKey| cluster.get(key).is_some_and(|o| o["metadata"]["annotations"]["notes"] == notes);
    assert!(keeps_unknown_fields(&ObjectKey::volume("odd-5")), "unknown fields are kept");
}

// === Random objects ===

/// Field names and values of real objects, so that random objects get past the first checks.
const WORDS: &str = "metadata spec status annotations labels finalizers capacity storage accessModes claimRef phase volumeMode \
     resources requests selector matchLabels matchExpressions operator key values hostPath path volumes name namespace uid a b \
     ReadWriteOnce ReadOnlyMany Available Bound Released Pending Lost Block Delete Recycle Retain In Exists 10Gi 1Gi 1e400 -3 \
     persistentVolumeReclaimPolicy storageClassName volumeName persistentVolumeClaim claimName provisioner volumeBindingMode \
     ephemeral volumeClaimTemplate ownerReferences controller nodeName type True False Unused conditions state running \
     kubernetes.io/pvc-protection kubernetes.io/pv-protection kubernetes.io/vac-protection \
     pv.kubernetes.io/bind-completed pv.kubernetes.io/bound-by-controller volume.beta.kubernetes.io/storage-class nfs csi";

fn any_json() -> impl Strategy<Value = Value> {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let word = prop_oneof![6 => prop::sample::select(words).prop_map(str::to_owned), 1 => "\\PC{0,8}"];
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        4 => word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(word.clone(), inner, 0..6).prop_map(Value::from_iter),
        ]
    })
}

/// A field of an object, and invalid values for it.
fn any_field() -> impl Strategy<Value = Value> {
    let paths = [
        "spec/capacity/storage",
        "spec/resources/requests/storage",
        "spec/accessModes",
        "spec/claimRef",
        "spec/claimRef/uid",
        "spec/volumeName",
        "spec/storageClassName",
        "spec/selector",
        "spec/selector/matchLabels",
        "spec/volumeMode",
        "spec/persistentVolumeReclaimPolicy",
        "spec/hostPath",
        "status/phase",
        "status/capacity",
        "status/accessModes",
        "metadata/annotations",
        "metadata/labels",
        "metadata/finalizers",
        "metadata/uid",
        "metadata/deletionTimestamp",
        "metadata/deletionGracePeriodSeconds",
        "metadata/ownerReferences",
        "spec/volumes",
        "spec/nodeName",
        "spec/volumeAttributesClassName",
        "status/conditions",
        "status/allocatedResources",
        "status/allocatedResourceStatuses",
        "status/containerStatuses",
        "driverName",
        "spec",
        "status",
    ];
    (prop::sample::select(paths.to_vec()), any_json())
        .prop_map(|(path, value)| path.rsplit('/').fold(value, |value, key| json!({key: value})))
}

/// An object of any kind: random, or valid except for a field or two.
fn any_object(names: &[&'static str]) -> impl Strategy<Value = (Kind, Value)> + use<> {
    let name = prop::sample::select(names.to_vec());
    let kind = prop::sample::select(Kind::ALL.to_vec());
    let made_up = (kind, name.clone(), any_json(), any_json()).prop_map(|(kind, name, spec, status)| {
        let mut metadata = json!({"name": name, "uid": name});
        if matches!(kind, Kind::Claim | Kind::Pod) {
            metadata["namespace"] = "other".into();
        }
        (kind, json!({"metadata": metadata, "spec": spec, "status": status}))
    });
    let kind = prop::sample::select(vec![Kind::Claim, Kind::Volume, Kind::Pod, Kind::AttributesClass]);
    let patched = (kind, name, any_field(), any_field()).prop_map(|(kind, name, first, second)| {
        let mut object = broken(kind, name, &first);
        json_patch::merge(&mut object, &second);
        (kind, object)
    });
    prop_oneof![1 => made_up, 3 => patched]
}

/// An object with a version that is not a number.
fn any_unversioned() -> impl Strategy<Value = (Kind, Value)> {
    let version = prop::sample::select(vec!["", "0", "xxx", "-1", "1.5", "99999999999999999999999"]);
    (any_object(&["d"]), version).prop_map(|((kind, mut object), version)| {
        object["metadata"]["resourceVersion"] = version.into();
        (kind, object)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_malformed_object_blocks_the_valid_ones(
        objects in prop::collection::vec(any_object(&["a", "b", "c"]), 1..6), watched in prop::option::of(any_unversioned()),
    ) {
        run(&objects, &watched.into_iter().collect::<Vec<_>>());
    }
}
