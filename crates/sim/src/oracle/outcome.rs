//! Where a state ended, in the form that ends were recorded in; and how two ends differ.

use std::collections::{BTreeMap, BTreeSet};

use bindery_volumes::{Kind, ObjectKey};
use serde_json::{Map, Value, json};

use super::{Ledger, list, text};

/// Events are told apart by kind, name, type and reason.
pub type Event = [String; 4];

/// A claim that is to grow is an affair of the expander, which ran beside the binder.
const OF_OTHERS: [&str; 1] = ["ExternalExpanding"];

/// What is left of claims and volumes, and what was refused.
pub fn objects<'a>(left: impl IntoIterator<Item = (&'a ObjectKey, &'a Value)>, ledger: &Ledger) -> Value {
    let mut volumes = Map::new();
    let mut claims = Map::new();
    for (key, object) in left {
        match key.kind {
            Kind::Volume => volumes.insert(key.name.to_string(), volume(ledger, object)),
            Kind::Claim => claims.insert(key.name.to_string(), claim(ledger, &key.name, object)),
            Kind::Class | Kind::AttributesClass | Kind::Pod | Kind::Node => None,
        };
    }
    json!({"volumes": volumes, "claims": claims, "rejected": ledger.rejected})
}

/// The same part of a recorded outcome.
pub(super) fn recorded_objects(outcome: &Value) -> Value {
    json!({"volumes": outcome["volumes"], "claims": outcome["claims"], "rejected": outcome["rejected"]})
}

/// An event, unless it is another controller's.
pub fn event(kind: &str, name: &str, event_type: &str, reason: &str) -> Option<Event> {
    let is_ours = !OF_OTHERS.contains(&reason);
    is_ours.then(|| [kind, name, event_type, reason].map(str::to_owned))
}

/// The events of a recorded outcome that the binder published.
pub(super) fn recorded_events(outcome: &Value) -> BTreeSet<Event> {
    let ours = |words: &Value| event(text(&words[0]), text(&words[1]), text(&words[2]), text(&words[3]));
    list(&outcome["events"]).iter().filter_map(ours).collect()
}

fn volume(ledger: &Ledger, object: &Value) -> Value {
    let claim_ref = &object["spec"]["claimRef"];
    let referred = || json!({"name": claim_ref["name"], "uid": who(ledger, &claim_ref["name"], &claim_ref["uid"])});
    json!({
        "phase": object["status"]["phase"],
        "claimRef": if claim_ref.is_null() { Value::Null } else { referred() },
        "ann": annotations(object),
        "finalizers": finalizers(object),
        "deleting": is_deleting(object),
        "class": text(&object["spec"]["storageClassName"]),
    })
}

fn claim(ledger: &Ledger, name: &str, object: &Value) -> Value {
    let status = &object["status"];
    json!({
        "gen": ledger.uids.get(name).and_then(|uids| uids.iter().position(|uid| object["metadata"]["uid"] == **uid)),
        "phase": status["phase"],
        "volumeName": text(&object["spec"]["volumeName"]),
        "ann": annotations(object),
        "capacity": status["capacity"]["storage"],
        "accessModes": status["accessModes"],
        "finalizers": finalizers(object),
        "deleting": is_deleting(object),
    })
}

/// Whose UID it is: nobody's, that of the K-th claim of that name, or one that no claim has.
fn who(ledger: &Ledger, name: &Value, uid: &Value) -> String {
    let uids = ledger.uids.get(text(name)).map_or(&[][..], Vec::as_slice);
    match text(uid) {
        "" => "none".into(),
        uid => uids.iter().position(|known| known == uid).map_or("stale".into(), |at| format!("claim{at}")),
    }
}

fn annotations(object: &Value) -> Value {
    let annotations = &object["metadata"]["annotations"];
    if annotations.is_null() { json!({}) } else { annotations.clone() }
}

fn finalizers(object: &Value) -> Value {
    let mut names: Vec<&str> = list(&object["metadata"]["finalizers"]).iter().map(text).collect();
    names.sort_unstable();
    names.into()
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// How an end differs from a recorded one, in a line for each field.
pub fn difference(recorded: &Value, ours: &Value) -> Vec<String> {
    let mut fields: BTreeMap<String, [Option<&Value>; 2]> = BTreeMap::new();
    for (at, value) in [recorded, ours].into_iter().enumerate() {
        flatten(value, String::new(), &mut |path, leaf| fields.entry(path).or_default()[at] = Some(leaf));
    }
    let show = |value: Option<&Value>| value.map_or("-".into(), Value::to_string);
    let differing = fields.into_iter().filter(|(_, [recorded, ours])| recorded != ours);
    differing
        .map(|(path, [recorded, ours])| format!("{path}: recorded {}, ours {}", show(recorded), show(ours)))
        .collect()
}

fn flatten<'a>(value: &'a Value, path: String, leaf: &mut dyn FnMut(String, &'a Value)) {
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => {
            for (key, value) in fields {
                flatten(value, format!("{path}/{}", key.rsplit('/').next().unwrap_or(key)), leaf);
            }
        }
        None => leaf(path, value),
    }
}
