//! Descriptions of types and fields, as `kubectl explain` shows them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// By type name and field name (empty for the type itself).
static DESCRIPTIONS: LazyLock<BTreeMap<&str, BTreeMap<&str, String>>> = LazyLock::new(|| {
    let mut descriptions: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
    let mut type_name = "";
    for line in include_str!("descriptions.txt").lines().filter(|line| !line.starts_with('#')) {
        let (name, text) = line.trim_start().split_once(' ').expect("a name and a description");
        let text: String = serde_json::from_str(text).expect("a description is a JSON string");
        let field = if line.starts_with('\t') { name } else { "" };
        if field.is_empty() {
            type_name = name;
        }
        descriptions.entry(type_name).or_default().insert(field, text);
    }
    descriptions
});

pub(super) fn of_type(name: &str) -> Option<&'static str> {
    of_field(name, "")
}

pub(super) fn of_field(type_name: &str, field: &str) -> Option<&'static str> {
    DESCRIPTIONS.get(type_name)?.get(field).map(String::as_str).filter(|text| !text.is_empty())
}
