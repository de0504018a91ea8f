//! The OpenAPI documents, as far as kubectl uses them.

use bindery_fields::openapi;
use serde_json::{Value, json};

fn document(group: &str) -> Value {
    serde_json::from_str(openapi::v3_text(group, "v1").expect("served")).expect("JSON")
}

#[test]
fn the_index_lists_the_document_of_every_group() {
    let index = openapi::index();
    for (group, path) in
        [("", "api/v1"), ("storage.k8s.io", "apis/storage.k8s.io/v1"), ("events.k8s.io", "apis/events.k8s.io/v1")]
    {
        let text = openapi::v3_text(group, "v1").expect("served");
        let url = format!("/openapi/v3/{path}?hash={}", openapi::hash(text));
        assert_eq!(index["paths"][path]["serverRelativeURL"], json!(url));
    }
    assert!(openapi::v3("apps", "v1").is_none());
}

#[test]
fn every_reference_resolves() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| match value.as_str() {
                Some(target) if key == "$ref" => found.push(target.to_owned()),
                _ => references(value, found),
            }),
            Value::Array(list) => list.iter().for_each(|value| references(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let v2: Value = serde_json::from_str(openapi::v2_text()).expect("JSON");
    for document in
        [document(""), document("storage.k8s.io"), document("coordination.k8s.io"), document("events.k8s.io"), v2]
    {
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for target in found {
            let target = target.trim_start_matches('#');
            assert!(document.pointer(target).is_some(), "{target}");
        }
    }
}

#[test]
fn kubectl_explain_finds_kinds_and_descriptions() {
    let document = document("storage.k8s.io");
    let kind = &document["paths"]["/apis/storage.k8s.io/v1/storageclasses"]["get"]["x-kubernetes-group-version-kind"];
    assert_eq!(*kind, json!({"group": "storage.k8s.io", "version": "v1", "kind": "StorageClass"}));
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    for name in ["StorageClass", "VolumeAttributesClass"] {
        let schema = &schemas[&format!("io.k8s.api.storage.v1.{name}")];
        assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], name);
        assert!(schema["description"].as_str().is_some_and(|words| words.contains(name)), "{name}");
        assert!(schema["properties"]["parameters"]["description"].is_string(), "{name}");
    }
}

#[test]
fn strict_validation_is_announced_where_kubectl_looks_for_it() {
    let document = document("");
    let paths = document["paths"].as_object().expect("paths");
    for (path, kind) in [
        ("/api/v1/persistentvolumes/{name}", "PersistentVolume"),
        ("/api/v1/namespaces/{namespace}/pods/{name}/status", "Pod"),
    ] {
        let patch = &paths[path]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], kind);
        let parameters = patch["parameters"].as_array().expect("parameters");
        assert!(parameters.iter().any(|each| each["name"] == "fieldValidation" && each["in"] == "query"), "{path}");
    }
}

#[test]
fn schemas_match_those_of_kube_apiserver() {
    let document = document("");
    let mut spec = document["components"]["schemas"]["io.k8s.api.core.v1.PersistentVolumeSpec"]["properties"].clone();
    let mut without_description = |name: &str| {
        spec[name].as_object_mut().expect("a property").remove("description");
        spec[name].clone()
    };
    assert_eq!(
        without_description("accessModes"),
        json!({"type": "array", "x-kubernetes-list-type": "atomic",
            "items": {"type": "string", "default": "", "enum": ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]}})
    );
    assert_eq!(
        without_description("capacity"),
        json!({"type": "object", "additionalProperties": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}})
    );
    assert_eq!(
        without_description("claimRef"),
        json!({"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.ObjectReference"}], "x-kubernetes-map-type": "granular"})
    );
}
