//! Access to fields of objects in JSON.

use std::collections::BTreeMap;

use bindery_model::Quantity;
use serde_json::Value;

/// The string at a path such as `/spec/volumeName`.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    object.pointer(path).and_then(Value::as_str)
}

/// The string at a path, or the empty string.
pub(crate) fn text_or_empty<'a>(object: &'a Value, path: &str) -> &'a str {
    text(object, path).unwrap_or_default()
}

/// A map of strings, such as labels or parameters.
pub(crate) fn texts(object: &Value, path: &str) -> BTreeMap<String, String> {
    let entries = object.pointer(path).and_then(Value::as_object).into_iter().flatten();
    entries.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// A list of strings, such as access modes.
pub(crate) fn list(object: &Value, path: &str) -> Vec<String> {
    let items = object.pointer(path).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// A quantity in bytes, rounded up; `None` if it is missing or invalid.
pub(crate) fn bytes(object: &Value, path: &str) -> Option<i64> {
    let written = match object.pointer(path)? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let quantity: Quantity = written.parse().ok()?;
    Some(i64::try_from(quantity.units()).unwrap_or(i64::MAX))
}

/// The storage that a claim requests, in bytes.
pub(crate) fn requested(claim: &Value) -> Option<i64> {
    bytes(claim, "/spec/resources/requests/storage")
}

/// Whether the volume mode is Block.
pub(crate) fn is_block(object: &Value) -> bool {
    text(object, "/spec/volumeMode") == Some("Block")
}

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    list(object, "/metadata/finalizers").iter().any(|present| present == finalizer)
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    text(object, "/metadata/deletionTimestamp").is_some()
}
