//! Whether an applied object fits the schema. It is not decoded, so this has words of its own.

use serde_json::Value;

use super::walk::element;
use crate::Schema;
use crate::schema::{Plain, Shape, Topology};

/// All that does not fit, in upstream's words.
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
        (Shape::Plain(plain), value) => errors.extend(unfit(*plain, value).map(|error| format!("{path}: {error}"))),
    }
}

fn visit_items(item: &Shape, topology: Topology, list: &[Value], path: &mut String, errors: &mut Vec<String>) {
    let length = path.len();
    let mut seen: Vec<String> = Vec::new();
    for (place, value) in list.iter().enumerate() {
        let element = element(item, topology, value);
        let words = match &element {
            Some(element) => in_words(element),
            None => format!("[{place}]"),
        };
        if let Some(element) = element {
            if seen.contains(&element) {
                errors.push(format!("{path}: duplicate entries for key {words}"));
            }
            seen.push(element);
        }
        path.push_str(&words);
        visit(item, value, path, errors);
        path.truncate(length);
    }
}

fn in_words(element: &str) -> String {
    let mut set = crate::FieldSet::default();
    set.insert(&[element]);
    set.paths().pop().unwrap_or_default()
}

fn unfit(plain: Plain, value: &Value) -> Option<String> {
    let shown = go_value(value);
    match (plain, value) {
        (Plain::Text | Plain::Bytes, Value::String(_))
        | (Plain::Int32 | Plain::Int64, Value::Number(_))
        | (Plain::Bool, Value::Bool(_)) => None,
        (Plain::Text | Plain::Bytes, _) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value)))
        }
        (Plain::Int32 | Plain::Int64, _) => Some(format!("expected numeric (int or float), got {}", go_type(value))),
        (Plain::Bool, _) => Some(format!("expected boolean, got &{{{shown}}}")),
        (Plain::Any, _) => None,
        (Plain::Quantity | Plain::IntOrText | Plain::Time | Plain::MicroTime, Value::Object(_) | Value::Array(_)) => {
            Some(format!("expected any scalar, got &{{{shown}}}"))
        }
        (Plain::Quantity | Plain::IntOrText | Plain::Time | Plain::MicroTime, _) => None,
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

/// A value as Go's `%#v` shows it, as far as it is short.
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
