//! The end of a state, in the form of the recording.

use std::collections::BTreeMap;

use bindery_simulation::oracle::Recorded;
use serde_json::{Map, Value, json};

use crate::server::Server;
use crate::state::{CLAIMS, EVENTS, VOLUMES, list, text};

/// The fields that are compared.
pub const PARTS: [&str; 3] = ["volumes", "claims", "calls"];

/// The end of a state.
pub struct End<'a> {
    pub recorded: &'a Recorded,
    pub end: Value,
}

/// The ends of all states, with the calls to the drivers.
pub async fn ends<'a>(
    server: &Server,
    states: &'a [Recorded],
    uids: &BTreeMap<String, String>,
    calls: Vec<Value>,
) -> Vec<End<'a>> {
    let mut ends: BTreeMap<&str, Value> = BTreeMap::new();
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for recorded in states {
        ends.insert(&recorded.id, json!({"volumes": {}, "claims": {}, "events": [], "calls": []}));
        owners.extend(list(&recorded.state["claims"]).iter().map(|claim| (text(&claim["name"]), recorded.id.as_str())));
    }
    let plain = |value: &Value| plain(value, uids);
    let mut put = |claim: &str, part: &str, value: (Option<String>, Value)| {
        let Some(end) = owners.get(claim).and_then(|id| ends.get_mut(id)) else { return };
        match value {
            (Some(name), value) => end[part][name] = value,
            (None, value) => {
                let all = end[part].as_array_mut().expect("a list");
                if !all.contains(&value) {
                    all.push(value);
                }
            }
        }
    };
    for volume in server.list(VOLUMES).await {
        if let Some(claim) = uids.get(text(&volume["spec"]["claimRef"]["uid"])) {
            put(claim, "volumes", (Some(format!("pvc-<{claim}>")), plain(&described_volume(volume))));
        }
    }
    for claim in server.list(CLAIMS).await {
        let name = text(&claim["metadata"]["name"]).to_owned();
        put(&name, "claims", (Some(name.clone()), plain(&described_claim(claim))));
    }
    for event in server.list(EVENTS).await {
        let about = plain(&event["involvedObject"]["name"]);
        let about = text(&about).strip_prefix("pvc-<").and_then(|name| name.strip_suffix('>')).unwrap_or(text(&about));
        let words = json!([event["involvedObject"]["kind"], about, event["type"], event["reason"], event["message"]]);
        put(about, "events", (None, plain(&words)));
    }
    for call in calls {
        let call = plain(&call);
        let named = [&call["request"]["name"], &call["request"]["volume_id"]].map(text).concat();
        let claim =
            named.split_once("pvc-<").and_then(|(_, rest)| rest.split_once('>')).map(|(claim, _)| claim.to_owned());
        put(&claim.unwrap_or_default(), "calls", (None, call));
    }
    let end = |recorded: &'a Recorded| {
        let mut end = ends.remove(recorded.id.as_str()).unwrap_or_default();
        sort(&mut end["calls"]);
        End { recorded, end }
    };
    states.iter().map(end).collect()
}

/// Sorts calls independently of timing.
pub fn sort(calls: &mut Value) {
    if let Some(calls) = calls.as_array_mut() {
        calls.sort_by_key(Value::to_string);
    }
}

fn described_volume(mut volume: Value) -> Value {
    if let Some(claim) = volume.pointer_mut("/spec/claimRef").and_then(Value::as_object_mut) {
        claim.remove("resourceVersion");
    }
    let metadata = &volume["metadata"];
    json!({
        "annotations": metadata.get("annotations").cloned().unwrap_or_else(|| json!({})),
        "finalizers": sorted(metadata),
        "deleting": metadata.get("deletionTimestamp").is_some(),
        "spec": volume["spec"],
        "phase": volume["status"]["phase"],
    })
}

fn described_claim(claim: Value) -> Value {
    let metadata = &claim["metadata"];
    json!({
        "annotations": metadata.get("annotations").cloned().unwrap_or_else(|| json!({})),
        "finalizers": sorted(metadata),
        "deleting": metadata.get("deletionTimestamp").is_some(),
        "phase": claim["status"]["phase"],
        "volumeName": text(&claim["spec"]["volumeName"]),
    })
}

fn sorted(metadata: &Value) -> Vec<String> {
    let mut finalizers: Vec<String> = list(&metadata["finalizers"]).iter().map(|name| text(name).to_owned()).collect();
    finalizers.sort();
    finalizers
}

/// Replaces every claim UID by `<name>` and every provisioner identity by `<identity>`.
fn plain(value: &Value, uids: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => plain_text(text, uids).into(),
        Value::Array(items) => items.iter().map(|item| plain(item, uids)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (plain_text(key, uids), plain(value, uids))).collect::<Map<_, _>>().into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn plain_text(text: &str, uids: &BTreeMap<String, String>) -> String {
    // A UID has dashes at fixed positions; search only texts with such a pattern.
    let mut plain = text.to_owned();
    if text.len() >= 36 {
        for (uid, name) in uids {
            if plain.contains(uid.as_str()) {
                plain = plain.replace(uid.as_str(), &format!("<{name}>"));
            }
        }
    }
    for driver in ["a", "b", "c"] {
        let end = format!("-{driver}.example.com");
        let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
        let identity = plain.strip_suffix(&end).and_then(|start| start.split_once('-'));
        if identity.is_some_and(|(time, chance)| is_number(time) && is_number(chance)) {
            return format!("<identity>{end}");
        }
    }
    plain
}
