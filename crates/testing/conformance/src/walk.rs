//! Random walks: requests that are not written down as a shape.
//!
//! A walk depends only on its seed. It creates, changes, applies and deletes three objects of one
//! kind, using earlier responses that may be out of date, and ends with a list and a watch of all
//! changes.

use serde_json::{Map, Value, json};

use crate::rng::Rng;

/// The number of requests, without the last two.
const LENGTH: usize = 24;

const NAMES: [&str; 3] = ["a", "b", "c"];
const COLORS: [&str; 3] = ["red", "green", "blue"];
const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];
const MANAGERS: [&str; 3] = ["one", "two", "three"];
const FINALIZERS: [&str; 2] = ["example.com/x", "example.com/w"];

/// The steps of a walk, in the notation of shapes.
pub fn steps(kind: &str, changes: &[Value], rng: &mut Rng) -> Vec<Value> {
    let mut walk = Walk { kind, changes, rng };
    let mut steps = vec![walk.create("a", "first")];
    steps.extend((0..LENGTH).map(|_| walk.step()));
    steps.push(line(format!("GET {kind}?labelSelector=run=$n"), Value::Null));
    let since = "resourceVersion=$first.metadata.resourceVersion";
    steps.push(line(format!("GET {kind}?watch=true&timeoutSeconds=1&labelSelector=run=$n&{since}"), Value::Null));
    steps
}

struct Walk<'a> {
    kind: &'a str,
    changes: &'a [Value],
    rng: &'a mut Rng,
}

impl Walk<'_> {
    fn step(&mut self) -> Value {
        let name = self.rng.pick(&NAMES);
        match self.rng.below(16) {
            0..3 => self.create(name, name),
            3..5 => self.update(name),
            5..8 => self.change(name),
            8 => self.labels(name),
            9..11 => self.finalizers(name),
            11..13 => self.apply(name),
            13..15 => self.delete(name),
            _ => self.read(name),
        }
    }

    fn create(&mut self, name: &str, save: &str) -> Value {
        let kind = self.kind;
        let mut metadata = self.metadata(name);
        if self.rng.below(3) == 0 {
            metadata["finalizers"] = json!([self.rng.pick(&FINALIZERS)]);
        }
        let line = line(format!("POST {}{}", kind, self.query("")), json!(kind));
        with_fields(line, json!({"with": {"metadata": metadata}, "save": save}))
    }

    /// Updates with an earlier response, or with the resourceVersion of another object.
    fn update(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let mut with = json!({"metadata": {"labels": {"color": self.rng.pick(&COLORS)}}});
        match self.rng.below(4) {
            0 => {
                with["metadata"]["resourceVersion"] =
                    json!(format!("${}.metadata.resourceVersion", self.rng.pick(&NAMES)))
            }
            1 => with["metadata"]["resourceVersion"] = Value::Null,
            2 => with["metadata"]["finalizers"] = Value::Null,
            _ => {}
        }
        let line = line(format!("PUT {}/$n-{name}{}", kind, self.query("")), json!(format!("${name}")));
        with_fields(line, json!({"with": with, "save": name}))
    }

    /// A patch of the kind, to the object or its status.
    fn change(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let at = usize::try_from(self.rng.below(self.changes.len() as u64)).unwrap_or_default();
        let patch = self.changes.get(at).cloned().unwrap_or_else(|| json!({}));
        let status = patch.get("status").is_some() && self.rng.below(4) > 0;
        let verb = self.rng.pick(&["MERGE", "MERGE", "STRATEGIC"]);
        let subresource = if status { "/status" } else { "" };
        line(format!("{verb} {}/$n-{name}{subresource}{}", kind, self.query("")), patch)
    }

    fn labels(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let (before, after) = (self.rng.pick(&COLORS), self.rng.pick(&COLORS));
        let patch = json!([
            {"op": "test", "path": "/metadata/labels/color", "value": before},
            {"op": "replace", "path": "/metadata/labels/color", "value": after},
        ]);
        line(format!("JSONPATCH {}/$n-{name}{}", kind, self.query("")), patch)
    }

    fn finalizers(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let finalizer = self.rng.pick(&FINALIZERS);
        let (verb, patch) = match self.rng.below(4) {
            0 => ("STRATEGIC", json!({"metadata": {"finalizers": [finalizer]}})),
            1 => ("STRATEGIC", json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer]}})),
            2 => ("MERGE", json!({"metadata": {"finalizers": null}})),
            _ => ("MERGE", json!({"metadata": {"finalizers": FINALIZERS}})),
        };
        line(format!("{verb} {}/$n-{name}{}", kind, self.query("")), patch)
    }

    fn apply(&mut self, name: &str) -> Value {
        let mut metadata = self.metadata(name);
        if self.rng.below(2) == 0 {
            metadata["annotations"] = json!({"by": self.rng.pick(&MANAGERS)});
        }
        let force = if self.rng.below(2) == 0 { "&force=true" } else { "" };
        let manager = self.rng.pick(&MANAGERS);
        let query = self.query(&format!("fieldManager={manager}{force}"));
        let line = line(format!("APPLY {}/$n-{name}{query}", self.kind), json!(self.kind));
        with_fields(line, json!({"with": {"metadata": metadata}, "save": name}))
    }

    fn delete(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let options = match self.rng.below(5) {
            0 => Value::Null,
            1 | 2 => json!({"propagationPolicy": self.rng.pick(&POLICIES)}),
            3 => json!({"preconditions": {"uid": format!("${name}.metadata.uid")}}),
            _ => json!({"preconditions": {"resourceVersion": format!("${name}.metadata.resourceVersion")}}),
        };
        line(format!("DELETE {}/$n-{name}{}", kind, self.query("")), options)
    }

    fn read(&mut self, name: &str) -> Value {
        let (kind, color) = (self.kind, self.rng.pick(&COLORS));
        match self.rng.below(3) {
            0 => with_fields(line(format!("GET {kind}/$n-{name}"), Value::Null), json!({"save": name})),
            1 => line(format!("GET {kind}?labelSelector=run=$n,color={color}"), Value::Null),
            _ => line(format!("GET {kind}?fieldSelector=metadata.name=$n-{name}"), Value::Null),
        }
    }

    fn metadata(&mut self, name: &str) -> Value {
        json!({"name": format!("$n-{name}"), "labels": {"run": "$n", "color": self.rng.pick(&COLORS)}})
    }

    /// Occasionally a dry run.
    fn query(&mut self, query: &str) -> String {
        match (query, self.rng.below(10)) {
            ("", 0) => "?dryRun=All".to_owned(),
            ("", _) => String::new(),
            (query, 0) => format!("?{query}&dryRun=All"),
            (query, _) => format!("?{query}"),
        }
    }
}

fn line(line: String, body: Value) -> Value {
    Value::Object(Map::from_iter([(line, body)]))
}

fn with_fields(mut step: Value, more: Value) -> Value {
    if let (Value::Object(step), Value::Object(more)) = (&mut step, more) {
        step.extend(more);
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_depends_only_on_its_seed() {
        let walk = |seed| steps("cm", &[json!({"data": {"a": "1"}})], &mut Rng::from_text(seed));
        assert_eq!(walk("x"), walk("x"));
        assert_ne!(walk("x"), walk("z"));
        assert_eq!(walk("x").len(), LENGTH + 3);
    }
}
