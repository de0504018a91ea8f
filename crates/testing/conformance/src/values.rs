//! Variables in requests: `$n` is the name of the run, `$last.metadata.uid` a field of the previous
//! response.
//!
//! A variable is `$` and a word; `.key` selects a part of an object or a list. Unknown variables
//! are kept, because strategic merge patches have directives with `$`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The values of variables.
#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<String, Value>);

impl Values {
    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The value of a text that consists of one variable.
    pub fn whole(&self, text: &str) -> Option<Value> {
        let (value, rest) = self.variable(text.strip_prefix('$')?)?;
        rest.is_empty().then(|| value.clone())
    }

    /// Replaces the variables in a text.
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

    /// Replaces the variables in a value, including its keys. A text that consists of one variable
    /// becomes that variable's value, of any type.
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

    /// The variable at the start of a text after `$`, and the rest.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn known_variables_are_replaced_and_unknown_ones_kept() {
        let mut values = Values::default();
        values.set("n", "x1");
        values.set("last", json!({"metadata": {"uid": "u", "generation": 3}, "items": [{"name": "i"}]}));
        assert_eq!(values.text("pvc/$n-a.$n.example $patch"), "pvc/x1-a.x1.example $patch");
        assert_eq!(values.text("$last.metadata.uid/$last.items.0.name"), "u/i");
        let patched = values.value(&json!({"$patch": "$last.metadata.generation", "$n": ["$n"]}));
        assert_eq!(patched, json!({"$patch": 3, "x1": ["x1"]}));
    }
}
