//! The final state in the form of the recording, and differences between final states.

use std::collections::{BTreeMap, BTreeSet};

use bindery_model::{Kind, ObjectKey};
use serde_json::{Map, Value, json};

use super::{Ledger, Recorded, list, text};

/// An event: kind, name, type, reason and message.
pub type Event = [String; 5];

/// Whether these are published depends on timing: a claim can be synced before or after its pod is
/// scheduled, and a pod before or after its claims exist. Recordings differ here, too.
const TIMING_DEPENDENT: [&str; 2] = ["WaitForPodScheduled", "FailedScheduling"];

impl Recorded {
    /// The final claims, volumes, pods and rejections in the form of the recording.
    pub fn end<'a>(
        &self,
        left: impl IntoIterator<Item = (&'a ObjectKey, &'a Value), IntoIter: Clone>,
        ledger: &Ledger,
    ) -> Value {
        let left = left.into_iter();
        let end = self.form(left.clone(), ledger, is_unschedulable);
        if self.outcome_of(&end).is_some() {
            return end;
        }
        // Where the condition of a pod depends on timing, the recorded one is accepted.
        let mut with_recorded_conditions = self.outcomes.iter().map(|outcome| {
            let is_recorded = |pod: &Value| outcome["pods"][text(&pod["metadata"]["name"])]["unschedulable"] == true;
            let is_reported =
                |pod: &Value| if is_timing_dependent(pod) { is_recorded(pod) } else { is_unschedulable(pod) };
            self.form(left.clone(), ledger, is_reported)
        });
        with_recorded_conditions.find(|end| self.outcome_of(end).is_some()).unwrap_or(end)
    }

    fn form<'a>(
        &self,
        left: impl Iterator<Item = (&'a ObjectKey, &'a Value)> + Clone,
        ledger: &Ledger,
        is_unschedulable: impl Fn(&Value) -> bool,
    ) -> Value {
        let claims_left = left.clone().filter(|(key, _)| key.kind == Kind::Claim);
        let live = claims_left.map(|(_, claim)| text(&claim["metadata"]["uid"])).collect();
        let claims_known = KnownClaims { ledger, live };
        let [mut volumes, mut claims, mut pods] = std::array::from_fn(|_| Map::new());
        for (key, object) in left {
            let name = key.name.to_string();
            if key.kind == Kind::Volume {
                volumes.insert(name, volume(&claims_known, object));
            } else if key.kind == Kind::Claim {
                let form = claim(ledger, object);
                claims.insert(name, if self.has_pods() { with_pod_fields(form, object) } else { form });
            } else if key.kind == Kind::Pod {
                pods.insert(name, pod(object, is_unschedulable(object)));
            }
        }
        json!({"volumes": volumes, "claims": claims, "pods": pods, "rejected": ledger.rejected})
    }
}

/// The same part of a recorded outcome. States without pods have no pods recorded.
pub(super) fn recorded_objects(outcome: &Value) -> Value {
    let pods = if outcome["pods"].is_null() { json!({}) } else { outcome["pods"].clone() };
    json!({"volumes": outcome["volumes"], "claims": outcome["claims"], "pods": pods, "rejected": outcome["rejected"]})
}

/// An event, unless it depends on timing.
pub fn event(words: [&str; 5]) -> Option<Event> {
    let [_, _, _, reason, _] = words;
    let is_compared = !TIMING_DEPENDENT.contains(&reason);
    is_compared.then(|| words.map(str::to_owned))
}

/// The events of a recorded outcome.
pub(super) fn recorded_events(outcome: &Value) -> BTreeSet<Event> {
    let words = |event: &Value| std::array::from_fn(|at| event[at].clone());
    list(&outcome["events"]).iter().filter_map(|recorded| event(words(recorded).each_ref().map(text))).collect()
}

/// The claims that were created, and those that exist.
struct KnownClaims<'a> {
    ledger: &'a Ledger,
    /// The UIDs of all existing claims.
    live: BTreeSet<&'a str>,
}

impl KnownClaims<'_> {
    /// The owner of a UID: `claimK` for the K-th claim of that name, `live` for a claim that a
    /// controller created, `stale` for no existing claim, `none` for an empty UID.
    fn owner(&self, name: &str, uid: &str) -> String {
        match self.ledger.generation(name, uid) {
            Some(at) => format!("claim{at}"),
            None if uid.is_empty() => "none".into(),
            None if self.live.contains(uid) => "live".into(),
            None => "stale".into(),
        }
    }
}

fn volume(known: &KnownClaims<'_>, object: &Value) -> Value {
    let claim_ref = &object["spec"]["claimRef"];
    let (name, uid) = (text(&claim_ref["name"]), text(&claim_ref["uid"]));
    let referred = || json!({"name": name, "uid": known.owner(name, uid)});
    json!({
        "phase": object["status"]["phase"],
        "claimRef": if claim_ref.is_null() { Value::Null } else { referred() },
        "ann": annotations(object),
        "finalizers": finalizers(object),
        "deleting": is_deleting(object),
        "class": text(&object["spec"]["storageClassName"]),
    })
}

fn claim(ledger: &Ledger, object: &Value) -> Value {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let generation = ledger.generation(text(&metadata["name"]), text(&metadata["uid"]));
    json!({
        // A claim that a controller created has no generation.
        "gen": generation.map_or(json!(-1), |at| json!(at)),
        "phase": status["phase"],
        "volumeName": text(&object["spec"]["volumeName"]),
        "ann": annotations(object),
        "capacity": status["capacity"]["storage"],
        "accessModes": status["accessModes"],
        "finalizers": finalizers(object),
        "deleting": is_deleting(object),
    })
}

/// Adds the fields that are recorded in states with pods.
fn with_pod_fields(mut claim: Value, object: &Value) -> Value {
    claim["owner"] = list(&object["metadata"]["ownerReferences"]).iter().map(|owner| owner["name"].clone()).collect();
    claim["request"] = object["spec"]["resources"]["requests"]["storage"].clone();
    let mut conditions: Vec<&str> =
        list(&object["status"]["conditions"]).iter().map(|condition| text(&condition["type"])).collect();
    conditions.sort_unstable();
    claim["conditions"] = conditions.into();
    claim
}

fn pod(object: &Value, is_unschedulable: bool) -> Value {
    json!({
        "node": object["spec"]["nodeName"],
        "phase": object["status"]["phase"],
        "unschedulable": is_unschedulable,
    })
}

/// The message of the condition that a pod is unschedulable, if any.
fn unschedulable_message(pod: &Value) -> Option<&str> {
    let is_false = |condition: &&Value| condition["type"] == "PodScheduled" && condition["status"] == "False";
    let condition = list(&pod["status"]["conditions"]).iter().find(is_false);
    condition.map(|condition| text(&condition["message"]))
}

fn is_unschedulable(pod: &Value) -> bool {
    unschedulable_message(pod).is_some()
}

/// A scheduler can see a pod before or after the claim of its ephemeral volume exists. If it then
/// waits for the claim to be bound, the earlier condition remains or not, depending on timing.
fn is_timing_dependent(pod: &Value) -> bool {
    let waits = list(&pod["spec"]["volumes"]).iter().any(|volume| !volume["ephemeral"].is_null())
        && text(&pod["spec"]["nodeName"]).is_empty();
    waits && unschedulable_message(pod).is_none_or(|words| words.contains("waiting for ephemeral volume controller"))
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

/// How a final state differs from a recorded one, one line per field.
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
