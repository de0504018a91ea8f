//! JSON merge patches.

use serde_json::{Map, Value};

use super::{PatchError, Patched, words};
use crate::Schema;
use crate::decode::{read_field, untyped};
use crate::schema::Struct;

pub(super) fn patch(live: &Value, text: &[u8], checks: bool) -> Result<Patched, PatchError> {
    let bad = || PatchError::BadRequest("Invalid JSON Patch".to_owned());
    let (patch, flaws) = untyped(text).map_err(|error| match checks {
        true => PatchError::BadRequest(format!("error decoding patch: {error}")),
        false => bad(),
    })?;
    let value = match patch {
        Value::Object(patch) => match live.as_object() {
            Some(live) => Value::Object(merged(live, patch)),
            None => Value::Object(pruned(patch)),
        },
        Value::Null => return Err(bad()),
        other if checks => {
            let given = words::json_type(&other);
            let message = format!(
                "error decoding patch: json: cannot unmarshal {given} into Go value of type map[string]interface {{}}"
            );
            return Err(PatchError::BadRequest(message));
        }
        Value::Array(list) => Value::Array(list),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(bad()),
    };
    Ok(Patched { value, flaws })
}

/// The patched object in canonical form, if nothing at all is wrong with the patch. Only what it touches is read, because `live` is in
/// canonical form already; most writes are such patches.
pub(super) fn quick(schema: &Schema, live: &Value, text: &[u8]) -> Option<Value> {
    let (Value::Object(patch), flaws) = untyped(text).ok()? else { return None };
    if !flaws.is_empty() {
        return None;
    }
    quickly(schema.root(), live.as_object()?, patch).map(Value::Object)
}

fn quickly(
    of: &'static Struct,
    live: &Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Option<Map<String, Value>> {
    let mut outcome = Map::new();
    for (key, old) in live {
        let value = match patch.remove(key) {
            None => Some(old.clone()),
            Some(Value::Null) => None,
            Some(new) => touched(of, key, Some(old), new)?,
        };
        outcome.extend(value.map(|value| (key.clone(), value)));
    }
    for (key, new) in patch {
        let value = if new.is_null() { None } else { touched(of, &key, None, new)? };
        outcome.extend(value.map(|value| (key, value)));
    }
    for place in &of.always {
        let field = &of.fields[usize::from(*place)];
        if !outcome.contains_key(field.name) {
            outcome.insert(field.name.to_owned(), field.zero());
        }
    }
    Some(outcome)
}

/// A field with something new in it. None if something is wrong with it; and then None if it is not printed.
fn touched(of: &'static Struct, name: &str, old: Option<&Value>, new: Value) -> Option<Option<Value>> {
    let (_, field) = of.find(name)?;
    let value = match (old, new) {
        (Some(Value::Object(old)), Value::Object(new)) => match field.shape.as_struct() {
            Some(inner) => return quickly(inner, old, new).map(|map| Some(Value::Object(map))),
            None => Value::Object(merged(old, new)),
        },
        (_, Value::Object(new)) => Value::Object(pruned(new)),
        (_, new) => new,
    };
    read_field(of, field, value)
}

/// The object with the patch applied; what the patch replaces is never copied.
fn merged(live: &Map<String, Value>, mut patch: Map<String, Value>) -> Map<String, Value> {
    let mut outcome = Map::new();
    for (key, old) in live {
        let value = match (patch.remove(key), old) {
            (None, old) => old.clone(),
            (Some(Value::Null), _) => continue,
            (Some(Value::Object(new)), Value::Object(old)) => Value::Object(merged(old, new)),
            (Some(Value::Object(new)), _) => Value::Object(pruned(new)),
            (Some(new), _) => new,
        };
        outcome.insert(key.clone(), value);
    }
    for (key, new) in patch {
        match new {
            Value::Null => {}
            Value::Object(new) => {
                outcome.insert(key, Value::Object(pruned(new)));
            }
            new @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                outcome.insert(key, new);
            }
        }
    }
    outcome
}

/// A patch where there was nothing: its nulls ask for nothing.
fn pruned(patch: Map<String, Value>) -> Map<String, Value> {
    let kept = patch.into_iter().filter(|(_, value)| !value.is_null());
    kept.map(|(key, value)| match value {
        Value::Object(inner) => (key, Value::Object(pruned(inner))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => (key, value),
    })
    .collect()
}
