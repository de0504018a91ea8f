//! Validates an applied object against the schema. It is not decoded first, so upstream's messages
//! differ from those of the decoder.

use serde_json::Value;

use super::walk::element;
use crate::Schema;
use crate::schema::{Scalar, Shape, Topology};

/// All schema errors, with upstream's wording.
pub(super) fn typed(schema: &Schema, applied: &Value) -> Result<(), String> {
    let mut errors = Vec::new();
    visit(&schema.shape(), applied, &mut String::new(), &mut errors);
    match errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => Err(format!("errors:\n  {}", several.join("\n  "))),
    }
}

fn visit(shape: &Shape, value: &Value, path: &mut String, errors: &mut Vec<String>) {
    let length = path.len();
    match (shape, value) {
        (_, Value::Null) => {}
        (Shape::Struct { .. }, Value::Object(map)) => {
            let of = shape.as_struct();
            for (name, value) in map {
                path.push('.');
                path.push_str(name);
                let field = of.and_then(|of| of.find(name));
                match field {
                    Some((_, field)) => visit(&field.shape, value, path, errors),
                    None => errors.push(format!("{path}: field not declared in schema")),
                }
                path.truncate(length);
                if field.is_none() {
                    return;
                }
            }
        }
        (Shape::Map { value: inner, .. }, Value::Object(map)) => {
            for (name, value) in map {
                path.push('.');
                path.push_str(name);
                visit(inner, value, path, errors);
                path.truncate(length);
            }
        }
        (Shape::List { item, topology }, Value::Array(list)) => visit_items(item, *topology, list, path, errors),
        (Shape::Struct { .. } | Shape::Map { .. }, other) => {
            errors.push(format!("{path}: expected map, got &{{{}}}", go_value(other)))
        }
        (Shape::List { .. }, other) => errors.push(format!("{path}: expected list, got &{{{}}}", go_value(other))),
        (Shape::Scalar(scalar), value) => {
            errors.extend(scalar_error(*scalar, value).map(|error| format!("{path}: {error}")))
        }
    }
}

fn visit_items(item: &Shape, topology: Topology, list: &[Value], path: &mut String, errors: &mut Vec<String>) {
    let length = path.len();
    let mut seen: Vec<String> = Vec::new();
    for (position, value) in list.iter().enumerate() {
        let element = element(item, topology, value);
        let shown = match &element {
            Some(element) => display_element(element),
            None => format!("[{position}]"),
        };
        if let Some(element) = element {
            if seen.contains(&element) {
                errors.push(format!("{path}: duplicate entries for key {shown}"));
            }
            seen.push(element);
        }
        path.push_str(&shown);
        visit(item, value, path, errors);
        path.truncate(length);
    }
}

fn display_element(element: &str) -> String {
    let mut set = crate::FieldSet::default();
    set.insert(&[element]);
    set.paths().pop().unwrap_or_default()
}

fn scalar_error(scalar: Scalar, value: &Value) -> Option<String> {
    let shown = go_value(value);
    match (scalar, value) {
        (Scalar::String | Scalar::Bytes, Value::String(_))
        | (Scalar::Int32 | Scalar::Int64, Value::Number(_))
        | (Scalar::Bool, Value::Bool(_)) => None,
        (Scalar::String | Scalar::Bytes, _) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)))
        }
        (Scalar::Int32 | Scalar::Int64, _) => Some(format!("expected numeric (int or float), got {}", go_type(value))),
        (Scalar::Bool, _) => Some(format!("expected boolean, got &{{{shown}}}")),
        (Scalar::Any, _) => None,
        (
            Scalar::Quantity | Scalar::IntOrString | Scalar::Time | Scalar::MicroTime,
            Value::Object(_) | Value::Array(_),
        ) => Some(format!("expected any scalar, got &{{{shown}}}")),
        (Scalar::Quantity | Scalar::IntOrString | Scalar::Time | Scalar::MicroTime, _) => None,
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn go_value(value: &Value) -> String {
    crate::patch::go_value(value)
}

/// A value as Go's `%#v` formats it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let items: Vec<String> = map.iter().map(|(key, value)| format!("{key:?}:{}", go_syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}
