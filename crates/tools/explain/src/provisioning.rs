//! A claim that waits for its provisioner: the request, the last event, and the next attempt.

use bindery_cache::Cache;
use bindery_model::event::Reason;
use bindery_model::{Annotation, Claim, Name};
use bindery_rules_api::{Event, Recorded, Term};
use serde::Serialize;
use serde_json::Value;

/// The state of a claim's provisioning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provisioning {
    /// The name of the provisioner.
    pub provisioner: Name,
    /// What is requested, as text.
    pub request: String,
    /// Whether the outcome of the last call to the storage backend is unknown.
    pub is_outcome_unknown: bool,
    /// The last event about it.
    pub last_event: Option<LastEvent>,
    /// The time of the next attempt, if known (RFC 3339).
    pub next_attempt: Option<String>,
}

/// An event that a provisioner published about a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastEvent {
    /// The reason of the event.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// When it was last seen (RFC 3339).
    pub at: String,
    /// How often it was seen.
    pub count: i64,
}

/// The state of a claim's provisioning, from the claim and the events about it; `None` if the claim
/// has a volume or no provisioner was requested.
pub fn provisioning(known: &Cache, claim: &Claim, events: &[Value]) -> Option<Provisioning> {
    let provisioner = claim.annotations.get(Annotation::StorageProvisioner)?;
    let record = known.record(&claim.meta.uid).and_then(|record| Recorded::of(record).ok());
    if claim.volume.is_some() && record.is_none() {
        return None;
    }
    let last = last_event(claim, events);
    Some(Provisioning {
        provisioner: provisioner.clone(),
        request: request(known, claim, record.as_ref()),
        is_outcome_unknown: record.is_some(),
        next_attempt: last
            .and_then(|event| event["metadata"]["annotations"][Event::NEXT_TRY].as_str())
            .map(str::to_owned),
        last_event: last.map(parse),
    })
}

/// What the provisioner is asked to create.
fn request(known: &Cache, claim: &Claim, record: Option<&Recorded>) -> String {
    let mut words = vec![format!("{} of class {}", claim.requested().as_str(), claim.class())];
    if claim.volume_mode.as_str() == "Block" {
        words.push("as a block device".into());
    }
    if let Some(source) = &claim.source {
        words.push(format!("restored from {} {}", source.kind, source.name));
    }
    let chosen = claim.annotations.get(Annotation::SelectedNode).filter(|node| !node.is_empty());
    if let Some(node) = record.and_then(|record| record.node.as_ref()).or(chosen) {
        let missing = if known.node(node).is_some() { "" } else { ", which does not exist" };
        words.push(format!("for node {node}{missing}"));
    }
    if let Some(first) = record.and_then(|record| record.topology.as_ref()?.preferred.first()) {
        words.push(format!("reachable from {}", topology(first)));
    }
    words.join(", ")
}

fn topology(term: &Term) -> String {
    let labels: Vec<String> = term.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.join(",")
}

/// The last event of a provisioner about a claim; outcomes take precedence over attempts.
fn last_event<'a>(claim: &Claim, events: &'a [Value]) -> Option<&'a Value> {
    let reasons = [
        Reason::ProvisioningFailed,
        Reason::ProvisioningCleanupFailed,
        Reason::ProvisioningSucceeded,
        Reason::Provisioning,
    ];
    let is_one = |event: &&Value| {
        event["involvedObject"]["uid"] == *claim.meta.uid.as_str()
            && reasons.iter().any(|reason| event["reason"] == reason.as_str())
    };
    // Of several events in one second, an outcome says more than an attempt.
    let rank = |event: &&Value| {
        let begins = event["reason"] == Reason::Provisioning.as_str();
        (event["lastTimestamp"].as_str().unwrap_or_default().to_owned(), !begins)
    };
    let outcomes = events.iter().filter(is_one).filter(|event| event["reason"] != Reason::Provisioning.as_str());
    outcomes.max_by_key(rank).or_else(|| events.iter().filter(is_one).max_by_key(rank))
}

fn parse(event: &Value) -> LastEvent {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    LastEvent {
        reason: text(&event["reason"]),
        message: text(&event["message"]),
        at: text(&event["lastTimestamp"]),
        count: event["count"].as_i64().unwrap_or(1),
    }
}

impl Provisioning {
    /// The lines of the text output, with labels.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let unknown = if self.is_outcome_unknown { "; the outcome of the last call is unknown" } else { "" };
        let mut facts = vec![("provisioner", format!("{}: {}{unknown}", self.provisioner, self.request))];
        facts.push(match &self.last_event {
            Some(event) => {
                let times = if event.count > 1 { format!(", {} times", event.count) } else { String::new() };
                ("last event", format!("{}: {} (at {}{times})", event.reason, event.message, event.at))
            }
            None => ("last event", "none so far: is the provisioner running?".into()),
        });
        facts.extend(self.next_attempt.iter().map(|moment| ("next attempt", format!("at {moment}"))));
        facts
    }
}
