//! Descriptions of types and fields, as `kubectl explain` shows them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// By type name and field name (empty for the type itself). Written by `table/main.go`.
static DESCRIPTIONS: LazyLock<BTreeMap<String, BTreeMap<String, String>>> =
    LazyLock::new(|| serde_json::from_str(include_str!("descriptions.json")).expect("the file is valid"));

pub(super) fn of_type(name: &str) -> Option<&'static str> {
    of_field(name, "")
}

pub(super) fn of_field(type_name: &str, field: &str) -> Option<&'static str> {
    DESCRIPTIONS.get(type_name)?.get(field).map(String::as_str)
}
