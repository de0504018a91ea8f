//! Patches, compared with the responses of a kube-apiserver v1.36.4 to the same patches.

use bindery_fields::patch::{PatchError, PatchKind, Validation, patch};
use bindery_fields::{Schema, Strictness, canonical, merge_patch};
use proptest::prelude::*;
use serde_json::{Value, json};

const REJECTED: &str = "the server rejected our request due to an error in our request";

fn live() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"x": "y"}, "finalizers": ["a.b/c", "a.b/d"]}, "data": {"a": "1"}})
}

fn outcome(kind: PatchKind, text: &str, validation: Validation) -> Result<Value, PatchError> {
    let schema = Schema::of("", "v1", "ConfigMap").expect("known");
    patch(schema, &live(), kind, text.as_bytes(), validation).map(|decoded| decoded.value)
}

/// Checks the data and the finalizers after a patch that kube-apiserver accepts.
fn check(kind: PatchKind, text: &str, data: Value, finalizers: &[&str]) {
    let value = outcome(kind, text, Validation::Warn).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let found = (
        value.get("data").cloned().unwrap_or_default(),
        value["metadata"].get("finalizers").cloned().unwrap_or(json!([])),
    );
    assert_eq!(found, (data, json!(finalizers)), "{text}");
}

fn rejected(kind: PatchKind, text: &str, validation: Validation) -> PatchError {
    match outcome(kind, text, validation) {
        Err(error) => error,
        Ok(value) => panic!("{text} was accepted: {value}"),
    }
}

fn bad_request(message: &str) -> PatchError {
    PatchError::BadRequest(message.to_owned())
}

const BOTH: [&str; 2] = ["a.b/c", "a.b/d"];

#[test]
fn json_patch_operations_that_kube_apiserver_accepts() {
    let check = |text, data, finalizers: &[&str]| check(PatchKind::Json, text, data, finalizers);
    check(r#"[{"op":"test","path":"/data/zz","value":null}]"#, json!({"a": "1"}), &BOTH);
    check(r#"[{"op":"remove","path":"/metadata/finalizers/-1"}]"#, json!({"a": "1"}), &["a.b/c"]);
    check(r#"[{"op":"replace","path":"/data/b","value":"x"}]"#, json!({"a": "1", "b": "x"}), &BOTH);
    check(
        r#"[{"op":"add","path":"/metadata/finalizers/0","value":"x.y/z"}]"#,
        json!({"a": "1"}),
        &["x.y/z", "a.b/c", "a.b/d"],
    );
    check(
        r#"[{"op":"add","path":"/metadata/finalizers/-","value":"x.y/z"}]"#,
        json!({"a": "1"}),
        &["a.b/c", "a.b/d", "x.y/z"],
    );
    check(
        r#"[{"op":"add","path":"/metadata/finalizers/-2","value":"x.y/z"}]"#,
        json!({"a": "1"}),
        &["a.b/c", "x.y/z", "a.b/d"],
    );
    check(r#"[{"op":"copy","from":"/data/b","path":"/data/c"}]"#, json!({"a": "1", "c": ""}), &BOTH);
    check(r#"[{"op":"copy","from":"/data/a","path":"/data/c"}]"#, json!({"a": "1", "c": "1"}), &BOTH);
    check(r#"[{"op":"move","from":"/data/a","path":"/data/c"}]"#, json!({"c": "1"}), &BOTH);
    check(r#"[{"op":"add","path":"/data/c"}]"#, json!({"a": "1", "c": ""}), &BOTH);
    check(r#"[{"op":"add","path":"/data","value":null}]"#, json!(null), &BOTH);
    check(r#"[{"op":"test","path":"/metadata/labels","value":{"x":"y"}}]"#, json!({"a": "1"}), &BOTH);
    check("null", json!({"a": "1"}), &BOTH);
}

#[test]
fn json_patch_operations_that_kube_apiserver_rejects() {
    let texts = [
        r#"[{"op":"test","path":"/data/a","value":"2"}]"#,
        r#"[{"op":"test","path":"/data/zz","value":"2"}]"#,
        r#"[{"op":"test","path":"/zz/a","value":"2"}]"#,
        r#"[{"op":"remove","path":"/data/b"}]"#,
        r#"[{"op":"remove","path":"/zz/b"}]"#,
        r#"[{"op":"remove","path":"/metadata/finalizers/5"}]"#,
        r#"[{"op":"remove","path":"/metadata/finalizers/x"}]"#,
        r#"[{"op":"replace","path":"/zz/b","value":"x"}]"#,
        r#"[{"op":"replace","path":"/metadata/finalizers/7","value":"x"}]"#,
        r#"[{"op":"add","path":"/zz/b","value":"x"}]"#,
        r#"[{"op":"add","path":"/metadata/finalizers/7","value":"x"}]"#,
        r#"[{"op":"add","path":"/metadata/finalizers/x","value":"x"}]"#,
        r#"[{"op":"move","from":"/data/b","path":"/data/c"}]"#,
        r#"[{"op":"move","from":"/zz/a","path":"/data/c"}]"#,
        r#"[{"op":"copy","from":"/zz/a","path":"/data/c"}]"#,
        r#"[{"op":"nop","path":"/data/c"}]"#,
        r#"[{"path":"/data/c"}]"#,
        r#"[{"op":"add","value":1}]"#,
        r#"[{"op":"add","path":"data","value":{}}]"#,
        r#"[{"op":"add","path":"","value":{}}]"#,
        r#"[{"op":"test","path":"","value":{"x":"y"}}]"#,
        r#"[{"op":"remove","path":""}]"#,
    ];
    for text in texts {
        assert_eq!(
            rejected(PatchKind::Json, text, Validation::Warn),
            PatchError::Unprocessable(REJECTED.to_owned()),
            "{text}"
        );
    }
}

#[test]
fn malformed_patches_are_bad_requests() {
    use PatchKind::{Json, Merge, Strategic};
    use Validation::{Ignore, Warn};
    let cases = [
        (
            Json,
            r#"{"op":"add"}"#,
            Warn,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (Json, r#"{"op":"add"}"#, Ignore, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        (
            Json,
            "[1]",
            Warn,
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
        ),
        (Json, "[1]", Ignore, "json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
        (
            Json,
            r#"[{"op":5}]"#,
            Warn,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
        (Json, "x", Warn, "error decoding patch: invalid character 'x' looking for beginning of value"),
        (Json, "x", Ignore, "invalid character 'x' looking for beginning of value"),
        (Merge, "x", Warn, "error decoding patch: invalid character 'x' looking for beginning of value"),
        (Merge, "x", Ignore, "Invalid JSON Patch"),
        (
            Merge,
            "[]",
            Warn,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (Merge, r#""x""#, Ignore, "Invalid JSON Patch"),
        (Merge, "null", Warn, "Invalid JSON Patch"),
        (Strategic, "x", Warn, "invalid character 'x' looking for beginning of value"),
        (Strategic, "[]", Warn, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (Strategic, r#"{"data":{"$retainKeys":["b"],"c":"1"}}"#, Warn, "invalid patch format of retainKeys"),
    ];
    for (kind, text, validation, message) in cases {
        assert_eq!(rejected(kind, text, validation), bad_request(message), "{text}");
    }
    let many = format!("[{}]", vec![r#"{"op":"test","path":"/data/a","value":"1"}"#; 10_001].join(","));
    let message = "The allowed maximum operations in a JSON patch is 10000, got 10001".to_owned();
    assert_eq!(rejected(Json, &many, Warn), PatchError::TooLarge(message));
}

#[test]
fn patched_objects_that_do_not_decode_are_rejected() {
    use PatchKind::{Json, Merge, Strategic};
    let detail = |kind, text| match rejected(kind, text, Validation::Warn) {
        PatchError::Invalid { value, detail } => (value, detail),
        other @ (PatchError::BadRequest(_)
        | PatchError::Unprocessable(_)
        | PatchError::TooLarge(_)
        | PatchError::Internal(_)) => {
            panic!("{text}: {other:?}")
        }
    };
    let expected = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
    assert_eq!(detail(Json, r#"[{"op":"add","path":"/data/c","value":1}]"#).1, expected);
    let (value, found) = detail(Merge, r#"{"data":{"a":1}}"#);
    assert_eq!(
        (serde_json::from_str::<Value>(&value).expect("JSON")["data"].clone(), found.as_str()),
        (json!({"a": 1}), expected)
    );
    let strategic = |text| rejected(Strategic, text, Validation::Warn).message();
    let prefix = r#" "" is invalid: patch: Invalid value: "#;
    assert_eq!(
        strategic(r#"{"data":{"a":1}}"#),
        format!(r#"{prefix}"map[data:map[a:1]]": cannot convert int64 to string"#)
    );
    assert_eq!(strategic(r#"{"data":"x"}"#), format!(r#"{prefix}"map[data:x]": cannot restore map from string"#));
    assert_eq!(
        strategic(r#"{"metadata":{"ownerReferences":["x"]}}"#),
        format!(r#"{prefix}"map[metadata:map[ownerReferences:[x]]]": cannot restore struct from: string"#)
    );
    assert_eq!(
        strategic(r#"{"metadata":{"finalizers":{"x":1}}}"#),
        format!(r#"{prefix}"map[metadata:map[finalizers:map[x:1]]]": cannot restore slice from map"#)
    );
}

#[test]
fn strict_validation_rejects_unknown_and_duplicate_fields() {
    let strict = |kind, text| rejected(kind, text, Validation::Strict).message();
    assert_eq!(
        strict(PatchKind::Strategic, r#"{"data":{"b":"2","b":"3"},"foo":1}"#),
        concat!(
            r#" "" is invalid: patch: Invalid value: "map[data:map[b:3] foo:1]": strict decoding error: "#,
            r#"duplicate field "data.b", unknown field "foo""#
        )
    );
    assert!(strict(PatchKind::Merge, r#"{"foo":1}"#).ends_with(r#": strict decoding error: unknown field "foo""#));
    assert!(
        strict(PatchKind::Merge, r#"{"data":{"b":"2","b":"3"}}"#)
            .ends_with(r#": strict decoding error: duplicate field "data.b""#)
    );
    let json = strict(PatchKind::Json, r#"[{"op":"add","path":"/data/c","value":"1","foo":1}]"#);
    assert!(json.ends_with(r#": strict decoding error: json patch unknown field "[0].foo""#), "{json}");
}

#[test]
fn strategic_patches_merge_lists_and_follow_directives() {
    let check = |text, data, finalizers: &[&str]| check(PatchKind::Strategic, text, data, finalizers);
    let same = || json!({"a": "1"});
    check("null", same(), &BOTH);
    check(r#"{"metadata":{"finalizers":["x.y/z"]}}"#, same(), &["x.y/z", "a.b/c", "a.b/d"]);
    check(r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a.b/c"]}}"#, same(), &["a.b/d"]);
    check(r#"{"metadata":{"$setElementOrder/finalizers":["a.b/d","a.b/c"]}}"#, same(), &["a.b/d", "a.b/c"]);
    check(
        r#"{"metadata":{"$setElementOrder/finalizers":["a.b/d","x.y/z","a.b/c"],"finalizers":["x.y/z"]}}"#,
        same(),
        &["a.b/d", "x.y/z", "a.b/c"],
    );
    check(r#"{"metadata":{"finalizers":null}}"#, same(), &[]);
    check(r#"{"data":{"$patch":"replace","b":"2"}}"#, json!({"b": "2"}), &BOTH);
    check(r#"{"data":{"$patch":"delete"}}"#, json!(null), &BOTH);
    check(r#"{"data":{"$retainKeys":["b"],"b":"1"}}"#, json!({"b": "1"}), &BOTH);
    check(r#"{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"zz"}]}}"#, same(), &BOTH);
    check(r#"{"metadata":{"ownerReferences":[{"$patch":"delete"}]}}"#, same(), &BOTH);
    let internal = |text| rejected(PatchKind::Strategic, text, Validation::Warn);
    let expected = |message: &str| PatchError::Internal(message.to_owned());
    assert_eq!(internal(r#"{"data":{"$patch":"foo"}}"#), expected("unknown patch type: foo in map: map[$patch:foo]"));
    assert_eq!(
        internal(r#"{"data":{"$patch":5}}"#),
        expected("unknown patch type: %!s(int64=5) in map: map[$patch:5]")
    );
}

#[test]
fn strategic_patches_find_items_by_their_key() {
    let schema = Schema::of("", "v1", "Pod").expect("known");
    let live = json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "R"}]}});
    let patch = |text: &str| {
        patch(schema, &live, PatchKind::Strategic, text.as_bytes(), Validation::Strict).expect("accepted").value
    };
    let refs = patch(r#"{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"1"}]}}"#);
    assert_eq!(refs["metadata"]["ownerReferences"].as_array().expect("a list").len(), 1);
    assert_eq!(refs["metadata"]["ownerReferences"][0]["name"], "b");
    let conditions = patch(
        r#"{"status":{"conditions":[{"type":"Ready","status":"True","reason":null},{"type":"New","status":"True"}]}}"#,
    );
    let of = |place: usize, field: &str| conditions["status"]["conditions"][place][field].clone();
    assert_eq!((of(0, "type"), of(0, "status"), of(0, "reason")), (json!("Ready"), json!("True"), Value::Null));
    assert_eq!(of(1, "type"), json!("New"));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..9).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from), object_of(inner)]
    })
}

fn object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Patches to existing, missing and unknown fields of a volume, and to fields of the wrong type.
fn any_volume_patch() -> impl Strategy<Value = Value> {
    let fragment = prop_oneof![
        Just(json!({"spec": {"claimRef": {"name": "q", "uid": ""}}})),
        Just(json!({"spec": {"claimRef": null, "capacity": {"storage": "2048Mi", "x": null}}})),
        Just(json!({"spec": {"claimRef": {}, "mountOptions": [], "volumeMode": ""}})),
        Just(json!({"spec": {"nfs": {"server": "s", "path": null}, "hostPath": null}})),
        Just(json!({"spec": null, "status": {"phase": "Bound"}})),
        Just(json!({"spec": {"hostPath": {"path": "/new", "type": null}}})),
        Just(json!({"spec": {"nodeAffinity": {"required": {}}}})),
        Just(json!({"metadata": {"labels": {"a": null, "b": "c"}, "annotations": {"n": {"deep": null}}}})),
        Just(json!({"metadata": {"labels": null, "finalizers": null, "creationTimestamp": null, "generation": 0}})),
        Just(json!({"metadata": null})),
        Just(json!({"metadata": {"managedFields": []}})),
        Just(json!({"spec": {"unknown": 1}})),
        Just(json!({"spec": {"accessModes": "no list"}})),
        Just(json!({"status": {}})),
    ];
    prop::collection::vec(fragment, 1..4).prop_map(|fragments| {
        let mut whole = json!({});
        // A merge patch would drop nulls, so the fragments are combined without one.
        fn lay(over: &mut Value, under: &Value) {
            match (over, under) {
                (Value::Object(over), Value::Object(under)) => {
                    under
                        .iter()
                        .for_each(|(key, value)| lay(over.entry(key.clone()).or_insert_with(|| json!({})), value));
                }
                (over, under) => *over = under.clone(),
            }
        }
        fragments.iter().for_each(|fragment| lay(&mut whole, fragment));
        whole
    })
}

proptest! {
    #[test]
    fn the_fast_path_agrees_with_decoding_the_whole_object(change in any_volume_patch()) {
        let schema = Schema::of("", "v1", "PersistentVolume").expect("known");
        let live = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v", "labels": {"a": "b"}, "finalizers": ["f"]},
            "spec": {"capacity": {"storage": "1Gi"}, "claimRef": {"name": "c", "namespace": "d"}, "hostPath": {"path": "/x", "type": ""}}, "status": {}});
        let text = change.to_string();
        let found = patch(schema, &live, PatchKind::Merge, text.as_bytes(), Validation::Warn);
        let patched = merge_patch(&live, text.as_bytes()).expect("a patch").value;
        match canonical(schema, patched, Strictness::Report) {
            Ok(expected) => prop_assert_eq!(found.expect("accepted"), expected),
            Err(_) => prop_assert!(found.is_err()),
        }
    }

    #[test]
    fn merge_patches_follow_the_rfc(live in object_of(any_json()), patch in object_of(any_json())) {
        let mut expected = live.clone();
        json_patch::merge(&mut expected, &patch);
        let found = merge_patch(&live, patch.to_string().as_bytes()).expect("a patch");
        prop_assert_eq!(found.value, expected);
    }
}

/// Operations that each double a map: `{}`, `{"a":{}}`, `{"a":{},"b":{"a":{}}}`, and so on.
fn doubling(times: usize) -> String {
    let mut operations = vec![r#"{"op":"add","path":"/x","value":{"0":"0123456789"}}"#.to_owned()];
    operations.extend((1..=times).map(|number| format!(r#"{{"op":"copy","from":"/x","path":"/x/{number}"}}"#)));
    format!("[{}]", operations.join(","))
}

#[test]
fn copied_bytes_of_a_json_patch_are_limited() {
    let refused = PatchError::Unprocessable(REJECTED.to_owned());
    assert!(outcome(PatchKind::Json, &doubling(16), Validation::Ignore).is_ok(), "less than 3 MiB");
    for times in [18, 22, 30, 64, 9_999] {
        assert_eq!(rejected(PatchKind::Json, &doubling(times), Validation::Warn), refused, "{times} copies");
    }
    // The same value again and again adds up, too.
    let mut operations = vec![format!(r#"{{"op":"add","path":"/data/b","value":"{}"}}"#, "x".repeat(1 << 20))];
    let copies =
        |count: usize| (0..count).map(|number| format!(r#"{{"op":"copy","from":"/data/b","path":"/data/c{number}"}}"#));
    operations.extend(copies(2));
    assert!(outcome(PatchKind::Json, &format!("[{}]", operations.join(",")), Validation::Ignore).is_ok());
    operations.extend(copies(3));
    assert_eq!(rejected(PatchKind::Json, &format!("[{}]", operations.join(",")), Validation::Ignore), refused);
}

#[test]
fn operations_of_a_json_patch_are_limited() {
    let patch = |count: usize| {
        let operations = vec![r#"{"op":"test","path":"/data/a","value":"1"}"#; count];
        format!("[{}]", operations.join(","))
    };
    assert!(outcome(PatchKind::Json, &patch(10_000), Validation::Warn).is_ok());
    let message = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(rejected(PatchKind::Json, &patch(10_001), Validation::Warn), PatchError::TooLarge(message.to_owned()));
}

#[test]
fn a_json_patch_cannot_nest_deeper_than_the_decoder_reads() {
    let refused = PatchError::Unprocessable(REJECTED.to_owned());
    // Each operation puts the map into another one: without a limit, the stack overflows.
    let deep = |times: usize| {
        let mut operations = vec![r#"{"op":"add","path":"/x","value":{}}"#.to_owned()];
        for _ in 0..times {
            operations.push(r#"{"op":"add","path":"/y","value":{}}"#.to_owned());
            operations.push(r#"{"op":"move","from":"/x","path":"/y/x"}"#.to_owned());
            operations.push(r#"{"op":"move","from":"/y","path":"/x"}"#.to_owned());
        }
        format!("[{}]", operations.join(","))
    };
    assert!(outcome(PatchKind::Json, &deep(120), Validation::Ignore).is_ok());
    assert_eq!(rejected(PatchKind::Json, &deep(3_000), Validation::Ignore), refused);
    let copies: Vec<String> = (0..40).map(|_| r#"{"op":"copy","from":"/x","path":"/x/x"}"#.to_owned()).collect();
    let text = format!(r#"[{{"op":"add","path":"/x","value":{{}}}},{}]"#, copies.join(","));
    assert!(outcome(PatchKind::Json, &text, Validation::Ignore).is_ok(), "each copy replaces the last one");
}

#[test]
fn a_json_patch_cannot_shift_a_long_list_thousands_of_times() {
    let refused = PatchError::Unprocessable(REJECTED.to_owned());
    let list = vec!["0"; 500_000].join(",");
    let mut operations = vec![format!(r#"{{"op":"add","path":"/x","value":[{list}]}}"#)];
    operations.extend(vec![r#"{"op":"add","path":"/x/0","value":0}"#.to_owned(); 9_000]);
    assert_eq!(rejected(PatchKind::Json, &format!("[{}]", operations.join(",")), Validation::Ignore), refused);
}

#[test]
fn a_strategic_patch_cannot_merge_very_long_lists() {
    let names = |count: usize| (0..count).map(|number| format!("\"a.b/{number}\"")).collect::<Vec<_>>().join(",");
    let patch = |count: usize| format!(r#"{{"metadata":{{"finalizers":[{}]}}}}"#, names(count));
    assert!(outcome(PatchKind::Strategic, &patch(500), Validation::Warn).is_ok());
    let refused = rejected(PatchKind::Strategic, &patch(200_000), Validation::Warn);
    assert!(matches!(refused, PatchError::TooLarge(_)), "{refused:?}");
}

#[test]
fn duplicate_fields_of_a_patch_are_listed_up_to_gos_limit() {
    let twice = (0..100_000).map(|number| format!(r#""{number}":"","{number}":"""#)).collect::<Vec<_>>().join(",");
    let text = format!(r#"{{"data":{{{twice}}}}}"#);
    let patched = merge_patch(&live(), text.as_bytes()).expect("it is valid");
    assert_eq!(patched.strict_errors.len(), 100);
}
