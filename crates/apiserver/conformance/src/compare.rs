//! What differs between two transcripts of the same run.

use serde_json::Value;

use crate::run::Transcript;

/// A request that was answered differently.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Which request of the run, from 0.
    pub step: usize,
    /// The request's line.
    pub request: String,
    /// Every place in the answer that differs.
    pub places: Vec<Place>,
}

/// A place in an answer, as a JSON pointer, and what stands there; nothing where there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Where.
    pub pointer: String,
    /// What the left server has there.
    pub left: Option<Value>,
    /// What the right server has there.
    pub right: Option<Value>,
}

/// All requests that were answered differently.
pub fn differences(left: &Transcript, right: &Transcript) -> Vec<Difference> {
    let pairs = left.0.iter().zip(&right.0).enumerate();
    pairs
        .filter_map(|(step, (left, right))| {
            let mut places = Vec::new();
            compare(String::new(), Some(&left.answer), Some(&right.answer), &mut places);
            // Two servers that do not answer agree in nothing.
            if let (Some(left), Some(right)) = (left.answer.get("failed"), right.answer.get("failed")) {
                let (left, right) = (Some(left.clone()), Some(right.clone()));
                places.push(Place { pointer: "/failed".to_owned(), left, right });
            }
            // The status says most, so it comes first.
            places.sort_by_key(|place| place.pointer != "/status");
            (!places.is_empty()).then(|| Difference { step, request: left.request.clone(), places })
        })
        .collect()
}

fn compare(pointer: String, left: Option<&Value>, right: Option<&Value>, places: &mut Vec<Place>) {
    match (left, right) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).collect();
            keys.sort();
            for key in keys {
                let key_pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                compare(key_pointer, a.get(key), b.get(key), places);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for at in 0..a.len().max(b.len()) {
                compare(format!("{pointer}/{at}"), a.get(at), b.get(at), places);
            }
        }
        (left, right) if left == right => {}
        (left, right) => places.push(Place { pointer, left: left.cloned(), right: right.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::Exchange;

    #[test]
    fn every_place_that_differs_is_named() {
        let of = |answer| Transcript(vec![Exchange { request: "GET x".to_owned(), answer }]);
        let left = of(json!({"status": 200, "body": {"a": [1, 2], "b": 1}}));
        let right = of(json!({"status": 201, "body": {"a": [1], "b": 1, "c~/": null}}));
        let found = differences(&left, &right);
        let pointers: Vec<_> = found[0].places.iter().map(|place| place.pointer.as_str()).collect();
        assert_eq!(pointers, ["/status", "/body/a/1", "/body/c~0~1"]);
        assert!(differences(&left, &left).is_empty());
    }
}
