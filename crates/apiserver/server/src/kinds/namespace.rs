//! Namespace. Its deletion has two steps: it is marked and emptied, and then its finalizer is
//! removed through `/finalize`.

use super::{
    AGE, Behavior, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Selectable, Strategy, Subresource,
    WriteContext, column, print, status_of,
};
use crate::field_errors::FieldErrors;
use crate::names;
use crate::value::{copy, list, set, set_if_absent, text};
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    kind: "Namespace",
    plural: "namespaces",
    short_names: &["ns"],
    verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    subresources: &[
        Subresource { name: "finalize", kind: ("", "v1", "Namespace"), verbs: &["update"] },
        status_of("", "Namespace"),
    ],
    columns: &[NAME, column("Status", "The phase of the namespace."), AGE],
    cells,
    strategy: &Namespace,
    behavior: Behavior { shows_deleted: true, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    vec![print::name(object), text(object, &["status", "phase"]).into(), print::age(object, context)]
}

#[derive(Debug)]
struct Namespace;

impl Strategy for Namespace {
    fn set_defaults(&self, object: &mut Value) {
        let name = text(object, &["metadata", "name"]).to_owned();
        if !name.is_empty() {
            set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
        }
    }

    fn prepare_for_create(&self, object: &mut Value, _context: &WriteContext<'_>) {
        set(object, &["status"], serde_json::json!({"phase": "Active"}));
        let mut finalizers = list(object, &["spec", "finalizers"]).to_vec();
        if !finalizers.iter().any(|one| one == "kubernetes") {
            finalizers.push("kubernetes".into());
        }
        set(object, &["spec", "finalizers"], finalizers);
        // A generated name is only known now.
        self.set_defaults(object);
    }

    fn prepare_for_update(&self, new: &mut Value, old: &Value, context: &WriteContext<'_>) {
        match context.subresource {
            "finalize" => copy(old, new, &["status"]),
            "status" => {
                copy(old, new, &["spec"]);
                set_if_absent(new, &["status", "phase"], "Active");
            }
            _ => {
                copy(old, new, &["spec"]);
                copy(old, new, &["status"]);
            }
        }
    }

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        validate_finalizers(object, false, errors);
    }

    fn validate_update(&self, new: &Value, _old: &Value, context: &WriteContext<'_>, errors: &mut FieldErrors) {
        match context.subresource {
            "finalize" => validate_finalizers(new, true, errors),
            "status" => validate_phase(new, errors),
            _ => {}
        }
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        names::label(name, prefix)
    }

    fn selectable_fields(&self) -> &'static [Selectable] {
        &[("status.phase", |object| text(object, &["status", "phase"]).to_owned())]
    }
}

/// Only updates report the index of an invalid finalizer.
fn validate_finalizers(object: &Value, numbered: bool, errors: &mut FieldErrors) {
    for (index, finalizer) in list(object, &["spec", "finalizers"]).iter().filter_map(Value::as_str).enumerate() {
        let path = if numbered { format!("spec.finalizers[{index}]") } else { "spec.finalizers".to_owned() };
        for error in names::qualified(finalizer) {
            errors.invalid(path.as_str(), finalizer, &error);
        }
        if !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion") {
            errors.invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified");
        }
    }
}

fn validate_phase(object: &Value, errors: &mut FieldErrors) {
    let phase = text(object, &["status", "phase"]);
    let deleting = object.pointer("/metadata/deletionTimestamp").is_some();
    if deleting && phase != "Terminating" {
        errors.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
    } else if !deleting && phase != "Active" {
        errors.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
    }
}
