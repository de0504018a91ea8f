//! Variables in requests: `$n` is a run's own name, `$last.metadata.uid` a part of the answer before.
//!
//! A variable is `$` and a word; where its value is an object or a list, `.key` goes into it. What is not known stays as it
//! is written, because strategic merge patches have words with `$` of their own.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// What variables stand for.
#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<String, Value>);

impl Values {
    /// Gives a variable a value.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The value of a text that is one variable and nothing else.
    pub fn whole(&self, text: &str) -> Option<Value> {
        let (value, rest) = self.variable(text.strip_prefix('$')?)?;
        rest.is_empty().then(|| value.clone())
    }

    /// The text with its variables replaced.
    pub fn text(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            match self.variable(rest) {
                Some((Value::String(value), after)) => {
                    out.push_str(value);
                    rest = after;
                }
                Some((value, after)) => {
                    out.push_str(&value.to_string());
                    rest = after;
                }
                None => out.push('$'),
            }
        }
        out + rest
    }

    /// The value with its variables replaced, in keys too. A text that is one variable becomes that variable's value,
    /// whatever type it has.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.whole(text).unwrap_or_else(|| Value::String(self.text(text))),
            Value::Array(list) => list.iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => {
                Value::Object(map.iter().map(|(key, item)| (self.text(key), self.value(item))).collect::<Map<_, _>>())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// The variable that a text after `$` begins with, and what follows it.
    fn variable<'a, 'b>(&'a self, text: &'b str) -> Option<(&'a Value, &'b str)> {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let mut value = self.0.get(&text[..end])?;
        let mut rest = &text[end..];
        while let Some(inner) = rest.strip_prefix('.') {
            let end = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
            let next = match value {
                Value::Object(map) => map.get(&inner[..end]),
                Value::Array(list) => inner[..end].parse::<usize>().ok().and_then(|at| list.get(at)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            };
            let Some(next) = next else { break };
            value = next;
            rest = &inner[end..];
        }
        Some((value, rest))
    }
}

/// Lays a merge patch (RFC 7386) over a value: how a step says in which way its object differs from a template.
pub fn overlay(base: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *base = patch.clone();
        return;
    };
    if !base.is_object() {
        *base = Value::Object(Map::new());
    }
    let Value::Object(base) = base else { return };
    for (key, value) in patch {
        if value.is_null() {
            base.remove(key);
        } else {
            overlay(base.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_are_replaced_and_unknown_ones_stay() {
        let mut values = Values::default();
        values.set("n", "x1");
        values.set("last", json!({"metadata": {"uid": "u", "generation": 3}, "items": [{"name": "i"}]}));
        assert_eq!(values.text("pvc/$n-a.$n.example $patch"), "pvc/x1-a.x1.example $patch");
        assert_eq!(values.text("$last.metadata.uid/$last.items.0.name"), "u/i");
        let patched = values.value(&json!({"$patch": "$last.metadata.generation", "$n": ["$n"]}));
        assert_eq!(patched, json!({"$patch": 3, "x1": ["x1"]}));
    }

    #[test]
    fn an_overlay_replaces_lists_and_removes_by_null() {
        let mut object = json!({"a": {"b": 1, "c": [1, 2]}, "d": 4});
        overlay(&mut object, &json!({"a": {"b": null, "c": [3]}, "e": {"f": 1}}));
        assert_eq!(object, json!({"a": {"c": [3]}, "d": 4, "e": {"f": 1}}));
    }
}
