//! Where a state ended, in the form that ends were recorded in; and how two ends differ.

use std::collections::{BTreeMap, BTreeSet};

use bindery_volumes::Kind;
use serde_json::{Map, Value, json};

use crate::state::{End, list, text};

/// Events are told apart by kind, name, type and reason.
pub type Event = [String; 4];

/// A claim that is to grow is an affair of the expander, which ran beside the binder.
const OF_OTHERS: [&str; 1] = ["ExternalExpanding"];

/// What is left of claims and volumes, and what was refused.
pub fn objects(end: &End) -> Value {
    let mut volumes = Map::new();
    let mut claims = Map::new();
    for (key, object) in end.world.objects() {
        match key.kind {
            Kind::Volume => volumes.insert(key.name.to_string(), volume(end, object)),
            Kind::Claim => claims.insert(key.name.to_string(), claim(end, &key.name, object)),
            Kind::Class | Kind::AttributesClass | Kind::Pod | Kind::Node => None,
        };
    }
    json!({"volumes": volumes, "claims": claims, "rejected": end.rejected})
}

/// The same part of a recorded outcome.
pub fn recorded_objects(outcome: &Value) -> Value {
    json!({"volumes": outcome["volumes"], "claims": outcome["claims"], "rejected": outcome["rejected"]})
}

/// The events that were published.
pub fn events(end: &End) -> BTreeSet<Event> {
    let event = |notice: &bindery_verdict::Notice| {
        let words =
            [notice.about.kind.as_str(), &notice.about.name, notice.event_type.as_str(), notice.reason.as_str()];
        words.map(str::to_owned)
    };
    end.notices.iter().map(event).collect()
}

/// The events of a recorded outcome that the binder published.
pub fn recorded_events(outcome: &Value) -> BTreeSet<Event> {
    let event = |event: &Value| [0, 1, 2, 3].map(|at: usize| text(&event[at]).to_owned());
    let is_ours = |event: &Event| !OF_OTHERS.contains(&event[3].as_str());
    list(&outcome["events"]).iter().map(event).filter(is_ours).collect()
}

fn volume(end: &End, object: &Value) -> Value {
    let claim_ref = &object["spec"]["claimRef"];
    let referred = || json!({"name": claim_ref["name"], "uid": who(end, &claim_ref["name"], &claim_ref["uid"])});
    json!({
        "phase": object["status"]["phase"],
        "claimRef": if claim_ref.is_null() { Value::Null } else { referred() },
        "ann": annotations(object),
        "finalizers": finalizers(object),
        "deleting": is_deleting(object),
        "class": text(&object["spec"]["storageClassName"]),
    })
}

fn claim(end: &End, name: &str, object: &Value) -> Value {
    let status = &object["status"];
    json!({
        "gen": end.uids.get(name).and_then(|uids| uids.iter().position(|uid| object["metadata"]["uid"] == **uid)),
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
fn who(end: &End, name: &Value, uid: &Value) -> String {
    let uids = end.uids.get(text(name)).map_or(&[][..], Vec::as_slice);
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
