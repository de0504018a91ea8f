//! JSON merge patches.

use serde_json::{Map, Value};

use super::{PatchError, Patched, words};
use crate::decode::untyped;

pub(super) fn patch(live: &Value, text: &[u8], checks: bool) -> Result<Patched, PatchError> {
    let bad = || PatchError::BadRequest("Invalid JSON Patch".to_owned());
    let (patch, flaws) = untyped(text).map_err(|error| match checks {
        true => PatchError::BadRequest(format!("error decoding patch: {error}")),
        false => bad(),
    })?;
    let value = match patch {
        Value::Object(patch) => match live {
            Value::Object(live) => Value::Object(merged(live, patch)),
            _ => Value::Object(pruned(patch)),
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
            new => {
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
        value => (key, value),
    })
    .collect()
}
