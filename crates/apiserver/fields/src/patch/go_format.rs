//! How Go formats values, and the errors of its converter from untyped values.

use serde_json::Value;

use crate::schema::{Scalar, Shape};

/// The name of a JSON type in Go's decoder.
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

/// The error of Go's decoder for a value of the wrong type.
pub(super) fn unmarshal_error(value: &Value, go_type: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {go_type}", json_type(value))
}

/// A value as Go's `%v` formats it.
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

/// A value as Go's `%s` formats it.
pub(super) fn go_text(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("%!s(float64={number})"),
        Value::Number(number) => format!("%!s(int64={number})"),
        Value::Bool(is) => format!("%!s(bool={is})"),
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::String(_) | Value::Array(_) | Value::Object(_) => go_value(value),
    }
}

/// The name of a value's kind in Go's `reflect` package.
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

/// The first error of upstream's converter from untyped values to structs, which strategic merge
/// patches use. Its messages differ from the decoder's.
pub(super) fn conversion_error(shape: &Shape, value: &Value) -> Option<String> {
    let kind = go_kind(value);
    match (shape, value) {
        (_, Value::Null) => None,
        (Shape::Struct { .. }, Value::Object(map)) => {
            let of = shape.as_struct()?;
            map.iter().find_map(|(name, value)| conversion_error(&of.find(name)?.1.shape, value))
        }
        (Shape::Struct { .. }, _) => Some(format!("cannot restore struct from: {kind}")),
        (Shape::Map { value: inner, .. }, Value::Object(map)) => {
            map.values().find_map(|value| conversion_error(inner, value))
        }
        (Shape::Map { .. }, _) => Some(format!("cannot restore map from {kind}")),
        (Shape::List { item, .. }, Value::Array(list)) => list.iter().find_map(|value| conversion_error(item, value)),
        (Shape::List { .. }, _) => Some(format!("cannot restore slice from {kind}")),
        (Shape::Scalar(scalar), _) => {
            let wanted = match (scalar, value) {
                (Scalar::String, Value::String(_))
                | (Scalar::Bool, Value::Bool(_))
                | (Scalar::Int32 | Scalar::Int64, Value::Number(_)) => return None,
                (Scalar::String, _) => "string",
                (Scalar::Bool, _) => "bool",
                (Scalar::Int32, _) => "int32",
                (Scalar::Int64, _) => "int64",
                (
                    Scalar::Quantity
                    | Scalar::IntOrString
                    | Scalar::Time
                    | Scalar::MicroTime
                    | Scalar::Bytes
                    | Scalar::Any,
                    _,
                ) => return None,
            };
            Some(format!("cannot convert {kind} to {wanted}"))
        }
    }
}
