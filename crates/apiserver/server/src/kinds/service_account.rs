//! ServiceAccount.

use super::strategy::DefaultStrategy;
use super::{AGE, ALL_VERBS, Behavior, DEFAULT_BEHAVIOR, Kind, NAME, PrintContext, print};
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
    bucket: "serviceaccounts",
    strategy: &DefaultStrategy,
    behavior: Behavior { shows_deleted: true, ..DEFAULT_BEHAVIOR },
};

fn cells(object: &Value, context: &PrintContext<'_>) -> Vec<Value> {
    vec![print::name(object), print::age(object, context)]
}
