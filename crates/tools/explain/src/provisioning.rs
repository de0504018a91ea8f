//! A claim that waits for its provisioner: what was asked, what was answered last, and when it is asked again.

use bindery_cache::Cache;
use bindery_model::event::Reason;
use bindery_model::{Annotation, Claim, Name};
use bindery_provisioner::Intent;
use bindery_rules_api::{Event, Term};
use serde::Serialize;
use serde_json::Value;

/// What is known of a claim's provisioning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provisioning {
    /// Who is asked.
    pub provisioner: Name,
    /// What for, in words.
    pub asked: String,
    /// Whether the storage was asked, and nobody knows what came of it.
    pub is_uncertain: bool,
    /// What was last said of it.
    pub last: Option<Said>,
    /// When it is tried again, where that is known (RFC 3339).
    pub next_try: Option<String>,
}

/// What a provisioner said of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// The reason of the event.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// When it was said last (RFC 3339).
    pub at: String,
    /// How often.
    pub count: i64,
}

/// What is known of a claim's provisioning, from the claim and from the events about it; nothing where nobody is asked, or where
/// it has its volume.
pub fn provisioning(known: &Cache, claim: &Claim, events: &[Value]) -> Option<Provisioning> {
    let provisioner = claim.annotations.get(Annotation::StorageProvisioner)?;
    let intent = claim.annotations.get(Annotation::Provisioning).and_then(|text| Intent::parse(text));
    if claim.volume.is_some() && intent.is_none() {
        return None;
    }
    let last = last_said(claim, events);
    Some(Provisioning {
        provisioner: provisioner.clone(),
        asked: asked(known, claim, intent.as_ref()),
        is_uncertain: intent.is_some(),
        next_try: last.and_then(|event| event["metadata"]["annotations"][Event::NEXT_TRY].as_str()).map(str::to_owned),
        last: last.map(said),
    })
}

/// What the storage is asked for.
fn asked(known: &Cache, claim: &Claim, intent: Option<&Intent>) -> String {
    let mut words = vec![format!("{} of class {}", claim.requested().as_str(), claim.class())];
    if claim.volume_mode.as_str() == "Block" {
        words.push("as a block device".into());
    }
    if let Some(source) = &claim.source {
        words.push(format!("filled from {} {}", source.kind, source.name));
    }
    let chosen = claim.annotations.get(Annotation::SelectedNode).filter(|node| !node.is_empty());
    if let Some(node) = intent.and_then(|intent| intent.node.as_ref()).or(chosen) {
        let gone = if known.node(node).is_some() { "" } else { ", which does not exist" };
        words.push(format!("for node {node}{gone}"));
    }
    if let Some(first) = intent.and_then(|intent| intent.topology.as_ref()?.preferred.first()) {
        words.push(format!("reachable from {}", place(first)));
    }
    words.join(", ")
}

fn place(term: &Term) -> String {
    let labels: Vec<String> = term.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.join(",")
}

/// The last event of a provisioner about a claim.
fn last_said<'a>(claim: &Claim, events: &'a [Value]) -> Option<&'a Value> {
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
    // Of several of one second, an answer says more than that it was asked.
    let rank = |event: &&Value| {
        let begins = event["reason"] == Reason::Provisioning.as_str();
        (event["lastTimestamp"].as_str().unwrap_or_default().to_owned(), !begins)
    };
    let failed = events.iter().filter(is_one).filter(|event| event["reason"] != Reason::Provisioning.as_str());
    failed.max_by_key(rank).or_else(|| events.iter().filter(is_one).max_by_key(rank))
}

fn said(event: &Value) -> Said {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Said {
        reason: text(&event["reason"]),
        message: text(&event["message"]),
        at: text(&event["lastTimestamp"]),
        count: event["count"].as_i64().unwrap_or(1),
    }
}

impl Provisioning {
    /// In words, with labels.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let uncertain = if self.is_uncertain { "; nobody knows yet what came of it" } else { "" };
        let mut facts = vec![("asked", format!("{} for {}{uncertain}", self.provisioner, self.asked))];
        facts.push(match &self.last {
            Some(said) => {
                let times = if said.count > 1 { format!(", {} times", said.count) } else { String::new() };
                ("answer", format!("{}: {} (at {}{times})", said.reason, said.message, said.at))
            }
            None => ("answer", "none so far: is the provisioner running?".into()),
        });
        facts.extend(self.next_try.iter().map(|moment| ("next try", format!("at {moment}"))));
        facts
    }
}
