//! Compares two transcripts of the same run.

use serde_json::Value;

use crate::run::Transcript;

/// A request with different responses.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The index of the request in the run.
    pub step: usize,
    /// The request line.
    pub request: String,
    /// All fields of the response that differ.
    pub fields: Vec<FieldDifference>,
}

/// A field of a response that differs, as a JSON pointer, and both values; `None` where it is
/// missing.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDifference {
    /// The JSON pointer.
    pub pointer: String,
    /// The value of the left server.
    pub left: Option<Value>,
    /// The value of the right server.
    pub right: Option<Value>,
}

/// All requests with different responses.
pub fn differences(left: &Transcript, right: &Transcript) -> Vec<Difference> {
    let pairs = left.0.iter().zip(&right.0).enumerate();
    pairs
        .filter_map(|(step, (left, right))| {
            let mut fields = Vec::new();
            compare(String::new(), Some(&left.answer), Some(&right.answer), &mut fields);
            // Two servers that do not respond do not agree.
            if let (Some(left), Some(right)) = (left.answer.get("failed"), right.answer.get("failed")) {
                let (left, right) = (Some(left.clone()), Some(right.clone()));
                fields.push(FieldDifference { pointer: "/failed".to_owned(), left, right });
            }
            // The status is the most important field, so it comes first.
            fields.sort_by_key(|field| field.pointer != "/status");
            (!fields.is_empty()).then(|| Difference { step, request: left.request.clone(), fields })
        })
        .collect()
}

fn compare(pointer: String, left: Option<&Value>, right: Option<&Value>, fields: &mut Vec<FieldDifference>) {
    match (left, right) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).collect();
            keys.sort();
            for key in keys {
                let key_pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                compare(key_pointer, a.get(key), b.get(key), fields);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for at in 0..a.len().max(b.len()) {
                compare(format!("{pointer}/{at}"), a.get(at), b.get(at), fields);
            }
        }
        (left, right) if left == right => {}
        (left, right) => fields.push(FieldDifference { pointer, left: left.cloned(), right: right.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::Exchange;

    #[test]
    fn every_field_that_differs_is_listed() {
        let of = |answer| Transcript(vec![Exchange { request: "GET x".to_owned(), answer }]);
        let left = of(json!({"status": 200, "body": {"a": [1, 2], "b": 1}}));
        let right = of(json!({"status": 201, "body": {"a": [1], "b": 1, "c~/": null}}));
        let found = differences(&left, &right);
        let pointers: Vec<_> = found[0].fields.iter().map(|field| field.pointer.as_str()).collect();
        assert_eq!(pointers, ["/status", "/body/a/1", "/body/c~0~1"]);
        assert!(differences(&left, &left).is_empty());
    }
}
