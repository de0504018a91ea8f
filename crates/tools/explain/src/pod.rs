//! Explaining a pod: why it has no node, or the state of its volumes on its node.

use bindery_cache::Cache;
use bindery_model::{Claim, ClaimPhase, Kind, Name, Pod, PodKey, PodPhase, PodVolume};
use bindery_rules_api::{Action, LiveReads, Rule, RuleSet, Verdict};
use bindery_scheduler::{Scheduler, rules};

use crate::claim::events;
use crate::node_matrix::PodPlacement;
use crate::{Candidate, Change, Explanation, Matrix, NextStep, NotFound, lifecycle, next_step, smallest_change};

/// Explains a pod: a line for each of its claims, and a table of at most `rows_max` nodes. A pod of
/// another scheduler is explained as if ours were responsible for it.
pub fn explain_pod(known: &Cache, key: &PodKey, rows_max: usize) -> Result<Explanation, NotFound> {
    let pod = known.pod(key).ok_or_else(|| NotFound(key.clone().into()))?;
    let scheduler = Scheduler::new(pod.scheduling.scheduler.clone());
    let verdict = scheduler.decide_ignoring_queue(known, key);
    let events = events(&verdict);
    let lines: Vec<Candidate> = pod.volumes.iter().map(|volume| line(known, pod, volume)).collect();
    let nodes = Nodes::of(known, &scheduler, pod, rows_max);
    let waits_for = waits_for(pod, verdict.rule, &lines, &nodes);
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
        next: next_without_rule(&verdict),
        bind: None,
        controllers: lifecycle::of_pod(known, key),
        provisioning: None,
        rejected: None,
        waits_for,
        candidates: lines,
        more: Vec::new(),
        matrix: nodes.matrix,
        change: nodes.change,
    })
}

/// The evaluation of the nodes.
#[derive(Default)]
struct Nodes {
    matrix: Option<Matrix>,
    /// The node that the scheduler would choose.
    node: Option<Name>,
    change: Option<Change>,
}

impl Nodes {
    fn of(known: &Cache, scheduler: &Scheduler, pod: &Pod, rows_max: usize) -> Nodes {
        if pod.field_error.is_some() || pod.is_finished() || pod.deleting {
            return Nodes::default();
        }
        let placement = PodPlacement::new(known, pod);
        if !pod.node.is_empty() {
            let own = known.node(&pod.node).filter(|_| !placement.claims.is_empty());
            return Nodes { matrix: own.map(|node| placement.assigned_node(node)), ..Nodes::default() };
        }
        let all = placement.evaluate_all();
        let node = scheduler.node_for(known, pod);
        let fits = placement.refused.is_empty() && all.iter().any(|outlook| outlook.obstacle_count() == 0);
        let change = (!fits || pod.scheduling.is_gated).then(|| smallest_change::find(&placement, &all)).flatten();
        let matrix = (!all.is_empty()).then(|| placement.matrix(&all, node.as_ref(), rows_max));
        Nodes { matrix, node, change }
    }
}

/// Details of the verdict, unless an event contains them; and the pod that is scheduled first.
fn note(scheduler: &Scheduler, known: &Cache, key: &PodKey, verdict: &Verdict, events: &[String]) -> Option<String> {
    let note = verdict.note.clone().filter(|note| !events.iter().any(|event| event.contains(note.as_str())));
    let queued = scheduler.decide(known, &key.clone().into(), &LiveReads::default());
    let first = match &queued.action {
        Action::HandOff(first) => Some(format!("{} is scheduled first", first.pod_key())),
        Action::Idle | Action::Request(_) | Action::Retry(_) | Action::Pause(_) => None,
    };
    match (note, first) {
        (Some(note), Some(first)) => Some(format!("{note}; {first}")),
        (note, first) => note.or(first),
    }
}

/// The next step, without the rule's sentence, which is printed above it.
fn next_without_rule(verdict: &Verdict) -> NextStep {
    let next = next_step::of_verdict(verdict);
    let text = next.text.strip_suffix(verdict.rule.why).map(|text| text.trim_end_matches(": ").to_owned());
    NextStep { text: text.unwrap_or(next.text), ..next }
}

fn phase(pod: &Pod) -> String {
    match pod.phase {
        PodPhase::Succeeded => "Succeeded".into(),
        PodPhase::Failed => "Failed".into(),
        PodPhase::Active if pod.node.is_empty() => "waiting for a node".into(),
        PodPhase::Active => format!("on node {}", pod.node),
    }
}

/// What the pod waits for; `None` when it does not wait.
fn waits_for(pod: &Pod, rule: &Rule, lines: &[Candidate], nodes: &Nodes) -> Option<String> {
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
        return are_bound.map(|are_bound| format!("Its volumes are available when {are_bound}."));
    }
    if pod.field_error.is_some() {
        return Some("It proceeds when that field is fixed.".into());
    }
    Some(match (&nodes.change, &nodes.node, are_bound) {
        (Some(Change { node, steps }), _, _) => {
            format!("Smallest change: {}. Then it can be scheduled on node {node}.", steps.join("; and "))
        }
        (None, Some(node), Some(are_bound)) => format!("It is assigned to node {node} when {are_bound}."),
        (None, Some(node), None) => format!("It is assigned to node {node}."),
        (None, None, _) if rule == &rules::NO_NODES => "It proceeds when there is a node.".into(),
        (None, None, Some(are_bound)) if rule == &rules::WAITS_FOR_VOLUMES => {
            format!("It is assigned to node {} when {are_bound}.", pod.scheduling.nominated_node)
        }
        (None, None, _) if rule == &rules::PROVISIONING_FAILED => "It is retried after a back-off.".into(),
        (None, None, _) => "No small change was found that would make it schedulable.".into(),
    })
}

/// The state of the claim of a volume.
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
        Some(claim) if !is_its_own(claim) => "a claim of that name exists, but was not created for this pod".into(),
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
