//! The next step of a verdict, and the volume that it binds, if any.

use bindery_binder::rules;
use bindery_cache::Cache;
use bindery_model::{Claim, Kind, Name, ObjectKey};
use bindery_rules_api::{Action, Edit, LiveReads, Operation, RecycleStep, Request, Rule, RuleSet, Verdict, Write};

use crate::NextStep;

/// The most live reads of one decision. More would be a defect.
const READS_MAX: usize = 8;

/// The verdict about a key if every live read and list returns what the cache contains.
pub(crate) fn verdict(rules: &dyn RuleSet, known: &Cache, key: &ObjectKey) -> Verdict {
    let mut live_reads = LiveReads::default();
    let mut verdict = rules.decide(known, key, &live_reads);
    for _ in 0..READS_MAX {
        match &verdict.action {
            Action::Request(Request::Read(key)) => live_reads.note_read(key.clone(), known.object(key)),
            Action::Request(Request::List(listing)) => {
                let is_listed = |key: &ObjectKey| listing.namespace.is_empty() || key.namespace == listing.namespace;
                let keys = known.keys(listing.kind).into_iter().filter(is_listed);
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

/// The volume that a verdict binds a claim to, and whether the bind is complete.
pub(crate) fn bound_volume(claim: &Claim, verdict: &Verdict) -> Option<(Name, bool)> {
    match &verdict.action {
        Action::Request(Request::Write(write)) => bind_target(claim, write).map(|volume| (volume, false)),
        Action::Idle if verdict.rule == &rules::CLAIM_BOUND => claim.volume.clone().map(|volume| (volume, true)),
        Action::Idle | Action::HandOff(_) | Action::Retry(_) | Action::Pause(_) => None,
        Action::Request(Request::Create(_) | Request::Bind(_) | Request::Delete(_)) => None,
        Action::Request(Request::Read(_) | Request::List(_) | Request::RunOperation(_)) => None,
    }
}

fn bind_target(claim: &Claim, write: &Write) -> Option<Name> {
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
            | Edit::Protection(_)
            | Edit::Record(_),
        ) => claim.volume.clone(),
    }
}

/// The next step of a verdict.
pub(crate) fn of_verdict(verdict: &Verdict) -> NextStep {
    match &verdict.action {
        Action::Idle => step("nothing", None, "nothing, until something changes".into()),
        Action::HandOff(to) if to.kind == Kind::Claim => step(
            "hand-off",
            None,
            format!("claim {} is decided first, because it may bind this volume", to.claim_key()),
        ),
        Action::HandOff(to) => step("hand-off", None, format!("{to} is decided first")),
        Action::Retry(_) => step("retry", None, "retries with exponential back-off".into()),
        Action::Pause(duration) => step("retry", None, format!("checks again in {} s", duration.as_secs())),
        Action::Request(request) => of_request(request),
    }
}

fn of_request(request: &Request) -> NextStep {
    match request {
        Request::Write(write) => {
            step("write", Some(write.purpose), format!("updates {}: {}", write.target(), write.purpose.why))
        }
        Request::Create(create) => {
            step("create", Some(create.purpose), format!("creates {}: {}", create.key, create.purpose.why))
        }
        Request::Bind(bind) => step(
            "bind",
            Some(bind.purpose),
            format!("binds {} to node {}: {}", bind.target(), bind.node(), bind.purpose.why),
        ),
        Request::Delete(delete) => {
            let name = delete.proof().name();
            step("delete", Some(delete.purpose), format!("deletes PersistentVolume {name}: {}", delete.purpose.why))
        }
        Request::Read(key) => step("read", None, format!("reads {key} from the API server")),
        Request::List(listing) => {
            let kind = listing.kind.as_str();
            let namespace = match listing.namespace.is_empty() {
                true => String::new(),
                false => format!(" in namespace {}", listing.namespace),
            };
            step("list", None, format!("lists every {kind}{namespace} from the API server"))
        }
        Request::RunOperation(operation) => step("operation", None, operation_text(operation)),
    }
}

fn operation_text(operation: &Operation) -> String {
    match operation {
        Operation::Recycle(recycle) => match &recycle.step {
            RecycleStep::CreatePod { .. } => "creates a recycler pod that does not run yet".into(),
            RecycleStep::RunPod(_) => "scrubs the volume with a recycler pod".into(),
            RecycleStep::DeletePod { .. } => "deletes the recycler pod".into(),
        },
        Operation::Prepare(order) => format!("prepares the request to provision {}", order.volume),
        Operation::CreateStorage(order, _) => format!("provisions {}", order.volume),
        Operation::DiscardStorage(claim, _) => format!("deletes the unused storage that was provisioned for {claim}"),
        Operation::DeleteStorage(proof, _) => format!("deletes the backing storage of {}", proof.name()),
    }
}

fn step(action: &'static str, step: Option<&'static Rule>, text: String) -> NextStep {
    NextStep { action, step: step.map(|rule| rule.name), text }
}
