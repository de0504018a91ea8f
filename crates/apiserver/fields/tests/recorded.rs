//! Objects of every kind, as a kube-apiserver v1.36.4 returned them on creation
//! (`data/objects.jsonl`): they are in canonical form, and their managedFields follow from their
//! content.

use bindery_fields::managed::{Writer, track_update};
use bindery_fields::{Schema, Strictness, decode};
use serde_json::Value;

fn objects() -> Vec<(&'static Schema, &'static str, Value)> {
    let of = |text: &'static str| {
        let object: Value = serde_json::from_str(text).expect("JSON");
        let api_version = object["apiVersion"].as_str().expect("an apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let schema = Schema::of(group, version, object["kind"].as_str().expect("a kind")).expect("a known kind");
        (schema, text, object)
    };
    include_str!("data/objects.jsonl").lines().map(of).collect()
}

#[test]
fn objects_printed_by_kube_apiserver_are_canonical() {
    let objects = objects();
    assert!(objects.len() > 15, "there is at least one of each kind");
    for (schema, text, object) in objects {
        let decoded = decode(schema, text.as_bytes(), Strictness::Report).expect("kube-apiserver printed it");
        assert_eq!(decoded.value, object, "{}", schema.kind);
        assert!(decoded.strict_errors.is_empty(), "{}: {:?}", schema.kind, decoded.strict_errors);
    }
}

/// Except for kinds that admission or the kind itself changes after ownership is recorded.
#[test]
fn managed_fields_of_the_creator_follow_from_the_object() {
    let added_to = ["Namespace", "Node", "Pod", "PersistentVolume", "PersistentVolumeClaim", "VolumeAttributesClass"];
    let mut compared = 0;
    for (schema, _, object) in objects() {
        let stores_empty_list = schema.kind == "CSINode" && object["spec"]["drivers"].is_null();
        if added_to.contains(&schema.kind) || stores_empty_list {
            continue;
        }
        let mut new = object.clone();
        new["metadata"].as_object_mut().expect("metadata").remove("managedFields");
        let now = object["metadata"]["creationTimestamp"].as_str().expect("a time");
        track_update(schema, None, &mut new, &Writer { manager: "curl", subresource: "", now });
        assert_eq!(new["metadata"]["managedFields"], object["metadata"]["managedFields"], "{}", schema.kind);
        compared += 1;
    }
    assert!(compared > 8, "{compared}");
}
