//! Namespace. It goes in two steps: it is marked and emptied, and then its own finalizer is taken off through `/finalize`.

use super::{
    AGE, Kind, MANNERS, Manners, NAME, Rules, Scene, Selectable, Sight, Subresource, column, print, status_of,
};
use crate::invalid::FieldErrors;
use crate::names;
use crate::value::{copy, list, set, set_absent, text};
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short_names: &["ns"],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    subresources: &[
        Subresource { name: "finalize", kind: ("", "v1", "Namespace"), verbs: &["update"] },
        status_of("", "Namespace"),
    ],
    columns: &[NAME, column("Status", "Whether it lives."), AGE],
    cells,
    space: "namespaces",
    rules: &Namespace,
    manners: Manners { shows_deleted: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    vec![print::name(object), text(object, &["status", "phase"]).into(), print::age(object, sight)]
}

#[derive(Debug)]
struct Namespace;

impl Rules for Namespace {
    fn fill_in(&self, object: &mut Value) {
        let name = text(object, &["metadata", "name"]).to_owned();
        if !name.is_empty() {
            set(object, &["metadata", "labels", "kubernetes.io/metadata.name"], name);
        }
    }

    fn prepare(&self, object: &mut Value, _scene: &Scene<'_>) {
        set(object, &["status"], serde_json::json!({"phase": "Active"}));
        let mut finalizers = list(object, &["spec", "finalizers"]).to_vec();
        if !finalizers.iter().any(|one| one == "kubernetes") {
            finalizers.push("kubernetes".into());
        }
        set(object, &["spec", "finalizers"], finalizers);
        // A name that was generated is known only now.
        self.fill_in(object);
    }

    fn prepare_change(&self, new: &mut Value, old: &Value, scene: &Scene<'_>) {
        match scene.subresource {
            "finalize" => copy(old, new, &["status"]),
            "status" => {
                copy(old, new, &["spec"]);
                set_absent(new, &["status", "phase"], "Active");
            }
            _ => {
                copy(old, new, &["spec"]);
                copy(old, new, &["status"]);
            }
        }
    }

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        check_finalizers(object, false, flaws);
    }

    fn check_change(&self, new: &Value, _old: &Value, scene: &Scene<'_>, flaws: &mut FieldErrors) {
        match scene.subresource {
            "finalize" => check_finalizers(new, true, flaws),
            "status" => check_phase(new, flaws),
            _ => {}
        }
    }

    fn check_name(&self, name: &str, prefix: bool) -> Vec<String> {
        names::label(name, prefix)
    }

    fn selectable(&self) -> &'static [Selectable] {
        &[("status.phase", |object| text(object, &["status", "phase"]).to_owned())]
    }
}

/// Finalizers are looked at one by one, but only some are told which one it was.
fn check_finalizers(object: &Value, numbered: bool, flaws: &mut FieldErrors) {
    for (index, finalizer) in list(object, &["spec", "finalizers"]).iter().filter_map(Value::as_str).enumerate() {
        let path = if numbered { format!("spec.finalizers[{index}]") } else { "spec.finalizers".to_owned() };
        for flaw in names::qualified(finalizer) {
            flaws.invalid(path.as_str(), finalizer, &flaw);
        }
        if !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion") {
            flaws.invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified");
        }
    }
}

fn check_phase(object: &Value, flaws: &mut FieldErrors) {
    let phase = text(object, &["status", "phase"]);
    let deleting = object.pointer("/metadata/deletionTimestamp").is_some();
    if deleting && phase != "Terminating" {
        flaws.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
    } else if !deleting && phase != "Active" {
        flaws.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
    }
}
