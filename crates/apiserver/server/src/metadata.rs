//! The rules for metadata that all kinds share.

use crate::go_diff;
use crate::invalid::FieldErrors;
use crate::kinds::Kind;
use crate::names;
use crate::value::{at, entries, list, text, texts};
use serde_json::Value;
use std::collections::BTreeSet;

const ANNOTATION_BYTES: usize = 256 << 10;

/// Looks for flaws in the metadata of a new object, or a changed one.
pub fn check(kind: &Kind, object: &Value, flaws: &mut FieldErrors) {
    let (name, prefix) = (text(object, &["metadata", "name"]), text(object, &["metadata", "generateName"]));
    if !prefix.is_empty() {
        for flaw in kind.rules.check_name(prefix, true) {
            flaws.invalid("metadata.generateName", prefix, &flaw);
        }
    }
    if name.is_empty() {
        flaws.required("metadata.name", "name or generateName is required");
    } else {
        for flaw in kind.rules.check_name(name, false) {
            flaws.invalid("metadata.name", name, &flaw);
        }
    }
    check_common(kind, object, flaws);
    check_finalizer_names(object, flaws);
}

/// Finalizers of these kinds say who they belong to.
fn check_finalizer_names(object: &Value, flaws: &mut FieldErrors) {
    for (index, finalizer) in texts(object, &["metadata", "finalizers"]).enumerate() {
        if !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            flaws.invalid(format!("metadata.finalizers[{index}]"), finalizer, detail);
        }
    }
}

/// What is asked of all objects, whatever their kind says.
fn check_common(kind: &Kind, object: &Value, flaws: &mut FieldErrors) {
    if !kind.namespaced && !text(object, &["metadata", "namespace"]).is_empty() {
        flaws.forbidden("metadata.namespace", "not allowed on this type");
    }
    check_notes(object, flaws);
    check_finalizers(object, flaws);
}

/// Labels, annotations and owners.
fn check_notes(object: &Value, flaws: &mut FieldErrors) {
    check_labels(entries(object, &["metadata", "labels"]), "metadata.labels", flaws);
    let mut bytes = 0;
    for (key, value) in entries(object, &["metadata", "annotations"]) {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        for flaw in names::qualified(&key.to_lowercase()) {
            flaws.invalid("metadata.annotations", key, &flaw);
        }
    }
    if bytes > ANNOTATION_BYTES {
        flaws.too_long("metadata.annotations", ANNOTATION_BYTES);
    }
    check_owners(list(object, &["metadata", "ownerReferences"]), flaws);
}

/// Looks for flaws in labels.
pub fn check_labels<'a>(labels: impl Iterator<Item = (&'a str, &'a Value)>, path: &str, flaws: &mut FieldErrors) {
    for (key, value) in labels {
        for flaw in names::qualified(key) {
            flaws.invalid(path, key, &flaw);
        }
        let value = value.as_str().unwrap_or_default();
        for flaw in names::label_value(value) {
            flaws.invalid(path, value, &flaw);
        }
    }
}

fn check_owners(owners: &[Value], flaws: &mut FieldErrors) {
    const PATH: &str = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    for owner in owners {
        let [api_version, kind, name, uid] = ["apiVersion", "kind", "name", "uid"].map(|field| text(owner, &[field]));
        let version = match api_version.split_once('/') {
            None => api_version,
            Some((_, version)) if !version.contains('/') => version,
            Some(_) => "",
        };
        if version.is_empty() {
            flaws.invalid(format!("{PATH}.apiVersion"), api_version, "version must not be empty");
        }
        for (field, value) in [("kind", kind), ("name", name), ("uid", uid)] {
            if value.is_empty() {
                flaws.invalid(format!("{PATH}.{field}"), value, "must not be empty");
            }
        }
        if (api_version, kind) == ("v1", "Event") {
            flaws.invalid_text(PATH, &go_diff::owner(owner), "/v1, Kind=Event is disallowed from being an owner");
        }
        if at(owner, &["controller"]) != Some(&Value::Bool(true)) {
            continue;
        }
        let this = format!("{kind}/{name}");
        match &controller {
            Some(first) => {
                let detail = "Only one reference can have Controller set to true. Found \"true\" in references for";
                flaws.invalid_text(PATH, &go_diff::owners(owners), &format!("{detail} {first} and {this}"));
            }
            None => controller = Some(this),
        }
    }
}

fn check_finalizers(object: &Value, flaws: &mut FieldErrors) {
    let finalizers = list(object, &["metadata", "finalizers"]);
    for finalizer in texts(object, &["metadata", "finalizers"]) {
        for flaw in names::qualified(finalizer) {
            flaws.invalid("metadata.finalizers", finalizer, &flaw);
        }
    }
    if ["orphan", "foregroundDeletion"].iter().all(|name| finalizers.iter().any(|one| one == name)) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        flaws.invalid("metadata.finalizers", finalizers.to_vec(), detail);
    }
}

/// What a kind's own rules look at when the metadata of an object has changed, after what is looked at for all kinds. FieldErrors that both
/// find are told twice, as upstream does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// At nothing.
    Nothing,
    /// At the change.
    Change,
    /// At the new state, as if the object were new.
    Whole,
    /// At the new state, twice.
    Twice,
    /// At both.
    Both,
}

/// Looks for changes of metadata that may not be.
pub fn check_change(kind: &Kind, new: &Value, old: &Value, care: Care, flaws: &mut FieldErrors) {
    check_common(kind, new, flaws);
    changes(new, old, flaws);
    if matches!(care, Care::Change | Care::Both) {
        changes(new, old, flaws);
        check_finalizer_names(new, flaws);
    }
    if matches!(care, Care::Whole | Care::Twice | Care::Both) {
        check(kind, new, flaws);
    }
    if care == Care::Twice {
        check(kind, new, flaws);
    }
}

fn changes(new: &Value, old: &Value, flaws: &mut FieldErrors) {
    if at(old, &["metadata", "deletionTimestamp"]).is_some() {
        let before: BTreeSet<&str> = texts(old, &["metadata", "finalizers"]).collect();
        let now: BTreeSet<&str> = texts(new, &["metadata", "finalizers"]).collect();
        let added: Vec<String> = now.difference(&before).map(|name| format!("{name:?}")).collect();
        if !added.is_empty() {
            let detail = "no new finalizers can be added if the object is being deleted, found new finalizers";
            flaws.forbidden("metadata.finalizers", &format!("{detail} []string{{{}}}", added.join(", ")));
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let path = ["metadata", field];
        if at(new, &path) != at(old, &path) {
            let value = at(new, &path).cloned().unwrap_or_default();
            flaws.invalid(format!("metadata.{field}"), value, "field is immutable");
        }
    }
    check_notes(new, flaws);
}

/// Takes out owner references that are there twice; answers their UIDs.
pub fn without_double_owners(object: &mut Value) -> Vec<String> {
    let Some(owners) = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) else {
        return Vec::new();
    };
    let (mut kept, mut doubled): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            doubled.push(text(&owner, &["uid"]).to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    doubled
}
