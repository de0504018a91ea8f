//! Objects of every kind as a kube-apiserver v1.36.4 answered with them when they were created (`data/objects.jsonl`): they are in canonical
//! form, and what their creator is said to own follows from them.

use bindery_fields::managed::{Writer, track_update};
use bindery_fields::{Schema, Strictness, decode};
use serde_json::Value;

fn objects() -> Vec<(&'static Schema, &'static str, Value)> {
    let of = |text: &'static str| {
        let object: Value = serde_json::from_str(text).expect("JSON");
        let api_version = object["apiVersion"].as_str().expect("an apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let schema = Schema::of(group, version, object["kind"].as_str().expect("a kind")).expect("a kind of the table");
        (schema, text, object)
    };
    include_str!("data/objects.jsonl").lines().map(of).collect()
}

#[test]
fn what_the_real_server_prints_is_in_canonical_form() {
    let objects = objects();
    assert!(objects.len() > 15, "there is at least one of each kind");
    for (schema, text, object) in objects {
        let decoded = decode(schema, text.as_bytes(), Strictness::Report).expect("the real server printed it");
        assert_eq!(decoded.value, object, "{}", schema.kind);
        assert!(decoded.flaws.is_empty(), "{}: {:?}", schema.kind, decoded.flaws);
    }
}

/// Not for kinds to which something is added after their fields have been attributed: by admission, or by the kind itself.
#[test]
fn what_the_creator_owns_follows_from_the_object() {
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
