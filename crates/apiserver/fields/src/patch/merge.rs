//! JSON merge patches.

use serde_json::{Map, Value};

use super::{PatchError, Patched, go_format};
use crate::Schema;
use crate::decode::{read_field, untyped};
use crate::schema::Struct;

pub(super) fn patch(live: &Value, text: &[u8], checks: bool) -> Result<Patched, PatchError> {
    let bad = || PatchError::BadRequest("Invalid JSON Patch".to_owned());
    let (patch, strict_errors) = untyped(text).map_err(|error| match checks {
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
            let error = go_format::unmarshal_error(&other, "map[string]interface {}");
            return Err(PatchError::BadRequest(format!("error decoding patch: {error}")));
        }
        Value::Array(list) => Value::Array(list),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(bad()),
    };
    Ok(Patched { value, strict_errors })
}

/// The patched object in canonical form, if the patch has no errors at all. Only the patched fields
/// are decoded, because `live` is in canonical form; most writes are such patches.
pub(super) fn fast_path(schema: &Schema, live: &Value, text: &[u8]) -> Option<Value> {
    let (Value::Object(patch), strict_errors) = untyped(text).ok()? else { return None };
    if !strict_errors.is_empty() {
        return None;
    }
    merge_struct(schema.root(), live.as_object()?, patch).map(Value::Object)
}

fn merge_struct(
    of: &'static Struct,
    live: &Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Option<Map<String, Value>> {
    let mut outcome = Map::new();
    for (key, old) in live {
        let value = match patch.remove(key) {
            None => Some(old.clone()),
            Some(Value::Null) => None,
            Some(new) => merge_field(of, key, Some(old), new)?,
        };
        outcome.extend(value.map(|value| (key.clone(), value)));
    }
    for (key, new) in patch {
        let value = if new.is_null() { None } else { merge_field(of, &key, None, new)? };
        outcome.extend(value.map(|value| (key, value)));
    }
    for position in &of.always_printed {
        let field = &of.fields[usize::from(*position)];
        if !outcome.contains_key(field.name) {
            outcome.insert(field.name.to_owned(), field.zero());
        }
    }
    Some(outcome)
}

/// The patched value of a field. `None` if it is invalid, `Some(None)` if it is valid but not
/// printed.
fn merge_field(of: &'static Struct, name: &str, old: Option<&Value>, new: Value) -> Option<Option<Value>> {
    let (_, field) = of.find(name)?;
    let value = match (old, new) {
        (Some(Value::Object(old)), Value::Object(new)) => match field.shape.as_struct() {
            Some(inner) => return merge_struct(inner, old, new).map(|map| Some(Value::Object(map))),
            None => Value::Object(merged(old, new)),
        },
        (_, Value::Object(new)) => Value::Object(pruned(new)),
        (_, new) => new,
    };
    read_field(of, field, value)
}

/// Applies a patch, without copying values that the patch replaces.
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

/// A patch for a field that does not exist: its nulls have no effect.
fn pruned(patch: Map<String, Value>) -> Map<String, Value> {
    let kept = patch.into_iter().filter(|(_, value)| !value.is_null());
    kept.map(|(key, value)| match value {
        Value::Object(inner) => (key, Value::Object(pruned(inner))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => (key, value),
    })
    .collect()
}
