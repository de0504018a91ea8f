//! CSIStorageCapacity.

use super::affinity::check_label_selector;
use super::{ALL_VERBS, Column, Kind, MANNERS, Manners, NAME, Rules, Scene, Sight, print};
use crate::invalid::FieldErrors;
use crate::names;
use crate::value::{at, text};
use bindery_model::Quantity;
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    version: "v1",
    kind: "CSIStorageCapacity",
    plural: "csistoragecapacities",
    singular: "csistoragecapacity",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[],
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
    space: "csistoragecapacities",
    rules: &Capacity,
    manners: Manners { unconditional_update: false, ..MANNERS },
};

fn cells(object: &Value, _sight: &Sight<'_>) -> Vec<Value> {
    vec![print::name(object), text(object, &["metadata", "creationTimestamp"]).into()]
}

#[derive(Debug)]
struct Capacity;

impl Rules for Capacity {
    fn prepare_change(&self, _new: &mut Value, _old: &Value, _scene: &Scene<'_>) {}

    fn check(&self, object: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        if let Some(selector) = at(object, &["nodeTopology"]) {
            check_label_selector(selector, "nodeTopology", flaws);
        }
        let class = text(object, &["storageClassName"]);
        for flaw in names::subdomain(class, false) {
            flaws.invalid("storageClassName", class, &flaw);
        }
        let capacity = text(object, &["capacity"]);
        if capacity.parse::<Quantity>().is_ok_and(|quantity| quantity < *Quantity::zero()) {
            flaws.invalid("capacity", capacity, "must be greater than or equal to 0");
        }
    }

    fn check_change(&self, new: &Value, old: &Value, _scene: &Scene<'_>, flaws: &mut FieldErrors) {
        for field in ["nodeTopology", "storageClassName"] {
            let now = at(new, &[field]);
            if now != at(old, &[field]) {
                flaws.invalid(field, now.cloned().unwrap_or_default(), "field is immutable");
            }
        }
    }
}
