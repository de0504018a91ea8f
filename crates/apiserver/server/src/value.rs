//! Helpers to read and change JSON objects.

use serde_json::{Map, Value};

/// The value at a path.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| value.get(step))
}

/// The text at a path; empty if there is none.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a path; empty if there is none.
pub fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts in the list at a path.
pub fn texts<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a str> {
    list(value, path).iter().filter_map(Value::as_str)
}

/// The object at a path, if there is one.
pub fn map<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
    at(value, path).and_then(Value::as_object)
}

/// The members of the object at a path.
pub fn entries<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = (&'a str, &'a Value)> {
    map(value, path).into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// The object at a path, created if needed.
pub fn map_mut<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut here = value;
    for step in path {
        here = object(here).entry(*step).or_insert(Value::Null);
    }
    object(here)
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was just set")
}

/// Sets the value at a path.
pub fn set(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    let (last, above) = path.split_last().expect("a path is not empty");
    map_mut(value, above).insert((*last).to_owned(), new.into());
}

/// Sets the value at a path if it is missing or an empty text.
pub fn set_if_empty(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if at(value, path).is_none_or(|there| there.is_null() || there.as_str() == Some("")) {
        set(value, path, new);
    }
}

/// Sets the value at a path if it is missing. An empty text is kept, for fields that are pointers
/// upstream.
pub fn set_if_absent(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if at(value, path).is_none_or(Value::is_null) {
        set(value, path, new);
    }
}

/// Removes the value at a path.
pub fn take(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, above) = path.split_last().expect("a path is not empty");
    let here = above.iter().try_fold(value, |value, step| value.get_mut(step))?;
    here.as_object_mut()?.remove(*last)
}

/// Copies the value at a path; removes it if `from` has none.
pub fn copy(from: &Value, to: &mut Value, path: &[&str]) {
    match at(from, path) {
        Some(there) => set(to, path, there.clone()),
        None => {
            take(to, path);
        }
    }
}
