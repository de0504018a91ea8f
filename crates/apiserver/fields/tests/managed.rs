//! Field ownership, compared with the managedFields of a kube-apiserver v1.36.4 after the same
//! writes.

use bindery_fields::managed::{ApplyError, Writer, apply, track_update};
use bindery_fields::patch::{PatchKind, Validation, patch};
use bindery_fields::{Schema, Strictness, canonical};
use proptest::prelude::*;
use serde_json::{Value, json};

/// An object that several managers write to, one second apart.
struct TestObject {
    schema: &'static Schema,
    live: Option<Value>,
    seconds: u32,
}

impl TestObject {
    fn of(kind: &str) -> TestObject {
        TestObject { schema: Schema::of("", "v1", kind).expect("a core kind"), live: None, seconds: 0 }
    }

    fn now(&mut self) -> String {
        self.seconds += 1;
        format!("2026-01-02T15:04:{:02}Z", self.seconds)
    }

    fn create(&mut self, manager: &str, object: Value) -> &mut TestObject {
        let mut new = canonical(self.schema, object, Strictness::Ignore).expect("well-formed").value;
        let now = self.now();
        track_update(self.schema, None, &mut new, &Writer { manager, subresource: "", now: &now });
        new["metadata"]["uid"] = json!("u");
        self.live = Some(new);
        self
    }

    /// Applies a patch, and resets the part that the subresource cannot change.
    fn patch(&mut self, manager: &str, subresource: &str, text: Value) -> &mut TestObject {
        let live = self.live.clone().expect("created");
        let kind = PatchKind::Strategic;
        let patched =
            patch(self.schema, &live, kind, text.to_string().as_bytes(), Validation::Strict).expect("a patch");
        let mut new = patched.value;
        let now = self.now();
        track_update(self.schema, Some(&live), &mut new, &Writer { manager, subresource, now: &now });
        let put_back = if subresource == "status" { "spec" } else { "status" };
        if let Some(old) = live.get(put_back) {
            new[put_back] = old.clone();
        }
        self.live = Some(new);
        self
    }

    fn apply(&mut self, manager: &str, force: bool, object: Value) -> Result<(), ApplyError> {
        let now = self.now();
        let mut value =
            apply(self.schema, self.live.as_ref(), &object, force, &Writer { manager, subresource: "", now: &now })?;
        value["metadata"]["uid"] = json!("u");
        self.live = Some(value);
        Ok(())
    }

    fn value(&self, pointer: &str) -> Value {
        self.live.as_ref().and_then(|live| live.pointer(pointer)).cloned().unwrap_or_default()
    }

    /// Each entry's manager and fields.
    fn owners(&self) -> Vec<(String, Value)> {
        let list = self.value("/metadata/managedFields");
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter()
            .map(|entry| (entry["manager"].as_str().expect("a name").to_owned(), entry["fieldsV1"].clone()))
            .collect()
    }

    #[track_caller]
    fn check(&self, owners: &[(&str, Value)]) {
        let owners: Vec<(String, Value)> =
            owners.iter().map(|(name, fields)| ((*name).to_owned(), fields.clone())).collect();
        assert_eq!(self.owners(), owners);
    }
}

fn volume() -> TestObject {
    let mut subject = TestObject::of("PersistentVolume");
    subject.create(
        "m1",
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "mf", "labels": {"a": "b"}},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x", "type": ""},
                "claimRef": {"name": "c", "namespace": "d"}, "persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
            "status": {"phase": "Failed"}}),
    );
    subject.live.as_mut().expect("created")["status"] = json!({"phase": "Pending"});
    subject
}

/// What the creator of that volume owns, with or without the claim reference.
fn created(claim_ref: bool) -> Value {
    let mut spec = json!({"f:accessModes": {}, "f:capacity": {".": {}, "f:storage": {}}, "f:hostPath": {".": {}, "f:path": {}, "f:type": {}},
        "f:persistentVolumeReclaimPolicy": {}, "f:volumeMode": {}});
    if claim_ref {
        spec["f:claimRef"] = json!({".": {}, "f:name": {}, "f:namespace": {}});
    }
    json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": spec})
}

#[test]
fn binding_and_releasing_a_volume_updates_ownership() {
    let mut subject = volume();
    subject.check(&[("m1", created(true))]);
    let status = json!({"metadata": {"annotations": {"x": "y"}}, "spec": {"storageClassName": "zz"}, "status": {"phase": "Available", "message": "hi"}});
    subject.patch("m2", "status", status);
    let by_m2 = |annotations: Value| json!({"f:metadata": {"f:annotations": annotations}, "f:status": {"f:message": {}, "f:phase": {}}});
    subject.check(&[("m1", created(true)), ("m2", by_m2(json!({".": {}, "f:x": {}})))]);
    assert_eq!(subject.value("/metadata/managedFields/1/subresource"), "status");

    let bind = json!({"metadata": {"annotations": {"x": "z"}}, "spec": {"claimRef": {"uid": "u"}}, "status": {"phase": "Bound"}});
    subject.patch("m3", "", bind);
    let annotation = json!({"f:annotations": {"f:x": {}}});
    let by_m3 = |claim_ref: Value| json!({"f:metadata": annotation, "f:spec": {"f:claimRef": claim_ref}});
    subject.check(&[("m1", created(true)), ("m2", by_m2(json!({}))), ("m3", by_m3(json!({"f:uid": {}})))]);

    subject.patch("m3", "", json!({"spec": {"claimRef": null}}));
    subject.check(&[("m1", created(false)), ("m2", by_m2(json!({}))), ("m3", json!({"f:metadata": annotation}))]);

    subject.patch("m3", "", json!({"spec": {"claimRef": {"name": "q", "namespace": "d"}}}));
    let reserved = by_m3(json!({".": {}, "f:name": {}, "f:namespace": {}}));
    subject.check(&[("m1", created(false)), ("m2", by_m2(json!({}))), ("m3", reserved.clone())]);

    let before = subject.live.clone();
    subject.patch("m9", "", json!({"spec": {"claimRef": {"name": "q"}}}));
    assert_eq!(subject.live, before, "a write without changes leaves managedFields unchanged");
}

#[test]
fn conditions_are_owned_individually_including_zero_times() {
    let mut subject = TestObject::of("PersistentVolumeClaim");
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"});
    subject.create("m1", json!({"metadata": {"name": "mf"}, "spec": spec}));
    let by_m1 = json!({"f:spec": {"f:accessModes": {}, "f:resources": {"f:requests": {".": {}, "f:storage": {}}}, "f:volumeMode": {}}});
    subject.check(&[("m1", by_m1.clone())]);
    let status = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "conditions": [{"type": "Resizing", "status": "True"}]});
    subject.patch("m2", "status", json!({"status": status}));
    let by_m2 = json!({"f:status": {"f:accessModes": {}, "f:capacity": {".": {}, "f:storage": {}}, "f:conditions": {".": {}, "k:{\"type\":\"Resizing\"}":
        {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}}, "f:phase": {}}});
    subject.check(&[("m1", by_m1), ("m2", by_m2)]);
}

#[test]
fn lists_of_a_pod_are_owned_by_key() {
    let mut subject = TestObject::of("Pod");
    subject.create(
        "m1",
        json!({"metadata": {"name": "mf", "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "n", "uid": "u1"}]},
            "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}], "env": [{"name": "E", "value": "v"}]}],
                "volumes": [{"name": "v", "emptyDir": {}}]}}),
    );
    subject.check(&[(
        "m1",
        json!({"f:metadata": {"f:ownerReferences": {".": {}, "k:{\"uid\":\"u1\"}": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {},
            "f:env": {".": {}, "k:{\"name\":\"E\"}": {".": {}, "f:name": {}, "f:value": {}}}, "f:name": {},
            "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}, "f:resources": {}}},
            "f:volumes": {".": {}, "k:{\"name\":\"v\"}": {".": {}, "f:emptyDir": {}, "f:name": {}}}}}),
    )]);
}

#[test]
fn the_oldest_of_too_many_managers_are_merged() {
    let mut subject = TestObject::of("ConfigMap");
    subject.create("n0", json!({"metadata": {"name": "c"}, "data": {"a": "1"}}));
    for i in 1..=12 {
        subject.patch(&format!("n{i}"), "", json!({"metadata": {"labels": {format!("l{i}"): "x"}}}));
    }
    let owners = subject.owners();
    let names: Vec<&str> = owners.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ancient-changes", "n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11", "n12"]);
    let labels = json!({".": {}, "f:l1": {}, "f:l2": {}, "f:l3": {}});
    assert_eq!(owners[0].1, json!({"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": labels}}));
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": data})
}

#[test]
fn two_managers_apply_and_one_updates() {
    let mut subject = TestObject::of("ConfigMap");
    subject.apply("m1", false, config(json!({"a": "1", "b": "2"}))).expect("there is no other owner");
    subject.check(&[("m1", json!({"f:data": {"f:a": {}, "f:b": {}}}))]);
    let before = subject.live.clone();
    subject.apply("m1", false, config(json!({"a": "1", "b": "2"}))).expect("the same object");
    assert_eq!(subject.live, before);

    subject.apply("m2", false, config(json!({"a": "1"}))).expect("the same value");
    subject.check(&[("m2", json!({"f:data": {"f:a": {}}})), ("m1", json!({"f:data": {"f:a": {}, "f:b": {}}}))]);
    assert_eq!(subject.value("/metadata/managedFields/0/time"), Value::Null, "the apply changed nothing");

    let one = subject.apply("m2", false, config(json!({"a": "2"}))).expect_err("a conflict");
    assert_eq!(one.message(), "Apply failed with 1 conflict: conflict with \"m1\": .data.a");
    let two = subject.apply("m2", false, config(json!({"a": "2", "b": "3"}))).expect_err("two conflicts");
    assert_eq!(two.message(), "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .data.a\n- .data.b");

    subject.apply("m2", true, config(json!({"a": "2"}))).expect("forced");
    subject.check(&[("m1", json!({"f:data": {"f:b": {}}})), ("m2", json!({"f:data": {"f:a": {}}}))]);
    subject.apply("m1", false, config(json!({"c": "3"}))).expect("b is removed and c is added");
    assert_eq!(subject.value("/data"), json!({"a": "2", "c": "3"}));

    subject.patch("u1", "", json!({"data": {"c": "4"}}));
    subject.check(&[("m2", json!({"f:data": {"f:a": {}}})), ("u1", json!({"f:data": {"f:c": {}}}))]);
    let conflict = subject.apply("m1", false, config(json!({"c": "3"}))).expect_err("a conflict");
    assert_eq!(conflict.message(), "Apply failed with 1 conflict: conflict with \"u1\" using v1: .data.c");
    subject.patch("u1", "", json!({"data": {"a": null}}));
    subject.check(&[("u1", json!({"f:data": {"f:c": {}}}))]);
}

#[test]
fn sets_and_maps_are_shared_between_managers() {
    let mut subject = TestObject::of("ConfigMap");
    subject.create("u1", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "labels": {"x": "y"}, "finalizers": ["a.b/c"]}}));
    let by_u1 = json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"a.b/c\"": {}}, "f:labels": {".": {}, "f:x": {}}}});
    let object = |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let conflict =
        subject.apply("m3", false, object(json!({"name": "s", "labels": {"x": "z"}}))).expect_err("a conflict");
    assert_eq!(conflict.message(), "Apply failed with 1 conflict: conflict with \"u1\" using v1: .metadata.labels.x");
    subject
        .apply("m3", false, object(json!({"name": "s", "labels": {"q": "z"}, "finalizers": ["a.b/d"]})))
        .expect("fields of other managers are kept");
    assert_eq!(subject.value("/metadata/finalizers"), json!(["a.b/c", "a.b/d"]));
    assert_eq!(subject.value("/metadata/labels"), json!({"q": "z", "x": "y"}));
    subject.check(&[
        ("m3", json!({"f:metadata": {"f:finalizers": {"v:\"a.b/d\"": {}}, "f:labels": {"f:q": {}}}})),
        ("u1", by_u1.clone()),
    ]);
    subject.apply("m3", false, object(json!({"name": "s"}))).expect("the manager's own fields are removed");
    assert_eq!(
        (subject.value("/metadata/labels"), subject.value("/metadata/finalizers")),
        (json!({"x": "y"}), json!(["a.b/c"]))
    );
    subject.check(&[("u1", by_u1)]);
}

#[test]
fn an_empty_list_resets_ownership_and_the_first_apply_restores_it() {
    for reset in [json!([]), json!([{}])] {
        let mut subject = TestObject::of("ConfigMap");
        subject.create("u1", config(json!({"c": "4"})));
        let live = subject.live.clone().expect("created");
        let mut asked = live.clone();
        asked["metadata"]["managedFields"] = reset;
        let mut new = canonical(subject.schema, asked, Strictness::Ignore).expect("well-formed").value;
        track_update(
            subject.schema,
            Some(&live),
            &mut new,
            &Writer { manager: "u1", subresource: "", now: "2026-01-02T15:05:00Z" },
        );
        subject.live = Some(new);
        subject.check(&[]);
        subject.patch("u1", "", json!({"data": {"d": "5"}}));
        subject.check(&[]);
        subject.apply("m4", false, config(json!({"a": "1"}))).expect("the field has no owner");
        subject.check(&[
            ("m4", json!({"f:data": {"f:a": {}}})),
            ("before-first-apply", json!({"f:data": {".": {}, "f:c": {}, "f:d": {}}})),
        ]);
    }
}

#[test]
fn a_write_without_entries_keeps_the_existing_ones() {
    let mut subject = TestObject::of("ConfigMap");
    subject.create("u1", config(json!({"c": "4"})));
    let live = subject.live.clone().expect("created");
    let mut new = live.clone();
    new["metadata"].as_object_mut().expect("an object").remove("managedFields");
    new["data"]["d"] = json!("1");
    track_update(
        subject.schema,
        Some(&live),
        &mut new,
        &Writer { manager: "u2", subresource: "", now: "2026-01-02T15:05:00Z" },
    );
    subject.live = Some(new);
    subject.check(&[("u1", json!({"f:data": {".": {}, "f:c": {}}})), ("u2", json!({"f:data": {"f:d": {}}}))]);
}

#[test]
fn invalid_applies_are_rejected_with_upstreams_messages() {
    let rejected = |object: Value| TestObject::of("ConfigMap").apply("m1", false, object).expect_err("rejected");
    let typed = |expected: &str| {
        ApplyError::Internal(format!("failed to create typed patch object (/s; /v1, Kind=ConfigMap): {expected}"))
    };
    let with = |name: &str, value: Value| {
        let mut object = config(json!({}));
        object[name] = value;
        object
    };
    let meta = |value: Value| with("metadata", value);
    assert_eq!(rejected(with("foo", json!(1))), typed(".foo: field not declared in schema"));
    assert_eq!(rejected(with("data", json!("x"))), typed(".data: expected map, got &{x}"));
    assert_eq!(rejected(with("data", json!([]))), typed(".data: expected map, got &{[]}"));
    assert_eq!(
        rejected(config(json!({"a": 1}))),
        typed(".data.a: expected string, got &value.valueUnstructured{Value:1}")
    );
    assert_eq!(
        rejected(meta(json!({"name": "s", "ownerReferences": [{"uid": "a"}, {"uid": "a"}]}))),
        typed(".metadata.ownerReferences: duplicate entries for key [uid=\"a\"]")
    );
    assert_eq!(
        rejected(meta(json!({"name": "s", "finalizers": ["a", "a"]}))),
        typed(".metadata.finalizers: duplicate entries for key [=\"a\"]")
    );
    let mut several = meta(json!({"name": "s", "labels": 5, "finalizers": "x"}));
    several["immutable"] = json!("x");
    let lines = "errors:\n  .immutable: expected boolean, got &{x}\n  .metadata.finalizers: expected list, got &{x}\n  .metadata.labels: expected map, got &{5}";
    assert_eq!(rejected(several), typed(lines));
    let bad = |expected: &str| ApplyError::BadRequest(expected.to_owned());
    assert_eq!(rejected(meta(json!({"managedFields": []}))), bad("metadata.managedFields must be nil"));
    assert_eq!(rejected(with("apiVersion", json!("v2"))), bad("invalid object type: /v2, Kind=ConfigMap"));
    assert_eq!(rejected(json!({})), bad("invalid object type: /, Kind="));
}

#[test]
fn applied_fields_of_a_volume_and_a_pod_are_owned() {
    let mut subject = TestObject::of("PersistentVolume");
    let spec = json!({"capacity": {"storage": "1024Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}, "claimRef": {"name": "x", "namespace": "y"}});
    let object = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "t"}, "spec": spec, "status": {"phase": "Bound"}});
    subject.apply("m1", false, object).expect("new");
    assert_eq!(subject.value("/spec/capacity/storage"), "1Gi");
    subject.check(&[(
        "m1",
        json!({"f:spec": {"f:accessModes": {}, "f:capacity": {"f:storage": {}}, "f:claimRef": {"f:name": {}, "f:namespace": {}}, "f:hostPath": {"f:path": {}}}}),
    )]);
    let mut subject = TestObject::of("Pod");
    let ports = json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]);
    let spec = json!({"containers": [{"name": "a", "image": "b", "ports": ports}], "volumes": [{"name": "v", "emptyDir": {}}]});
    subject
        .apply("m1", false, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "t"}, "spec": spec}))
        .expect("new");
    subject.check(&[(
        "m1",
        json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {}, "f:ports": {
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
            "k:{\"containerPort\":80,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}}},
            "f:volumes": {"k:{\"name\":\"v\"}": {".": {}, "f:emptyDir": {}, "f:name": {}}}}}),
    )]);
}

#[test]
fn kubectl_takes_over_fields_it_applied_client_side() {
    let mut subject = TestObject::of("ConfigMap");
    let last = config(json!({"a": "1"}));
    let mut object = last.clone();
    object["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": last.to_string()});
    subject.create("kubectl-client-side-apply", object);
    let next = config(json!({"a": "2"}));
    let other = subject.apply("other", false, next.clone()).expect_err("a conflict for other managers");
    assert!(matches!(other, ApplyError::Conflicts(_)));
    subject.apply("kubectl", false, next.clone()).expect("kubectl's own field");
    let annotation = subject.value("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration");
    assert_eq!((subject.value("/data/a"), annotation), (json!("2"), json!(format!("{next}\n"))));
}

#[test]
fn an_empty_map_is_owned_although_it_is_not_stored() {
    let mut subject = TestObject::of("ConfigMap");
    subject.apply("m1", false, config(json!({}))).expect("new");
    subject.check(&[("m1", json!({"f:data": {}}))]);
    let before = subject.live.clone();
    subject.apply("m1", false, config(json!({}))).expect("the manager owns it");
    assert_eq!(subject.live, before, "the time is unchanged, too");
    let conflict = subject.apply("m2", false, config(json!({"a": "x"}))).expect_err("a conflict");
    assert_eq!(conflict.message(), "Apply failed with 1 conflict: conflict with \"m1\": .data");
}

/// Objects to apply: some keys of a map, some items of a set, some labels.
fn any_config() -> impl Strategy<Value = Value> {
    let keys = || prop::collection::btree_map("[a-c]", "[xy]", 1..3);
    (prop::option::of(keys()), prop::option::of(keys()), prop::collection::btree_set("[a-c]", 0..3)).prop_map(
        |(data, labels, finalizers)| {
            let mut object =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s", "finalizers": finalizers}});
            if let Some(data) = data {
                object["data"] = json!(data);
            }
            if let Some(labels) = labels {
                object["metadata"]["labels"] = json!(labels);
            }
            object
        },
    )
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(steps in prop::collection::vec((0..3_usize, any::<bool>(), any_config()), 1..6)) {
        let mut subject = TestObject::of("ConfigMap");
        for (manager, force, object) in steps {
            let manager = ["m1", "m2", "m3"][manager];
            if subject.apply(manager, force, object.clone()).is_err() {
                prop_assert!(!force, "a forced apply cannot conflict");
                continue;
            }
            for (key, value) in object["data"].as_object().into_iter().flatten() {
                prop_assert_eq!(subject.value(&format!("/data/{key}")), value.clone());
            }
            let before = subject.live.clone();
            subject.apply(manager, false, object).expect("the manager owns all fields");
            prop_assert_eq!(&subject.live, &before);
        }
    }
}
