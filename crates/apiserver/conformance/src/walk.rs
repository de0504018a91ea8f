//! Requests at random: what nobody thought of writing down as a shape.
//!
//! A walk depends on its seed alone. It makes, changes, applies and deletes three objects of one kind, with what it knows of
//! them at that point of the walk, which may be out of date; it ends with a list and with a watch of all that happened.

use serde_json::{Map, Value, json};

use crate::dice::Dice;

/// How many requests a walk has, but for the last two.
const LENGTH: usize = 24;

const NAMES: [&str; 3] = ["a", "b", "c"];
const COLORS: [&str; 3] = ["red", "green", "blue"];
const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];
const MANAGERS: [&str; 3] = ["one", "two", "three"];
const FINALIZERS: [&str; 2] = ["example.com/x", "example.com/w"];

/// The steps of a walk, as they could stand in a file of shapes.
pub fn steps(kind: &str, changes: &[Value], dice: &mut Dice) -> Vec<Value> {
    let mut walk = Walk { kind, changes, dice };
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
    dice: &'a mut Dice,
}

impl Walk<'_> {
    fn step(&mut self) -> Value {
        let name = self.dice.of(&NAMES);
        match self.dice.below(16) {
            0..3 => self.create(name, name),
            3..5 => self.update(name),
            5..8 => self.change(name),
            8 => self.labels(name),
            9..11 => self.finalizers(name),
            11..13 => self.apply(name),
            13..15 => self.delete(name),
            _ => self.look(name),
        }
    }

    fn create(&mut self, name: &str, save: &str) -> Value {
        let kind = self.kind;
        let mut metadata = self.metadata(name);
        if self.dice.below(3) == 0 {
            metadata["finalizers"] = json!([self.dice.of(&FINALIZERS)]);
        }
        let line = line(format!("POST {}{}", kind, self.query("")), json!(kind));
        beside(line, json!({"with": {"metadata": metadata}, "save": save}))
    }

    /// With what is known of the object, or with the version of another.
    fn update(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let mut with = json!({"metadata": {"labels": {"color": self.dice.of(&COLORS)}}});
        match self.dice.below(4) {
            0 => {
                with["metadata"]["resourceVersion"] =
                    json!(format!("${}.metadata.resourceVersion", self.dice.of(&NAMES)))
            }
            1 => with["metadata"]["resourceVersion"] = Value::Null,
            2 => with["metadata"]["finalizers"] = Value::Null,
            _ => {}
        }
        let line = line(format!("PUT {}/$n-{name}{}", kind, self.query("")), json!(format!("${name}")));
        beside(line, json!({"with": with, "save": name}))
    }

    /// Something of the kind's own, through the object or its status.
    fn change(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let at = usize::try_from(self.dice.below(self.changes.len() as u64)).unwrap_or_default();
        let patch = self.changes.get(at).cloned().unwrap_or_else(|| json!({}));
        let status = patch.get("status").is_some() && self.dice.below(4) > 0;
        let verb = self.dice.of(&["MERGE", "MERGE", "STRATEGIC"]);
        let subresource = if status { "/status" } else { "" };
        line(format!("{verb} {}/$n-{name}{subresource}{}", kind, self.query("")), patch)
    }

    fn labels(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let (before, after) = (self.dice.of(&COLORS), self.dice.of(&COLORS));
        let patch = json!([
            {"op": "test", "path": "/metadata/labels/color", "value": before},
            {"op": "replace", "path": "/metadata/labels/color", "value": after},
        ]);
        line(format!("JSONPATCH {}/$n-{name}{}", kind, self.query("")), patch)
    }

    fn finalizers(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let finalizer = self.dice.of(&FINALIZERS);
        let (verb, patch) = match self.dice.below(4) {
            0 => ("STRATEGIC", json!({"metadata": {"finalizers": [finalizer]}})),
            1 => ("STRATEGIC", json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer]}})),
            2 => ("MERGE", json!({"metadata": {"finalizers": null}})),
            _ => ("MERGE", json!({"metadata": {"finalizers": FINALIZERS}})),
        };
        line(format!("{verb} {}/$n-{name}{}", kind, self.query("")), patch)
    }

    fn apply(&mut self, name: &str) -> Value {
        let mut metadata = self.metadata(name);
        if self.dice.below(2) == 0 {
            metadata["annotations"] = json!({"by": self.dice.of(&MANAGERS)});
        }
        let force = if self.dice.below(2) == 0 { "&force=true" } else { "" };
        let manager = self.dice.of(&MANAGERS);
        let query = self.query(&format!("fieldManager={manager}{force}"));
        let line = line(format!("APPLY {}/$n-{name}{query}", self.kind), json!(self.kind));
        beside(line, json!({"with": {"metadata": metadata}, "save": name}))
    }

    fn delete(&mut self, name: &str) -> Value {
        let kind = self.kind;
        let options = match self.dice.below(5) {
            0 => Value::Null,
            1 | 2 => json!({"propagationPolicy": self.dice.of(&POLICIES)}),
            3 => json!({"preconditions": {"uid": format!("${name}.metadata.uid")}}),
            _ => json!({"preconditions": {"resourceVersion": format!("${name}.metadata.resourceVersion")}}),
        };
        line(format!("DELETE {}/$n-{name}{}", kind, self.query("")), options)
    }

    fn look(&mut self, name: &str) -> Value {
        let (kind, color) = (self.kind, self.dice.of(&COLORS));
        match self.dice.below(3) {
            0 => beside(line(format!("GET {kind}/$n-{name}"), Value::Null), json!({"save": name})),
            1 => line(format!("GET {kind}?labelSelector=run=$n,color={color}"), Value::Null),
            _ => line(format!("GET {kind}?fieldSelector=metadata.name=$n-{name}"), Value::Null),
        }
    }

    fn metadata(&mut self, name: &str) -> Value {
        json!({"name": format!("$n-{name}"), "labels": {"run": "$n", "color": self.dice.of(&COLORS)}})
    }

    /// Every now and then nothing is to come of it.
    fn query(&mut self, query: &str) -> String {
        match (query, self.dice.below(10)) {
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

fn beside(mut step: Value, more: Value) -> Value {
    if let (Value::Object(step), Value::Object(more)) = (&mut step, more) {
        step.extend(more);
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_depends_on_its_seed_alone() {
        let walk = |seed| steps("cm", &[json!({"data": {"a": "1"}})], &mut Dice::of_text(seed));
        assert_eq!(walk("x"), walk("x"));
        assert_ne!(walk("x"), walk("z"));
        assert_eq!(walk("x").len(), LENGTH + 3);
    }
}
