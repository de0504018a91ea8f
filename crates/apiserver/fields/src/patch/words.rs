//! How Go shows values, and what its converter says of values that do not fit.

use serde_json::Value;

use crate::Schema;
use crate::schema::{Plain, Shape};

/// What Go's decoder calls a value.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What Go's decoder says of an outcome that is no object at all.
pub(super) fn no_type_meta(value: &Value) -> String {
    let go_type =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    format!("json: cannot unmarshal {} into Go value of type {go_type}", json_type(value))
}

/// A value as Go's `%v` shows it.
pub(crate) fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(list) => format!("[{}]", list.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let mut parts: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", go_value(value))).collect();
            parts.sort_unstable();
            format!("map[{}]", parts.join(" "))
        }
    }
}

/// A value as Go's `%s` shows it.
pub(super) fn go_text(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("%!s(float64={number})"),
        Value::Number(number) => format!("%!s(int64={number})"),
        Value::Bool(is) => format!("%!s(bool={is})"),
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::String(_) | Value::Array(_) | Value::Object(_) => go_value(value),
    }
}

/// Go's kinds of untyped values.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// What the converter from untyped values to structs, which strategic merge patches end in, says of the first thing that does not fit.
/// It has other words than the decoder.
pub(super) fn unconvertible(schema: &Schema, value: &Value) -> Option<String> {
    unfit(&schema.shape(), value)
}

fn unfit(shape: &Shape, value: &Value) -> Option<String> {
    let kind = go_kind(value);
    match (shape, value) {
        (_, Value::Null) => None,
        (Shape::Struct { .. }, Value::Object(map)) => {
            let of = shape.as_struct()?;
            map.iter().find_map(|(name, value)| unfit(&of.find(name)?.1.shape, value))
        }
        (Shape::Struct { .. }, _) => Some(format!("cannot restore struct from: {kind}")),
        (Shape::Map { value: inner, .. }, Value::Object(map)) => map.values().find_map(|value| unfit(inner, value)),
        (Shape::Map { .. }, _) => Some(format!("cannot restore map from {kind}")),
        (Shape::List { item, .. }, Value::Array(list)) => list.iter().find_map(|value| unfit(item, value)),
        (Shape::List { .. }, _) => Some(format!("cannot restore slice from {kind}")),
        (Shape::Plain(plain), _) => {
            let wanted = match (plain, value) {
                (Plain::Text, Value::String(_))
                | (Plain::Bool, Value::Bool(_))
                | (Plain::Int32 | Plain::Int64, Value::Number(_)) => return None,
                (Plain::Text, _) => "string",
                (Plain::Bool, _) => "bool",
                (Plain::Int32, _) => "int32",
                (Plain::Int64, _) => "int64",
                (
                    Plain::Quantity | Plain::IntOrText | Plain::Time | Plain::MicroTime | Plain::Bytes | Plain::Any,
                    _,
                ) => return None,
            };
            Some(format!("cannot convert {kind} to {wanted}"))
        }
    }
}
