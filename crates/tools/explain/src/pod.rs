//! Explaining a pod: why it has no node, or what of its volumes on the node that it has.

use bindery_cache::Cache;
use bindery_model::{Claim, ClaimPhase, Kind, Name, Pod, PodKey, PodPhase, PodVolume};
use bindery_rules_api::{Action, LiveReads, Rule, RuleSet, Verdict};
use bindery_scheduler::{Scheduler, rules};

use crate::claim::events;
use crate::matrix::Asked;
use crate::{Candidate, Change, Explanation, Matrix, Next, NotFound, beside, change, next};

/// Why a pod has no node, or how its volumes are on the one that it has: a line for each that is a claim's, and a table of at most so
/// many nodes. Its own scheduler may be another: it is told what ours does with such a pod.
pub fn explain_pod(known: &Cache, key: &PodKey, rows_max: usize) -> Result<Explanation, NotFound> {
    let pod = known.pod(key).ok_or_else(|| NotFound(key.clone().into()))?;
    let scheduler = Scheduler::new(pod.scheduling.scheduler.clone());
    let verdict = scheduler.decide_ignoring_queue(known, key);
    let events = events(&verdict);
    let lines: Vec<Candidate> = pod.volumes.iter().map(|volume| line(known, pod, volume)).collect();
    let sight = Sight::of(known, &scheduler, pod, rows_max);
    let waits_for = waits_for(pod, verdict.rule, &lines, &sight);
    Ok(Explanation {
        kind: Kind::Pod.as_str(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        phase: phase(pod),
        is_deleting: pod.deleting,
        rule: verdict.rule.name,
        reason: verdict.rule.why,
        note: note(&scheduler, known, key, &verdict, &events),
        events,
        terms: None,
        next: next_of(&verdict),
        bind: None,
        beside: beside::of_pod(known, key),
        provisioning: None,
        waits_for,
        candidates: lines,
        more: Vec::new(),
        matrix: sight.matrix,
        change: sight.change,
    })
}

/// What is to be seen of the nodes.
#[derive(Default)]
struct Sight {
    matrix: Option<Matrix>,
    /// The node that the pod goes to, if one will do.
    node: Option<Name>,
    change: Option<Change>,
}

impl Sight {
    fn of(known: &Cache, scheduler: &Scheduler, pod: &Pod, rows_max: usize) -> Sight {
        if pod.field_error.is_some() || pod.is_finished() || pod.deleting {
            return Sight::default();
        }
        let asked = Asked::about(known, pod);
        if !pod.node.is_empty() {
            let own = known.node(&pod.node).filter(|_| !asked.claims.is_empty());
            return Sight { matrix: own.map(|node| asked.of_its_node(node)), ..Sight::default() };
        }
        let all = asked.assess();
        let node = scheduler.node_for(known, pod);
        let fits = asked.refused.is_empty() && all.iter().any(|asking| asking.obstacle_count() == 0);
        let change = (!fits || pod.scheduling.is_gated).then(|| change::smallest(&asked, &all)).flatten();
        let matrix = (!all.is_empty()).then(|| asked.matrix(&all, node.as_ref(), rows_max));
        Sight { matrix, node, change }
    }
}

/// What is particular about this case, unless an event says it; and who goes first.
fn note(scheduler: &Scheduler, known: &Cache, key: &PodKey, verdict: &Verdict, events: &[String]) -> Option<String> {
    let note = verdict.note.clone().filter(|note| !events.iter().any(|event| event.contains(note.as_str())));
    let in_turn = scheduler.decide(known, &key.clone().into(), &LiveReads::default());
    let first = match &in_turn.action {
        Action::HandOff(first) => Some(format!("{} goes first", first.pod_key())),
        Action::Settle | Action::Request(_) | Action::Retry(_) | Action::Pause(_) => None,
    };
    match (note, first) {
        (Some(note), Some(first)) => Some(format!("{note}; {first}")),
        (note, first) => note.or(first),
    }
}

/// What is done next. What the rule says was said.
fn next_of(verdict: &Verdict) -> Next {
    let next = next::next(verdict);
    let text = next.text.strip_suffix(verdict.rule.why).map(|text| text.trim_end_matches(": ").to_owned());
    Next { text: text.unwrap_or(next.text), ..next }
}

fn phase(pod: &Pod) -> String {
    match pod.phase {
        PodPhase::Succeeded => "Succeeded".into(),
        PodPhase::Failed => "Failed".into(),
        PodPhase::Active if pod.node.is_empty() => "waiting for a node".into(),
        PodPhase::Active => format!("on node {}", pod.node),
    }
}

/// What has to happen for the pod to go on; nothing when it does not wait.
fn waits_for(pod: &Pod, rule: &Rule, lines: &[Candidate], sight: &Sight) -> Option<String> {
    if pod.is_terminated() || pod.deleting {
        return None;
    }
    let missing: Vec<&str> = lines.iter().filter(|line| !line.fits).map(|line| line.name.as_str()).collect();
    let are_bound = match missing.as_slice() {
        [] => None,
        [one] => Some(format!("claim {one} is bound")),
        several => Some(format!("claims {} are bound", several.join(", "))),
    };
    if !pod.node.is_empty() {
        return are_bound.map(|are_bound| format!("Its volumes are there when {are_bound}."));
    }
    if pod.field_error.is_some() {
        return Some("It goes on when that field is mended.".into());
    }
    Some(match (&sight.change, &sight.node, are_bound) {
        (Some(Change { node, steps }), _, _) => {
            format!("Smallest change: {}. Then it can be placed on node {node}.", steps.join("; and "))
        }
        (None, Some(node), Some(are_bound)) => format!("It is given node {node} when {are_bound}."),
        (None, Some(node), None) => format!("It is given node {node}."),
        (None, None, _) if rule == &rules::NO_NODES => "It goes on when there is a node.".into(),
        (None, None, Some(are_bound)) if rule == &rules::WAITS_FOR_VOLUMES => {
            format!("It is given node {} when {are_bound}.", pod.scheduling.nominated_node)
        }
        (None, None, _) if rule == &rules::PROVISIONING_FAILED => "It is tried again after a pause.".into(),
        (None, None, _) => "No small change was found that would let it be placed.".into(),
    })
}

/// How the claim of a volume stands.
fn line(known: &Cache, pod: &Pod, volume: &PodVolume) -> Candidate {
    let key = pod.claim_key(volume);
    let claim = known.claim(&key);
    let is_its_own = |claim: &Claim| !volume.is_ephemeral() || pod.owns(claim);
    let fits = claim.is_some_and(|claim| is_its_own(claim) && claim.status.phase == ClaimPhase::Bound);
    let name = &volume.name;
    let of = if volume.is_ephemeral() { format!("ephemeral volume {name}") } else { format!("volume {name}") };
    let how = match claim {
        None if volume.is_ephemeral() => "its claim does not exist yet".into(),
        None => "its claim does not exist".into(),
        Some(claim) if !is_its_own(claim) => "a claim of that name is there, and was not made for this pod".into(),
        Some(claim) => state(claim),
    };
    Candidate { name: key.name.to_string(), fits, why: vec![of, how] }
}

fn state(claim: &Claim) -> String {
    let phase = claim.status.phase.as_str();
    let deleting = if claim.deleting { ", being deleted" } else { "" };
    match &claim.volume {
        Some(volume) => format!("{phase} to {volume}{deleting}"),
        None => format!("{phase}{deleting}: see bindery explain pvc/{}", claim.meta.name),
    }
}
