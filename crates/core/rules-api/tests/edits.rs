//! A write has two representations: the patch that is sent, and the edit that the engine applies to
//! its cache. If they disagreed, rules would decide on a state that never exists.

use bindery_fields::Schema;
use bindery_fields::patch::strategic_merge_patch;
use bindery_model::{
    AccessMode, AccessModes, Annotation, Attempt, Claim, ClaimKey, ClaimPhase, ClaimRef, Name, Quantity, Record,
    Volume, VolumePhase,
};
use bindery_rules_api::{
    ClaimEdit, ClaimReport, ClaimStatusEdit, ConditionEdit, ConditionType, Edit, Expansion, PatchType, RecordEdit,
    RefEdit, Rule, VolumeEdit, VolumeStatusEdit, Write,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

static PURPOSE: Rule = Rule { name: "test.edit", why: "A test needs a purpose." };

// === Objects ===

fn word() -> impl Strategy<Value = String> {
    "[a-z]{1,6}"
}

/// A field that is absent, null or present.
fn maybe(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![1 => Just(None), 1 => Just(Some(Value::Null)), 3 => value.prop_map(Some)]
}

fn text() -> impl Strategy<Value = Value> {
    word().prop_map(Value::from)
}

fn size() -> impl Strategy<Value = Quantity> {
    prop::sample::select(vec!["1Gi", "10Gi", "1.5G", "100m", "0", "1e3"]).prop_map(|text| text.parse().expect("a size"))
}

fn modes() -> impl Strategy<Value = AccessModes> {
    prop::collection::vec(prop::sample::select(AccessMode::ALL.to_vec()), 0..4)
        .prop_map(|modes| modes.into_iter().collect())
}

fn listed(modes: AccessModes) -> Value {
    modes.iter().map(|mode| mode.as_str()).collect::<Vec<_>>().into()
}

/// Annotations, some with keys that rules know.
fn annotations() -> impl Strategy<Value = Value> {
    let known = prop::sample::select(Annotation::ALL.to_vec()).prop_map(|annotation| annotation.key().to_owned());
    let key = prop_oneof![known, word().prop_map(|word| format!("example.com/{word}"))];
    prop::collection::btree_map(key, prop_oneof![word(), Just(String::new())], 0..6).prop_map(|map| json!(map))
}

/// An object with the fields that are present.
fn object(fields: Vec<(&str, Option<Value>)>) -> Value {
    let present = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

prop_compose! {
    fn metadata()(
        name in word(), uid in word(), version in any::<u64>(), annotations in maybe(annotations()),
        labels in maybe(annotations()), finalizers in maybe(prop::collection::vec(word(), 0..3).prop_map(Value::from)),
        foreign in text(),
    ) -> Value {
        object(vec![
            ("name", Some(name.into())), ("uid", Some(uid.into())), ("resourceVersion", Some(version.to_string().into())),
            ("annotations", annotations), ("labels", labels), ("finalizers", finalizers),
            ("managedFields", Some(json!([{"manager": foreign}]))),
        ])
    }
}

prop_compose! {
    fn any_claim()(
        mut metadata in metadata(), namespace in word(), class in maybe(text()), volume in maybe(text()),
        selector in maybe(word().prop_map(|value| json!({"matchLabels": {"disk": value}}))), modes in modes(), size in size(),
        phase in maybe(prop::sample::select(vec!["Pending", "Bound", "Lost"]).prop_map(Value::from)),
        got in maybe(size().prop_map(|size| json!({"storage": size.as_str(), "example.com/inodes": "7"}))),
        got_modes in maybe(modes().prop_map(listed)), attributes in maybe(text()), foreign in text(),
    ) -> Value {
        metadata["namespace"] = namespace.into();
        let spec = object(vec![
            ("storageClassName", class), ("volumeName", volume), ("selector", selector), ("accessModes", Some(listed(modes))),
            ("resources", Some(json!({"requests": {"storage": size.as_str()}, "limits": {"storage": foreign}}))),
            ("dataSourceRef", Some(json!({"name": foreign}))),
        ]);
        let status = object(vec![
            ("phase", phase), ("capacity", got), ("accessModes", got_modes),
            ("currentVolumeAttributesClassName", attributes), ("conditions", Some(json!([{"type": foreign}]))),
        ]);
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status})
    }
}

prop_compose! {
    fn any_volume()(
        metadata in metadata(), class in maybe(text()), modes in modes(), size in size(), foreign in text(),
        claim in maybe((word(), word(), maybe(text())).prop_map(|(namespace, name, uid)| object(vec![
            ("namespace", Some(namespace.into())), ("name", Some(name.into())), ("uid", uid),
            ("fieldPath", Some("later".into())),
        ]))),
        phase in maybe(prop::sample::select(vec!["Pending", "Available", "Bound", "Failed"]).prop_map(Value::from)),
        message in maybe(text()),
    ) -> Value {
        let spec = object(vec![
            ("storageClassName", class), ("accessModes", Some(listed(modes))), ("claimRef", claim),
            ("capacity", Some(json!({"storage": size.as_str()}))), ("nodeAffinity", Some(json!({"preferred": foreign}))),
            ("csi", Some(json!({"driver": foreign, "volumeHandle": foreign}))),
        ]);
        let status = object(vec![
            ("phase", phase), ("message", message), ("reason", Some(foreign.clone())),
            ("lastPhaseTransitionTime", Some(foreign)),
        ]);
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec, "status": status})
    }
}

// === Edits ===

fn name() -> impl Strategy<Value = Name> {
    word().prop_map(Name::from)
}

fn annotation_edits() -> impl Strategy<Value = Vec<(Annotation, Option<Name>)>> {
    let value = prop::option::of(prop_oneof![name(), Just(Name::default())]);
    prop::collection::vec((prop::sample::select(Annotation::ALL.to_vec()), value), 0..4)
}

fn claim_edit() -> impl Strategy<Value = Edit> {
    (prop::option::of(name()), prop::option::of(name()), annotation_edits()).prop_map(|(volume, class, annotations)| {
        Edit::Claim(ClaimEdit { volume, class, annotations, ..ClaimEdit::default() })
    })
}

fn claim_status_edit() -> impl Strategy<Value = Edit> {
    let phase = prop::sample::select(vec![ClaimPhase::Pending, ClaimPhase::Bound, ClaimPhase::Lost]);
    (phase, prop::option::of(modes()), prop::option::of(size()), prop::option::of(name())).prop_map(
        |(phase, modes, capacity, attributes_class)| {
            Edit::ClaimStatus(ClaimStatusEdit { phase, modes, capacity, attributes_class })
        },
    )
}

fn volume_edit() -> impl Strategy<Value = Edit> {
    let set = (name(), name(), name(), any::<u64>()).prop_map(|(namespace, name, uid, version)| {
        RefEdit::Set(ClaimRef { key: ClaimKey { namespace, name }, uid }, version)
    });
    let reference = prop_oneof![set, Just(RefEdit::ClearUid), Just(RefEdit::Clear)];
    let finalizers = prop::collection::vec(name(), 0..3).prop_map(Vec::into_boxed_slice);
    (prop::option::of(reference), annotation_edits(), prop::option::of(finalizers), prop::option::of(size())).prop_map(
        |(claim_ref, annotations, finalizers, capacity)| {
            Edit::Volume(VolumeEdit { claim_ref, annotations, finalizers, capacity })
        },
    )
}

fn volume_status_edit() -> impl Strategy<Value = Edit> {
    let phase = prop::sample::select(vec![VolumePhase::Available, VolumePhase::Bound, VolumePhase::Released]);
    (phase, prop_oneof![name(), Just(Name::default())])
        .prop_map(|(phase, message)| Edit::VolumeStatus(VolumeStatusEdit { phase, message }))
}

fn claim_report() -> impl Strategy<Value = ClaimReport> {
    let condition = |condition| {
        let edit = prop_oneof![
            any::<bool>().prop_map(move |status| ConditionEdit::Set { condition, status, reason: "", message: "why" }),
            Just(ConditionEdit::Remove(condition)),
        ];
        prop::option::of(edit)
    };
    let conditions = (
        condition(ConditionType::Unused),
        condition(ConditionType::Resizing),
        condition(ConditionType::FileSystemResizePending),
    );
    let status = prop::option::of(Just("NodeResizePending"));
    let expansion = (size(), status).prop_map(|(allocated, status)| Expansion { allocated, status });
    (annotation_edits(), conditions, prop::option::of(size()), prop::option::of(expansion)).prop_map(
        |(annotations, (unused, resizing, pending), capacity, expansion)| ClaimReport {
            annotations,
            conditions: [unused, resizing, pending].into_iter().flatten().collect(),
            capacity,
            expansion,
        },
    )
}

/// The types of the conditions that rules do not write, in order.
fn foreign_conditions(claim: &Value) -> Vec<String> {
    let ours = [ConditionType::Unused, ConditionType::Resizing, ConditionType::FileSystemResizePending];
    let types = claim["status"]["conditions"].as_array().into_iter().flatten().map(|condition| &condition["type"]);
    let types = types.filter(|kind| !ours.iter().any(|ours| *kind == ours.as_str()));
    types.map(ToString::to_string).collect()
}

// === Invariants ===

fn claim(json: &Value) -> Claim {
    let claim = Claim::from_json(json.to_string().as_bytes()).expect("a valid object");
    assert_eq!(claim.field_error, None, "{json}");
    claim
}

fn volume(json: &Value) -> Volume {
    let volume = Volume::from_json(json.to_string().as_bytes()).expect("a valid object");
    assert_eq!(volume.field_error, None, "{json}");
    volume
}

/// The fields that an edit may change, as JSON pointers.
fn own_fields(edit: &Edit) -> Vec<String> {
    let annotation = |(annotation, _): &(Annotation, Option<Name>)| {
        format!("/metadata/annotations/{}", annotation.key().replace('/', "~1"))
    };
    let fields: &[&str] = match edit {
        Edit::Claim(_) => &["/spec/volumeName", "/spec/storageClassName"],
        Edit::ClaimStatus(_) => {
            &["/status/phase", "/status/accessModes", "/status/capacity", "/status/currentVolumeAttributesClassName"]
        }
        Edit::ClaimReport(_) => &[
            "/status/conditions",
            "/status/capacity",
            "/status/allocatedResources",
            "/status/allocatedResourceStatuses",
        ],
        Edit::Volume(_) => &["/spec/claimRef", "/metadata/finalizers", "/spec/capacity"],
        Edit::VolumeStatus(_) => &["/status/phase", "/status/message"],
        Edit::PodStatus(_) => &["/status/nominatedNodeName", "/status/conditions"],
        Edit::Protection(_) => &["/metadata/finalizers"],
        Edit::Record(_) => &["/attempt", "/outcomeUnknown", "/metadata/deletionTimestamp"],
    };
    let annotations: Vec<String> = match edit {
        Edit::Claim(edit) => edit.annotations.iter().map(annotation).collect(),
        Edit::Volume(edit) => edit.annotations.iter().map(annotation).collect(),
        Edit::ClaimReport(report) => report.annotations.iter().map(annotation).collect(),
        Edit::ClaimStatus(_) | Edit::VolumeStatus(_) | Edit::PodStatus(_) | Edit::Protection(_) | Edit::Record(_) => {
            Vec::new()
        }
    };
    fields.iter().map(|field| (*field).to_owned()).chain(annotations).collect()
}

/// An object without the fields that an edit may change. Null and empty fields count as absent.
fn foreign(mut object: Value, edit: &Edit) -> Value {
    for field in own_fields(edit) {
        if let Some(value) = object.pointer_mut(&field) {
            *value = Value::Null;
        }
    }
    prune(object)
}

fn prune(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    let is_present = |value: &Value| !value.is_null() && value.as_object().is_none_or(|fields| !fields.is_empty());
    let pruned = fields.into_iter().map(|(key, value)| (key, prune(value))).filter(|(_, value)| is_present(value));
    Value::Object(pruned.collect())
}

/// Applies a write's patch as an API server does, and checks the invariants of every patch.
fn patched(before: &Value, write: &Write) -> Value {
    let patch = write.patch("2026-01-01T00:00:00Z");
    for precondition in ["uid", "resourceVersion"] {
        assert_eq!(patch["metadata"][precondition], before["metadata"][precondition], "{precondition} of {patch}");
    }
    let writes_status = write.edit().subresource() == Some("status");
    // A report may change only annotations, which an API server accepts through the status
    // subresource.
    let is_report = matches!(write.edit(), Edit::ClaimReport(_));
    assert!(
        is_report || patch.get("status").is_some() == writes_status,
        "the status is written through its subresource only: {patch}"
    );
    assert!(!(writes_status && patch.get("spec").is_some()), "the status subresource ignores the spec: {patch}");
    let after = match write.edit().patch_type() {
        PatchType::Merge => {
            let mut after = before.clone();
            json_patch::merge(&mut after, &patch);
            after
        }
        PatchType::Strategic => {
            let schema = Schema::of("", "v1", "PersistentVolumeClaim").expect("a kind");
            strategic_merge_patch(schema, before, patch.to_string().as_bytes()).expect("a patch").value
        }
    };
    assert_eq!(foreign(before.clone(), write.edit()), foreign(after.clone(), write.edit()), "by {patch}");
    after
}

proptest! {
    #[test]
    fn claim_patch_and_edit_have_the_same_result(
        before in any_claim(), edit in prop_oneof![claim_edit(), claim_status_edit()],
    ) {
        let seen = claim(&before);
        let mut expected = seen.clone();
        match &edit {
            Edit::Claim(edit) => edit.apply(&mut expected),
            Edit::ClaimStatus(edit) => edit.apply(&mut expected),
            Edit::ClaimReport(_)
            | Edit::Volume(_)
            | Edit::VolumeStatus(_)
            | Edit::PodStatus(_)
            | Edit::Protection(_)
            | Edit::Record(_) => {
                unreachable!("not a claim edit")
            }
        }
        let write = Write::claim(&PURPOSE, &seen, edit);
        prop_assert_eq!((write.uid(), write.version()), (&seen.meta.uid, seen.meta.version));
        prop_assert_eq!(claim(&patched(&before, &write)), expected);
    }

    #[test]
    fn report_patch_and_edit_have_the_same_result_and_keep_foreign_conditions(
        before in any_claim(), reports in prop::collection::vec(claim_report(), 1..4),
    ) {
        // Applied in sequence, so that a later report removes what an earlier one set.
        let mut object = before;
        for report in reports {
            let seen = claim(&object);
            let mut expected = seen.clone();
            report.apply(&mut expected);
            let after = patched(&object, &Write::report(&PURPOSE, &seen, report));
            prop_assert_eq!(claim(&after), expected);
            prop_assert_eq!(foreign_conditions(&object), foreign_conditions(&after));
            object = after;
        }
    }

    #[test]
    fn volume_patch_and_edit_have_the_same_result(
        before in any_volume(), mut edit in prop_oneof![volume_edit(), volume_status_edit()],
    ) {
        let seen = volume(&before);
        let mut expected = seen.clone();
        // Rules clear the UID only of an existing claimRef; a merge patch would create an empty
        // one.
        if let Edit::Volume(VolumeEdit { claim_ref: reference @ Some(RefEdit::ClearUid), .. }) = &mut edit
            && seen.claim_ref.is_none()
        {
            *reference = None;
        }
        match &edit {
            Edit::Volume(edit) => edit.apply(&mut expected),
            Edit::VolumeStatus(edit) => edit.apply(&mut expected),
            Edit::Claim(_)
            | Edit::ClaimStatus(_)
            | Edit::ClaimReport(_)
            | Edit::PodStatus(_)
            | Edit::Protection(_)
            | Edit::Record(_) => {
                unreachable!("not a volume edit")
            }
        }
        let write = Write::volume(&PURPOSE, &seen, edit);
        prop_assert_eq!((write.uid(), write.version()), (&seen.meta.uid, seen.meta.version));
        prop_assert_eq!(volume(&patched(&before, &write)), expected);
    }
}

#[test]
fn record_patch_and_edit_have_the_same_result() {
    let before = json!({
        "metadata": {"name": "u1", "uid": "u1", "resourceVersion": "7"},
        "claim": {"namespace": "ns", "name": "c"},
        "attempt": {"instance": "a", "number": 1},
        "request": {"volume": "pvc-u1"},
    });
    let record = |json: &Value| Record::from_json(json.to_string().as_bytes()).expect("it has a name");
    let attempt = Attempt { instance: "b".into(), number: 2 };
    for edit in [RecordEdit::Begin(attempt), RecordEdit::Remove] {
        let seen = record(&before);
        let mut expected = seen.clone();
        edit.apply(&mut expected);
        assert_ne!(expected, seen);
        assert_eq!(record(&patched(&before, &Write::record(&PURPOSE, &seen, edit))), expected);
    }
    let mut stored = record(&before).content();
    stored["metadata"] = before["metadata"].clone();
    assert_eq!(record(&stored), record(&before), "a record is stored completely");
}
