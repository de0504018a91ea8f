//! What a verdict does next, in words; and which volume it binds, if that is what it does.

use bindery_binder::rules;
use bindery_cache::Cache;
use bindery_model::{Claim, Kind, Name, ObjectKey};
use bindery_rules_api::{Action, Edit, LiveReads, Operation, Request, Rule, RuleSet, Verdict, Write};

use crate::Next;

/// The most live reads that one decision makes; more is a defect.
const READS_MAX: usize = 8;

/// What a rule set says about a key when every live read and list finds what is known.
pub(crate) fn verdict(rules: &dyn RuleSet, known: &Cache, key: &ObjectKey) -> Verdict {
    let mut live_reads = LiveReads::default();
    let mut verdict = rules.decide(known, key, &live_reads);
    for _ in 0..READS_MAX {
        match &verdict.action {
            Action::Request(Request::Read(wanted)) => live_reads.note_read(wanted.clone(), known.object(wanted)),
            Action::Request(Request::List(listing)) => {
                let is_there = |key: &ObjectKey| listing.namespace.is_empty() || key.namespace == listing.namespace;
                let keys = known.keys(listing.kind).into_iter().filter(is_there);
                live_reads.note_list(listing.clone(), keys.filter_map(|key| known.object(&key)).collect());
            }
            Action::Request(Request::Write(_) | Request::Create(_) | Request::Bind(_))
            | Action::Request(Request::Delete(_) | Request::RunOperation(_))
            | Action::Idle
            | Action::HandOff(_)
            | Action::Retry(_)
            | Action::Pause(_) => break,
        }
        verdict = rules.decide(known, key, &live_reads);
    }
    verdict
}

/// The volume that a verdict about a claim binds it to: when its next step is one of a bind, or when nothing is missing of it.
pub(crate) fn bound_volume(claim: &Claim, verdict: &Verdict) -> Option<(Name, bool)> {
    match &verdict.action {
        Action::Request(Request::Write(write)) => written_bind(claim, write).map(|volume| (volume, false)),
        Action::Idle if verdict.rule == &rules::CLAIM_BOUND => claim.volume.clone().map(|volume| (volume, true)),
        Action::Idle | Action::HandOff(_) | Action::Retry(_) | Action::Pause(_) => None,
        Action::Request(Request::Create(_) | Request::Bind(_) | Request::Delete(_)) => None,
        Action::Request(Request::Read(_) | Request::List(_) | Request::RunOperation(_)) => None,
    }
}

fn written_bind(claim: &Claim, write: &Write) -> Option<Name> {
    let steps = [&rules::BIND_RESERVE, &rules::BIND_MARK_VOLUME, &rules::BIND_POINT, &rules::BIND_MARK_CLAIM];
    if !steps.contains(&write.purpose) {
        return None;
    }
    match (write.target().kind, write.edit()) {
        (Kind::Volume, _) => Some(write.target().name.clone()),
        (_, Edit::Claim(edit)) => edit.volume.clone().or_else(|| claim.volume.clone()),
        (
            _,
            Edit::ClaimStatus(_)
            | Edit::ClaimReport(_)
            | Edit::Volume(_)
            | Edit::VolumeStatus(_)
            | Edit::PodStatus(_)
            | Edit::Protection(_),
        ) => claim.volume.clone(),
    }
}

/// What a verdict does next.
pub(crate) fn next(verdict: &Verdict) -> Next {
    match &verdict.action {
        Action::Idle => say("nothing", None, "nothing, until something changes".into()),
        Action::HandOff(to) if to.kind == Kind::Claim => {
            say("offer", None, format!("{} is decided about first: it may take this volume", to.claim_key()))
        }
        Action::HandOff(to) => say("offer", None, format!("{to} is decided about first")),
        Action::Retry(_) => say("retry", None, "looks again after a while, longer each time".into()),
        Action::Pause(duration) => say("retry", None, format!("looks again in {} s", duration.as_secs())),
        Action::Request(request) => of_request(request),
    }
}

fn of_request(request: &Request) -> Next {
    match request {
        Request::Write(write) => {
            say("write", Some(write.purpose), format!("writes {}: {}", write.target(), write.purpose.why))
        }
        Request::Create(create) => {
            say("create", Some(create.purpose), format!("creates {}: {}", create.key, create.purpose.why))
        }
        Request::Bind(bind) => say(
            "bind",
            Some(bind.purpose),
            format!("gives {} the node {}: {}", bind.target(), bind.node(), bind.purpose.why),
        ),
        Request::Delete(delete) => {
            let name = delete.proof().name();
            say("delete", Some(delete.purpose), format!("deletes PersistentVolume {name}: {}", delete.purpose.why))
        }
        Request::Read(key) => say("read", None, format!("reads {key} live")),
        Request::List(listing) => {
            let kind = listing.kind.as_str();
            let place = if listing.namespace.is_empty() { "".into() } else { format!(" in {}", listing.namespace) };
            say("list", None, format!("lists every {kind}{place} live"))
        }
        Request::RunOperation(operation) => say("operate", None, of_operation(operation)),
    }
}

fn of_operation(operation: &Operation) -> String {
    match operation {
        Operation::Recycle(_) => "scrubs the volume with a pod".into(),
        Operation::Prepare(order) => format!("finds out what to ask the storage for, to make {}", order.volume),
        Operation::CreateStorage(order, _) => format!("asks the storage to make {}", order.volume),
        Operation::DiscardStorage(claim, _) => format!("asks the storage to remove what was made for {claim} in vain"),
        Operation::DeleteStorage(proof, _) => format!("asks the storage to remove what lies behind {}", proof.name()),
    }
}

fn say(action: &'static str, step: Option<&'static Rule>, text: String) -> Next {
    Next { action, step: step.map(|rule| rule.name), text }
}
