//! Decoding, compared with the responses of a kube-apiserver v1.36.4 to the same bodies.

use bindery_fields::{Schema, Strictness, canonical, decode};
use serde_json::{Value, json};

fn schema(kind: &str) -> &'static Schema {
    Schema::of("", "v1", kind).expect("a core kind")
}

/// The error for a volume with this spec.
fn spec_error(spec: &str) -> String {
    let text = format!(r#"{{"apiVersion":"v1","kind":"PersistentVolume","metadata":{{"name":"a"}},"spec":{spec}}}"#);
    let outcome = decode(schema("PersistentVolume"), text.as_bytes(), Strictness::Report);
    outcome.expect_err("kube-apiserver rejected it").0
}

fn value(kind: &str, given: Value) -> Value {
    canonical(schema(kind), given, Strictness::Report).expect("kube-apiserver accepted it").value
}

#[test]
fn type_errors_have_upstreams_wording() {
    let pairs = [
        (
            r#"{"accessModes":"x"}"#,
            "string into Go struct field PersistentVolumeSpec.spec.accessModes of type []v1.PersistentVolumeAccessMode",
        ),
        (
            r#"{"accessModes":[1]}"#,
            "number into Go struct field PersistentVolumeSpec.spec.accessModes of type v1.PersistentVolumeAccessMode",
        ),
        (r#"{"capacity":[]}"#, "array into Go struct field PersistentVolumeSpec.spec.capacity of type v1.ResourceList"),
        (
            r#"{"claimRef":true}"#,
            "bool into Go struct field PersistentVolumeSpec.spec.claimRef of type v1.ObjectReference",
        ),
        (
            r#"{"iscsi":{"lun":99999999999}}"#,
            "number 99999999999 into Go struct field ISCSIPersistentVolumeSource.spec.PersistentVolumeSource.iscsi.lun of type int32",
        ),
        (
            r#"{"iscsi":{"lun":1.5}}"#,
            "number 1.5 into Go struct field ISCSIPersistentVolumeSource.spec.PersistentVolumeSource.iscsi.lun of type int32",
        ),
        (
            r#"{"iscsi":{"lun":1.0}}"#,
            "number 1.0 into Go struct field ISCSIPersistentVolumeSource.spec.PersistentVolumeSource.iscsi.lun of type int32",
        ),
        (
            r#"{"mountOptions":[null],"storageClassName":5,"volumeMode":6}"#,
            "number into Go struct field PersistentVolumeSpec.spec.storageClassName of type string",
        ),
        (
            r#"{"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":5}]}]}}}"#,
            "number into Go struct field NodeSelectorRequirement.spec.nodeAffinity.required.nodeSelectorTerms.matchExpressions.key of type string",
        ),
    ];
    for (spec, expected) in pairs {
        assert_eq!(spec_error(spec), format!("json: cannot unmarshal {expected}"), "{spec}");
    }
}

#[test]
fn types_with_custom_decoders_have_their_own_errors() {
    let quantity = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    for bad in [r#""x""#, "{}", r#""1Zi""#] {
        assert_eq!(spec_error(&format!(r#"{{"capacity":{{"storage":{bad}}}}}"#)), quantity, "{bad}");
    }
    let error =
        |kind, given| canonical(schema(kind), given, Strictness::Ignore).expect_err("kube-apiserver rejected it").0;
    assert_eq!(
        error("Pod", json!({"metadata": {"creationTimestamp": 5}})),
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string"
    );
    assert_eq!(
        error("Pod", json!({"spec": {"containers": [{"livenessProbe": {"httpGet": {"port": {}}}}]}})),
        "json: cannot unmarshal object into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32"
    );
    assert_eq!(error("Secret", json!({"data": {"a": "!!"}})), "illegal base64 data at input byte 0");
    assert_eq!(
        error("Secret", json!({"data": {"a": 5}})),
        "json: cannot unmarshal number into Go struct field Secret.data of type []uint8"
    );
    assert_eq!(
        error("ConfigMap", json!({"metadata": "x"})),
        "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"
    );
}

#[test]
fn unknown_and_duplicate_fields_are_reported_with_their_paths() {
    let text = r#"{"metadata":{"labels":{"a":"1","a":"2"}},"spec":{"foo":1,"bar":{},"local":{"x":1},
        "nodeAffinity":{"required":{"nodeSelectorTerms":[{"y":1}]}},"storageClassName":"a","storageClassName":"b"}}"#;
    let decoded = decode(schema("PersistentVolume"), text.as_bytes(), Strictness::Report).expect("well-formed");
    let expected = [
        r#"duplicate field "metadata.labels.a""#,
        r#"unknown field "spec.foo""#,
        r#"unknown field "spec.bar""#,
        r#"unknown field "spec.local.x""#,
        r#"unknown field "spec.nodeAffinity.required.nodeSelectorTerms[0].y""#,
        r#"duplicate field "spec.storageClassName""#,
    ];
    assert_eq!(decoded.strict_errors, expected);
    assert_eq!(decoded.value["spec"]["storageClassName"], "b");
    assert_eq!(decoded.value["spec"].get("foo"), None);
    let decoded = decode(schema("PersistentVolume"), text.as_bytes(), Strictness::Ignore).expect("well-formed");
    assert!(decoded.strict_errors.is_empty());
}

#[test]
fn canonical_form_omits_and_prints_fields_as_go_does() {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "a", "namespace": "", "labels": {}, "annotations": null, "finalizers": [], "creationTimestamp": null, "generation": 0},
        "spec": {"accessModes": null, "volumeName": "", "storageClassName": "", "selector": {}, "resources": {"requests": {"storage": 5368709120_i64}}},
        "status": {"conditions": [{"type": "Resizing", "status": "True"}]},
    });
    let canonical = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
        "spec": {"storageClassName": "", "selector": {}, "resources": {"requests": {"storage": "5368709120"}}},
        "status": {"conditions": [{"type": "Resizing", "status": "True", "lastProbeTime": null, "lastTransitionTime": null}]},
    });
    assert_eq!(value("PersistentVolumeClaim", claim), canonical);
    let node_affinity = json!({"spec": {"nodeAffinity": {"required": {}}}});
    assert_eq!(
        value("PersistentVolume", node_affinity)["spec"]["nodeAffinity"],
        json!({"required": {"nodeSelectorTerms": null}})
    );
    assert_eq!(value("ConfigMap", json!({"data": {"a": null}}))["data"], json!({"a": ""}));
    assert_eq!(value("Pod", json!(null)), *schema("Pod").empty());
}

#[test]
fn canonical_form_is_a_fixed_point() {
    let pod = json!({"metadata": {"name": "p", "ownerReferences": [{"uid": "u"}]}, "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": 0.5}}, "livenessProbe": {"httpGet": {"port": "http"}}}], "volumes": [{"name": "v", "emptyDir": {}}]}});
    let once = value("Pod", pod);
    assert_eq!(value("Pod", once.clone()), once);
}

#[test]
fn bodies_that_are_not_objects_are_rejected() {
    let expected = |text: &str| decode::type_meta("PersistentVolume", text.as_bytes()).expect_err("rejected").0;
    let prefix = "the object provided is unrecognized (must be of type PersistentVolume): couldn't get version/kind; json parse error: ";
    assert_eq!(expected(""), format!("{prefix}unexpected end of JSON input (<empty>)"));
    let go_type =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    assert_eq!(expected("[]"), format!("{prefix}json: cannot unmarshal array into Go value of type {go_type} (5b5d)"));
    assert_eq!(
        expected(r#"{"apiVersion":1,"kind":"PersistentVolume"}"#),
        format!(
            r#"{prefix}json: cannot unmarshal number into Go struct field .apiVersion of type string ({{"apiVersion":1,"kind":"Persis ...)"#
        )
    );
    assert_eq!(
        expected(r#"{"apiVersion":"v1","kind":"PersistentVolume"}x"#),
        format!(r#"{prefix}invalid character 'x' after top-level value ({{"apiVersion":"v1","kind":"Per ...)"#)
    );
}

#[test]
fn yaml_is_converted_to_json() {
    let json =
        bindery_fields::yaml_to_json(b"kind: Pod\nspec:\n  count: 5\n  on: \"yes\"\n").expect("well-formed").json;
    assert_eq!(
        serde_json::from_slice::<Value>(&json).expect("JSON"),
        json!({"kind": "Pod", "spec": {"count": 5, "on": "yes"}})
    );
    assert!(bindery_fields::yaml_to_json(b"a: [").is_err());
    let doubled = bindery_fields::yaml_to_json(b"a: 1\nb: 2\na: 3\n").expect("the last value is used");
    assert_eq!(serde_json::from_slice::<Value>(&doubled.json).expect("JSON"), json!({"a": 3, "b": 2}));
    assert_eq!(doubled.duplicate_key.as_deref(), Some("line 3: key \"a\" already set in map"));
}
