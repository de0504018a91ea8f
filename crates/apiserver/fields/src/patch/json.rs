//! JSON patches: all operations are applied in order, or none.
//!
//! A few bytes of patch can request a lot of work: each `copy` can double the document, and each
//! insertion shifts a list. A [`Budget`] limits what the operations of one patch do together.

use serde_json::{Map, Value};

use super::{PatchError, Patched, REJECTED, go_format};
use crate::decode::untyped;

/// Upstream's limit.
const OPERATIONS_MAX: usize = 10_000;
/// Upstream's limit for the encoded size of all copied values together.
const COPIED_BYTES_MAX: usize = 3 << 20;
/// How many values are visited or shifted at most: a fraction of a second.
const VALUES_MAX: usize = 20_000_000;
/// The decoder accepts no more levels, so an object with more could not be read again.
const DEPTH_MAX: usize = 127;

pub(super) fn patch(live: &Value, text: &[u8], checks: bool) -> Result<Patched, PatchError> {
    let (operations, strict_errors) = read(text, checks).map_err(|error| match checks {
        true => PatchError::BadRequest(format!("error decoding patch: {error}")),
        false => PatchError::BadRequest(error),
    })?;
    if operations.len() > OPERATIONS_MAX {
        let given = operations.len();
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {given}"
        )));
    }
    let mut value = live.clone();
    let mut budget = Budget { bytes: COPIED_BYTES_MAX, values: VALUES_MAX };
    for operation in operations {
        perform(&mut value, operation, &mut budget).ok_or_else(|| PatchError::Unprocessable(REJECTED.to_owned()))?;
    }
    Ok(Patched { value, strict_errors })
}

/// What the remaining operations of a patch may do.
struct Budget {
    bytes: usize,
    values: usize,
}

impl Budget {
    fn visit(&mut self, values: usize) -> Option<()> {
        self.values = self.values.checked_sub(values)?;
        Some(())
    }

    /// A copy, charged with its encoded size.
    fn copy(&mut self, value: &Value) -> Option<Value> {
        self.charge(value)?;
        Some(value.clone())
    }

    fn charge(&mut self, value: &Value) -> Option<()> {
        self.visit(1)?;
        let bytes = match value {
            Value::Null | Value::Bool(true) => 4,
            Value::Bool(false) => 5,
            Value::Number(number) => number.to_string().len(),
            Value::String(text) => text.len() + 2,
            Value::Array(list) => {
                list.iter().try_for_each(|item| self.charge(item))?;
                2 + list.len().saturating_sub(1)
            }
            Value::Object(map) => {
                map.iter().try_for_each(|(key, value)| {
                    self.bytes = self.bytes.checked_sub(key.len() + 3)?;
                    self.charge(value)
                })?;
                2 + map.len().saturating_sub(1)
            }
        };
        self.bytes = self.bytes.checked_sub(bytes)?;
        Some(())
    }

    /// Checks that a value at a path is not nested too deeply. Everything in a document has passed
    /// this check, so that functions may recurse.
    fn check_depth(&mut self, path: &str, value: &Value) -> Option<()> {
        let levels = DEPTH_MAX.checked_sub(path.matches('/').count())?;
        self.check_levels(value, levels)
    }

    fn check_levels(&mut self, value: &Value, levels: usize) -> Option<()> {
        self.visit(1)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
            Value::Array(list) => {
                let levels = levels.checked_sub(1)?;
                list.iter().try_for_each(|item| self.check_levels(item, levels))
            }
            Value::Object(map) => {
                let levels = levels.checked_sub(1)?;
                map.values().try_for_each(|value| self.check_levels(value, levels))
            }
        }
    }
}

type Operation = Map<String, Value>;

fn read(text: &[u8], checks: bool) -> Result<(Vec<Operation>, Vec<String>), String> {
    let (value, mut strict_errors) = untyped(text)?;
    for error in &mut strict_errors {
        error.insert_str(0, "json patch ");
    }
    let list = match value {
        Value::Array(list) => list,
        Value::Null => Vec::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            let wanted = if checks { "[]handlers.jsonPatchOp" } else { "jsonpatch.Patch" };
            return Err(go_format::unmarshal_error(&other, wanted));
        }
    };
    let mut operations = Vec::with_capacity(list.len());
    for (position, item) in list.into_iter().enumerate() {
        let operation = match item {
            Value::Object(operation) => operation,
            Value::Null => Map::new(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                let wanted = if checks { "handlers.jsonPatchOp" } else { "jsonpatch.Operation" };
                return Err(go_format::unmarshal_error(&other, wanted));
            }
        };
        for (name, value) in &operation {
            match name.as_str() {
                "value" => {}
                "op" | "path" | "from" if !checks || value.is_string() || value.is_null() => {}
                "op" | "path" | "from" => {
                    let given = go_format::json_type(value);
                    return Err(format!(
                        "json: cannot unmarshal {given} into Go struct field jsonPatchOp.{name} of type string"
                    ));
                }
                unknown => {
                    strict_errors.push(format!("json patch unknown field {:?}", format!("[{position}].{unknown}")))
                }
            }
        }
        operations.push(operation);
    }
    Ok((operations, strict_errors))
}

/// `None` if the operation cannot be performed.
fn perform(document: &mut Value, mut operation: Operation, budget: &mut Budget) -> Option<()> {
    let value = operation.remove("value").unwrap_or(Value::Null);
    let path = operation.get("path").and_then(Value::as_str)?;
    let from = || operation.get("from").and_then(Value::as_str);
    match operation.get("op").and_then(Value::as_str)? {
        "add" => add(document, path, value, budget),
        "remove" => take(document, path, budget).map(drop),
        "replace" => replace(document, path, value, budget),
        "move" => {
            let value = take(document, from()?, budget)?;
            add(document, path, value, budget)
        }
        "copy" => {
            let value = budget.copy(look(document, from()?)?)?;
            add(document, path, value, budget)
        }
        "test" if path.is_empty() => (*document == value).then_some(()),
        "test" => (*look(document, path)? == value).then_some(()),
        _ => None,
    }
}

/// The list or map that a path ends in, and the last part of the path.
fn container<'a>(document: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let mut parts = path.split('/').skip(1).peekable();
    let mut at = document;
    loop {
        let part = parts.next()?.replace("~1", "/").replace("~0", "~");
        if parts.peek().is_none() {
            return (at.is_object() || at.is_array()).then_some((at, part));
        }
        at = match at {
            Value::Object(map) => map.get_mut(&part)?,
            Value::Array(list) => {
                let position = position(&part, list.len())?;
                list.get_mut(position)?
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
}

/// A list index; negative ones count from `length`.
fn position(part: &str, length: usize) -> Option<usize> {
    let index: i64 = part.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index + length } else { index };
    usize::try_from(index).ok()
}

/// The value at a path; null if a map does not have the key.
fn look<'a>(document: &'a mut Value, path: &str) -> Option<&'a Value> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(map) => Some(map.get(&key).unwrap_or(&Value::Null)),
        Value::Array(list) => list.get(position(&key, list.len())?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn take(document: &mut Value, path: &str, budget: &mut Budget) -> Option<Value> {
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(map) => map.remove(&key),
        Value::Array(list) => {
            let position = position(&key, list.len())?;
            budget.visit(list.len().checked_sub(position)?)?;
            (position < list.len()).then(|| list.remove(position))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn replace(document: &mut Value, path: &str, value: Value, budget: &mut Budget) -> Option<()> {
    budget.check_depth(path, &value)?;
    if path.is_empty() {
        *document = value;
        return Some(());
    }
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(list) => {
            let position = position(&key, list.len())?;
            *list.get_mut(position)? = value;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn add(document: &mut Value, path: &str, value: Value, budget: &mut Budget) -> Option<()> {
    budget.check_depth(path, &value)?;
    let (container, key) = container(document, path)?;
    match container {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let position = position(&key, list.len() + 1)?;
            budget.visit(list.len().checked_sub(position)?)?;
            list.insert(position, value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}
