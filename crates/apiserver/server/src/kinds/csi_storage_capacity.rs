//! CSIStorageCapacity.

use super::selectors::validate_label_selector;
use super::{
    Behavior, Column, DEFAULT_BEHAVIOR, DEFAULT_KIND, Kind, NAME, PrintContext, Strategy, WriteContext, print,
};
use crate::field_errors::FieldErrors;
use crate::names;
use crate::value::{at, text};
use bindery_model::Quantity;
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    kind: "CSIStorageCapacity",
    plural: "csistoragecapacities",
    namespaced: true,
    columns: &[
        NAME,
        Column {
            name: "Created At",
            kind: "date",
            format: "",
            description: "When the object was created.",
            priority: 0,
        },
    ],
    cells,
    strategy: &Capacity,
    behavior: Behavior { unconditional_update: false, ..DEFAULT_BEHAVIOR },
    ..DEFAULT_KIND
};

fn cells(object: &Value, _context: &PrintContext<'_>) -> Vec<Value> {
    vec![print::name(object), text(object, &["metadata", "creationTimestamp"]).into()]
}

#[derive(Debug)]
struct Capacity;

impl Strategy for Capacity {
    fn prepare_for_update(&self, _new: &mut Value, _old: &Value, _context: &WriteContext<'_>) {}

    fn validate(&self, object: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        if let Some(selector) = at(object, &["nodeTopology"]) {
            validate_label_selector(selector, "nodeTopology", errors);
        }
        let class = text(object, &["storageClassName"]);
        for error in names::subdomain(class, false) {
            errors.invalid("storageClassName", class, &error);
        }
        let capacity = text(object, &["capacity"]);
        if capacity.parse::<Quantity>().is_ok_and(|quantity| quantity < *Quantity::zero()) {
            errors.invalid("capacity", capacity, "must be greater than or equal to 0");
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _context: &WriteContext<'_>, errors: &mut FieldErrors) {
        for field in ["nodeTopology", "storageClassName"] {
            let now = at(new, &[field]);
            if now != at(old, &[field]) {
                errors.invalid(field, now.cloned().unwrap_or_default(), "field is immutable");
            }
        }
    }
}
