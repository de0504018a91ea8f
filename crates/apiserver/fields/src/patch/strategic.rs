//! Strategic merge patches: maps are merged, lists where the schema says so, and directives request
//! other changes.

use serde_json::{Map, Value};

use super::{PatchError, go_format};
use crate::Schema;
use crate::decode::untyped;
use crate::schema::{Field, Shape, Struct};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// How many pairs of list items are compared at most: a fraction of a second. Lists are merged in
/// quadratic time, which only the largest requests could notice.
const COMPARISONS_MAX: usize = 20_000_000;

type Object = Map<String, Value>;

/// How many comparisons the rest of a patch may take.
struct Budget(usize);

impl Budget {
    /// Charges for comparing each item of a list with each of another one.
    fn compare(&mut self, items: usize, with: usize) -> Result<(), PatchError> {
        let left = items.checked_mul(with).and_then(|comparisons| self.0.checked_sub(comparisons));
        self.0 = left.ok_or_else(|| {
            PatchError::TooLarge("The lists in a strategic merge patch have too many items to be merged".to_owned())
        })?;
        Ok(())
    }
}

/// The patch and its duplicate fields.
pub(super) fn read(text: &[u8]) -> Result<(Value, Vec<String>), PatchError> {
    let (patch, strict_errors) = untyped(text).map_err(PatchError::BadRequest)?;
    match patch {
        Value::Null => Ok((Value::Object(Object::new()), strict_errors)),
        Value::Object(_) => Ok((patch, strict_errors)),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(PatchError::BadRequest(go_format::unmarshal_error(&other, "map[string]interface {}")))
        }
    }
}

pub(super) fn patch(schema: &Schema, live: &Value, patch: Value) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else { return Err(bad("invalid JSON document")) };
    let live = live.as_object().cloned().unwrap_or_default();
    merge_map(live, patch, Some(schema.root()), &mut Budget(COMPARISONS_MAX)).map(Value::Object)
}

fn bad(message: &str) -> PatchError {
    PatchError::BadRequest(message.to_owned())
}

fn merge_map(
    mut original: Object,
    mut patch: Object,
    of: Option<&'static Struct>,
    budget: &mut Budget,
) -> Result<Object, PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch, budget)?;
    set_orders(&mut original, &mut patch, of, budget)?;
    for (key, value) in patch {
        if let Some(name) = key.strip_prefix(DELETE_FROM) {
            delete_from(&mut original, name, &value, budget)?;
            continue;
        }
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let field = of.and_then(|of| of.find(&key)).map(|(_, field)| field);
        let merged = match (original.remove(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let shape = field.and_then(|field| field.shape.as_struct());
                Some(Value::Object(merge_map(old, new, shape, budget)?))
            }
            (Some(Value::Array(old)), Value::Array(new)) => match field {
                Some(field) if field.strategy.merge => Some(Value::Array(merge_list(old, new, field, budget)?)),
                _ => Some(Value::Array(new)),
            },
            (_, new) => without_directives(without_nulls(new)),
        };
        if let Some(merged) = merged {
            original.insert(key, merged);
        }
    }
    Ok(original)
}

fn unknown_directive(directive: &Value, patch: &Object) -> PatchError {
    let (directive, patch) = (go_format::go_text(directive), go_format::go_value(&Value::Object(patch.clone())));
    PatchError::Internal(format!("unknown patch type: {directive} in map: {patch}"))
}

fn retain_keys(original: &mut Object, patch: &mut Object, budget: &mut Budget) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || bad("invalid patch format of retainKeys");
    let Value::Array(keys) = keys else { return Err(malformed()) };
    budget.compare(keys.len(), original.len() + patch.len())?;
    let is_kept = |name: &str| keys.iter().any(|key| key == name);
    let is_directive = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !is_kept(name)) {
        return Err(malformed());
    }
    original.retain(|name, _| is_kept(name));
    Ok(())
}

fn delete_from(original: &mut Object, name: &str, values: &Value, budget: &mut Budget) -> Result<(), PatchError> {
    match (original.get_mut(name), values) {
        (Some(Value::Array(old)), Value::Array(values)) => {
            element_kind(&[old, values])?;
            budget.compare(old.len(), values.len())?;
            old.retain(|value| !values.contains(value));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Applies `$setElementOrder` directives, whether or not the patch changes the items of the list.
fn set_orders(
    original: &mut Object,
    patch: &mut Object,
    of: Option<&'static Struct>,
    budget: &mut Budget,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let name = directive.strip_prefix(SET_ORDER).unwrap_or_default();
        let Some(Value::Array(order)) = patch.remove(&directive) else {
            return Err(PatchError::Internal("expected a []interface {}, but received a string".to_owned()));
        };
        let field = of.and_then(|of| of.find(name)).map(|(_, field)| field);
        let Some(field) = field.filter(|field| matches!(field.shape, Shape::List { .. })) else {
            let owner = of.map_or("map", |of| of.name);
            return Err(PatchError::Internal(format!(
                "unable to find api field in struct {owner} for the json field {name:?}"
            )));
        };
        let key = field.strategy.key;
        let new = list_of(patch.remove(name))?;
        let old = list_of(original.get(name).cloned())?;
        let items = old.as_ref().map_or(0, Vec::len) + new.as_ref().map_or(0, Vec::len);
        budget.compare(items, items + order.len())?;
        if let Some(new) = &new {
            check_order(new, &order, key)?;
        }
        let merged = match (old.clone(), new.clone()) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => new.into_iter().filter_map(without_directives).collect(),
            (Some(old), Some(new)) if field.strategy.merge => merge_list(old, new, field, budget)?,
            (Some(_), Some(new)) => new,
        };
        let ordered = reorder(merged, &order, &old.unwrap_or_default(), key)?;
        original.insert(name.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

fn list_of(value: Option<Value>) -> Result<Option<Vec<Value>>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => {
            let given = match other {
                Value::Object(_) => "map[string]interface {}",
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                Value::Number(_) => "int64",
                Value::Null | Value::Array(_) => "%!s(<nil>)",
            };
            Err(PatchError::Internal(format!("expected a []interface {{}}, but received a {given}")))
        }
    }
}

/// The items of a patch must have the order of its `$setElementOrder` directive.
fn check_order(new: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if new.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in new.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        if !rest.any(|each| same(each, item, key)) {
            let (new, order) =
                (go_format::go_value(&Value::from(new.to_vec())), go_format::go_value(&Value::from(order.to_vec())));
            let message = format!("The order in patch list:\n{new}\n doesn't match $setElementOrder list:\n{order}\n");
            return Err(PatchError::Internal(message));
        }
    }
    Ok(())
}

fn same(left: &Value, right: &Value, key: Option<&str>) -> bool {
    match key {
        None => left == right,
        Some(key) => left.get(key).is_some() && left.get(key) == right.get(key),
    }
}

/// Whether the items are maps. All must have the same type.
fn element_kind(lists: &[&[Value]]) -> Result<bool, PatchError> {
    let mut items = lists.iter().copied().flatten();
    let Some(first) = items.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::Unprocessable(super::REJECTED.to_owned()));
    }
    if items.any(|item| std::mem::discriminant(item) != std::mem::discriminant(first)) {
        let shown: Vec<String> = lists.iter().map(|list| go_format::go_value(&Value::from(list.to_vec()))).collect();
        return Err(PatchError::Internal(format!("list element types are not identical: [{}]", shown.join(" "))));
    }
    Ok(first.is_object())
}

fn merge_list(old: Vec<Value>, new: Vec<Value>, field: &Field, budget: &mut Budget) -> Result<Vec<Value>, PatchError> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    budget.compare(old.len() + new.len(), old.len() + new.len())?;
    if !element_kind(&[&old, &new])? {
        let mut merged: Vec<Value> = Vec::with_capacity(old.len() + new.len());
        for value in old.iter().chain(&new) {
            if !merged.contains(value) {
                merged.push(value.clone());
            }
        }
        return reorder(merged, &new, &old, None);
    }
    let Some(key) = field.strategy.key else {
        return Err(PatchError::Internal(format!("cannot merge lists without merge key for {}", field.name)));
    };
    let (old, new) = apply_item_directives(old, new, key)?;
    let mut merged = old.clone();
    let item = match field.shape {
        Shape::List { item, .. } => item.as_struct(),
        Shape::Scalar(_) | Shape::Struct { .. } | Shape::Map { .. } => None,
    };
    for each in &new {
        let Value::Object(patch) = each else { continue };
        if !patch.contains_key(key) {
            return Err(no_merge_key(each, key));
        }
        match merged.iter_mut().find(|old| same(old, each, Some(key))) {
            Some(Value::Object(old)) => *old = merge_map(std::mem::take(old), patch.clone(), item, budget)?,
            _ => merged.push(each.clone()),
        }
    }
    reorder(merged, &new, &old, Some(key))
}

fn no_merge_key(item: &Value, key: &str) -> PatchError {
    PatchError::Internal(format!("map: {} does not contain declared merge key: {key}", go_format::go_value(item)))
}

/// Applies the items of a patch that are directives, and returns the other items.
fn apply_item_directives(
    mut old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let (mut rest, mut replace) = (Vec::new(), false);
    for item in new {
        match item.get(DIRECTIVE).map(|directive| (directive, directive.as_str())) {
            None => rest.push(item),
            Some((_, Some("delete"))) if item.get(key).is_none() => return Err(no_merge_key(&item, key)),
            Some((_, Some("delete"))) => old.retain(|old| !same(old, &item, Some(key))),
            Some((_, Some("replace"))) => replace = true,
            Some((_, Some("merge"))) => {
                return Err(PatchError::Internal("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some((directive, _)) => {
                return Err(unknown_directive(directive, item.as_object().unwrap_or(&Object::new())));
            }
        }
    }
    Ok(if replace { (rest, Vec::new()) } else { (old, rest) })
}

/// Sorts items in the order of `first`. The others keep their position in `server`.
fn reorder(items: Vec<Value>, first: &[Value], server: &[Value], key: Option<&str>) -> Result<Vec<Value>, PatchError> {
    if let Some(key) = key
        && let Some(without) = items.iter().find(|item| item.get(key).is_none())
    {
        return Err(no_merge_key(without, key));
    }
    let position = |list: &[Value], item: &Value| list.iter().position(|each| same(each, item, key));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| position(first, item).is_some());
    named.sort_by_key(|item| position(first, item));
    others.sort_by_key(|item| position(server, item));
    let mut outcome = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let takes_other = match (others.peek(), named.peek()) {
            (None, None) => return Ok(outcome),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(named)) => match (position(server, other), position(server, named)) {
                (Some(other), Some(named)) => other < named,
                _ => false,
            },
        };
        outcome.extend(if takes_other { others.next() } else { named.next() });
    }
}

/// Removes directives from a value that the patch adds.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?))).collect(),
        )),
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(value),
    }
}

/// Removes nulls from a value that the patch adds.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
