//! Validation of metadata, for all kinds.

use crate::field_errors::FieldErrors;
use crate::go_diff;
use crate::kinds::Kind;
use crate::names;
use crate::value::{at, entries, list, text, texts};
use serde_json::Value;
use std::collections::BTreeSet;

const ANNOTATION_BYTES: usize = 256 << 10;

/// Validates the metadata of an object.
pub fn validate(kind: &Kind, object: &Value, errors: &mut FieldErrors) {
    let (name, prefix) = (text(object, &["metadata", "name"]), text(object, &["metadata", "generateName"]));
    if !prefix.is_empty() {
        for error in kind.strategy.validate_name(prefix, true) {
            errors.invalid("metadata.generateName", prefix, &error);
        }
    }
    if name.is_empty() {
        errors.required("metadata.name", "name or generateName is required");
    } else {
        for error in kind.strategy.validate_name(name, false) {
            errors.invalid("metadata.name", name, &error);
        }
    }
    validate_common(kind, object, errors);
    validate_finalizer_names(object, errors);
}

/// Finalizers need a domain, except for the standard ones.
fn validate_finalizer_names(object: &Value, errors: &mut FieldErrors) {
    for (index, finalizer) in texts(object, &["metadata", "finalizers"]).enumerate() {
        if !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(format!("metadata.finalizers[{index}]"), finalizer, detail);
        }
    }
}

/// Validates what is common to all kinds.
fn validate_common(kind: &Kind, object: &Value, errors: &mut FieldErrors) {
    if !kind.namespaced && !text(object, &["metadata", "namespace"]).is_empty() {
        errors.forbidden("metadata.namespace", "not allowed on this type");
    }
    validate_labels_annotations_owners(object, errors);
    validate_finalizers(object, errors);
}

/// Labels, annotations and owners.
fn validate_labels_annotations_owners(object: &Value, errors: &mut FieldErrors) {
    validate_labels(entries(object, &["metadata", "labels"]), "metadata.labels", errors);
    let mut bytes = 0;
    for (key, value) in entries(object, &["metadata", "annotations"]) {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        for error in names::qualified(&key.to_lowercase()) {
            errors.invalid("metadata.annotations", key, &error);
        }
    }
    if bytes > ANNOTATION_BYTES {
        errors.too_long("metadata.annotations", ANNOTATION_BYTES);
    }
    validate_owners(list(object, &["metadata", "ownerReferences"]), errors);
}

/// Validates labels.
pub fn validate_labels<'a>(labels: impl Iterator<Item = (&'a str, &'a Value)>, path: &str, errors: &mut FieldErrors) {
    for (key, value) in labels {
        for error in names::qualified(key) {
            errors.invalid(path, key, &error);
        }
        let value = value.as_str().unwrap_or_default();
        for error in names::label_value(value) {
            errors.invalid(path, value, &error);
        }
    }
}

fn validate_owners(owners: &[Value], errors: &mut FieldErrors) {
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
            errors.invalid(format!("{PATH}.apiVersion"), api_version, "version must not be empty");
        }
        for (field, value) in [("kind", kind), ("name", name), ("uid", uid)] {
            if value.is_empty() {
                errors.invalid(format!("{PATH}.{field}"), value, "must not be empty");
            }
        }
        if (api_version, kind) == ("v1", "Event") {
            errors.invalid_text(PATH, &go_diff::owner(owner), "/v1, Kind=Event is disallowed from being an owner");
        }
        if at(owner, &["controller"]) != Some(&Value::Bool(true)) {
            continue;
        }
        let this = format!("{kind}/{name}");
        match &controller {
            Some(first) => {
                let detail = "Only one reference can have Controller set to true. Found \"true\" in references for";
                errors.invalid_text(PATH, &go_diff::owners(owners), &format!("{detail} {first} and {this}"));
            }
            None => controller = Some(this),
        }
    }
}

fn validate_finalizers(object: &Value, errors: &mut FieldErrors) {
    let finalizers = list(object, &["metadata", "finalizers"]);
    for finalizer in texts(object, &["metadata", "finalizers"]) {
        for error in names::qualified(finalizer) {
            errors.invalid("metadata.finalizers", finalizer, &error);
        }
    }
    if ["orphan", "foregroundDeletion"].iter().all(|name| finalizers.iter().any(|one| one == name)) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.invalid("metadata.finalizers", finalizers.to_vec(), detail);
    }
}

/// Which checks a kind adds when the metadata of an object is updated, after those for all kinds.
/// Errors that both find are reported twice, as upstream does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataValidation {
    /// None.
    Skip,
    /// The checks for an update.
    Update,
    /// The checks for a new object.
    Create,
    /// The checks for a new object, twice.
    CreateTwice,
    /// The checks for an update and for a new object.
    UpdateAndCreate,
}

/// Validates an update of metadata.
pub fn validate_update(
    kind: &Kind,
    new: &Value,
    old: &Value,
    metadata_validation: MetadataValidation,
    errors: &mut FieldErrors,
) {
    validate_common(kind, new, errors);
    changes(new, old, errors);
    if matches!(metadata_validation, MetadataValidation::Update | MetadataValidation::UpdateAndCreate) {
        changes(new, old, errors);
        validate_finalizer_names(new, errors);
    }
    if matches!(
        metadata_validation,
        MetadataValidation::Create | MetadataValidation::CreateTwice | MetadataValidation::UpdateAndCreate
    ) {
        validate(kind, new, errors);
    }
    if metadata_validation == MetadataValidation::CreateTwice {
        validate(kind, new, errors);
    }
}

fn changes(new: &Value, old: &Value, errors: &mut FieldErrors) {
    if at(old, &["metadata", "deletionTimestamp"]).is_some() {
        let before: BTreeSet<&str> = texts(old, &["metadata", "finalizers"]).collect();
        let now: BTreeSet<&str> = texts(new, &["metadata", "finalizers"]).collect();
        let added: Vec<String> = now.difference(&before).map(|name| format!("{name:?}")).collect();
        if !added.is_empty() {
            let detail = "no new finalizers can be added if the object is being deleted, found new finalizers";
            errors.forbidden("metadata.finalizers", &format!("{detail} []string{{{}}}", added.join(", ")));
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let path = ["metadata", field];
        if at(new, &path) != at(old, &path) {
            let value = at(new, &path).cloned().unwrap_or_default();
            errors.invalid(format!("metadata.{field}"), value, "field is immutable");
        }
    }
    validate_labels_annotations_owners(new, errors);
}

/// Removes duplicate owner references, and returns their UIDs.
pub fn remove_duplicate_owners(object: &mut Value) -> Vec<String> {
    let Some(owners) = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) else {
        return Vec::new();
    };
    let (mut load_or_create, mut duplicates): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for owner in owners.drain(..) {
        if load_or_create.contains(&owner) {
            duplicates.push(text(&owner, &["uid"]).to_owned());
        } else {
            load_or_create.push(owner);
        }
    }
    *owners = load_or_create;
    duplicates
}
