//! ServiceAccount.

use super::rules::Plain;
use super::{AGE, ALL_VERBS, Kind, MANNERS, Manners, NAME, Sight, print};
use serde_json::Value;

pub(crate) static KIND: Kind = Kind {
    group: "",
    version: "v1",
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    singular: "serviceaccount",
    short_names: &["sa"],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[],
    columns: &[NAME, AGE],
    cells,
    space: "serviceaccounts",
    rules: &Plain,
    manners: Manners { shows_deleted: true, ..MANNERS },
};

fn cells(object: &Value, sight: &Sight<'_>) -> Vec<Value> {
    vec![print::name(object), print::age(object, sight)]
}
