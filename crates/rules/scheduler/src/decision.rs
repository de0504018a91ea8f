//! What is next for a pod.

use std::sync::Arc;
use std::time::Duration;

use bindery_cache::Cache;
use bindery_model::event::{EventType, Reason as Why};
use bindery_model::{Annotation, Claim, Name, Node, ObjectKey, Pod, PodKey};
use bindery_placement::{Found, Obstacle, Plan, Refusal, Step, User};
use bindery_rules_api::{Action, Bind, Event, LiveReads, PodStatusEdit, Request, Rule, Verdict, Write};

use crate::look::Look;
use crate::message::{Count, refused};
use crate::reason::Reason;
use crate::{Scheduler, rules, score};

/// How long to wait before a node is tried again on which a volume could not be made, when there is no other.
const BEFORE_AGAIN: Duration = Duration::from_secs(1);

/// A node that will do, and what it has for the pod's claims.
struct Fit<'a> {
    node: &'a Arc<Node>,
    found: Found<'a>,
}

pub(crate) fn decide(scheduler: &Scheduler, known: &Cache, key: &PodKey, live_reads: &LiveReads) -> Verdict {
    let pod = match to_place(scheduler, known, key) {
        Ok(pod) => pod,
        Err(verdict) => return *verdict,
    };
    if let Some(first) = goes_before(scheduler, known, pod, live_reads) {
        return Verdict::new(&rules::AFTER_ANOTHER, Action::HandOff(first));
    }
    place(scheduler, known, pod, live_reads)
}

/// The same, as if it were the pod's turn.
pub(crate) fn decide_out_of_turn(scheduler: &Scheduler, known: &Cache, key: &PodKey) -> Verdict {
    match to_place(scheduler, known, key) {
        Ok(pod) => place(scheduler, known, pod, &LiveReads::default()),
        Err(verdict) => *verdict,
    }
}

/// The pod, if it is to be placed.
fn to_place<'k>(scheduler: &Scheduler, known: &'k Cache, key: &PodKey) -> Result<&'k Arc<Pod>, Box<Verdict>> {
    let settled = |rule| Err(Verdict::idle(rule).into());
    let Some(pod) = known.pod(key) else { return settled(&rules::POD_GONE) };
    if !scheduler.is_ours(pod) {
        settled(&rules::NOT_OURS)
    } else if !pod.node.is_empty() {
        settled(&rules::PLACED)
    } else if pod.is_over() || pod.deleting {
        settled(&rules::OVER)
    } else if let Some(flaw) = &pod.flaw {
        Err(Verdict::idle(&rules::POD_MALFORMED).with_note(flaw.to_string()).into())
    } else if pod.scheduling.is_gated {
        settled(&rules::GATED)
    } else {
        Ok(pod)
    }
}

/// A pod that matters more, or as much and has waited longer, and was not looked at yet.
fn goes_before(scheduler: &Scheduler, known: &Cache, pod: &Pod, live_reads: &LiveReads) -> Option<ObjectKey> {
    let turn = pod.turn();
    let new = known.tenants().new_before(&turn).filter_map(|key| known.pod(key));
    let keys = new.filter(|other| scheduler.is_ours(other)).map(|other| ObjectKey::from(other.key()));
    keys.into_iter().find(|key| !live_reads.was_handed_to(key))
}

fn place(scheduler: &Scheduler, known: &Cache, pod: &Pod, live_reads: &LiveReads) -> Verdict {
    let all = known.nodes().count();
    if all == 0 {
        return unschedulable(&rules::NO_NODES, pod, "no nodes available to schedule pods".into());
    }
    if pod.scheduling.has_device_claims {
        let why = "the pod has resource claims, which this scheduler does not allocate: name one that does in spec.schedulerName";
        return unschedulable(&rules::DEVICES, pod, format!("0/{all} nodes are available: {why}."));
    }
    let look = match Look::at(known, pod) {
        Ok(look) => look,
        // What was made for it is told of after the claim that has it.
        Err(Refusal::VolumeMissing(volume)) if is_nominated(pod) => return awaits(pod, &volume),
        Err(refusal) => return unschedulable(&rules::REFUSED, pod, refused(all, &refusal)),
    };
    match fits(known, pod, &look) {
        Ok(fits) => match choose(scheduler, known, pod, fits, live_reads) {
            Some(chosen) => proceed(known, pod, &chosen),
            None => Verdict::new(&rules::ELSEWHERE, Action::Pause(BEFORE_AGAIN)),
        },
        Err(verdict) => *verdict,
    }
}

/// The nodes that will do; what is to be done about the pod where there are none.
fn fits<'l>(known: &'l Cache, pod: &Pod, look: &'l Look<'_>) -> Result<Vec<Fit<'l>>, Box<Verdict>> {
    let mut fits = Vec::new();
    let mut count = Count::default();
    for node in known.nodes() {
        let answer = look.ask(node).map_err(|fault| unschedulable(&rules::FAULT, pod, fault.to_string()))?;
        if answer.against == [Reason::Volumes(Obstacle::VolumeMissing)] && is_meant(pod, node) {
            return Err(awaits(pod, &Name::default()).into());
        }
        count.note(&answer.against);
        if answer.against.is_empty() {
            fits.push(Fit { node, found: answer.found });
        }
    }
    match fits.is_empty() {
        true => Err(unschedulable(&rules::UNSCHEDULABLE, pod, count.line()).into()),
        false => Ok(fits),
    }
}

/// The node that a pod would be given, or is on its way to.
pub(crate) fn node_for(scheduler: &Scheduler, known: &Cache, pod: &Pod) -> Option<Name> {
    let look = Look::at(known, pod).ok()?;
    let fits = fits(known, pod, &look).ok()?;
    choose(scheduler, known, pod, fits, &LiveReads::default()).map(|chosen| chosen.fit.node.name().clone())
}

fn is_nominated(pod: &Pod) -> bool {
    !pod.scheduling.nominated.is_empty()
}

fn is_meant(pod: &Pod, node: &Node) -> bool {
    pod.scheduling.nominated == *node.name()
}

/// A volume that a claim of the pod has was not heard of yet, or is gone: then its claim is lost, and that is told.
fn awaits(pod: &Pod, volume: &Name) -> Verdict {
    let node = &pod.scheduling.nominated;
    Verdict::idle(&rules::WAITS_FOR_VOLUMES).with_note(format!("on node {node}: volume {volume} is awaited"))
}

/// The node to go on with.
struct Chosen<'a> {
    fit: Fit<'a>,
    /// Whether a volume could not be made on the node that was meant for the pod before.
    is_after_failure: bool,
}

/// The node to go on with; none when it is the one on which a volume could not be made, and that is to be tried again later.
fn choose<'a>(
    scheduler: &Scheduler,
    known: &Cache,
    pod: &Pod,
    mut fits: Vec<Fit<'a>>,
    live_reads: &LiveReads,
) -> Option<Chosen<'a>> {
    let nominated = &pod.scheduling.nominated;
    let mut is_after_failure = false;
    if let Some(place) = fits.iter().position(|fit| fit.node.name() == nominated) {
        is_after_failure = fits[place].found.provisions.iter().any(|making| has_failed(making.claim));
        if !is_after_failure {
            return Some(Chosen { fit: fits.swap_remove(place), is_after_failure });
        }
        if fits.len() > 1 {
            fits.swap_remove(place);
        } else if live_reads.pause_count() == 0 {
            return None;
        }
    }
    let merits: Vec<_> =
        fits.iter().map(|fit| score::merits(known, pod, fit.node, scheduler.shape.score(&fit.found))).collect();
    let scored = score::scores(&merits).into_iter().zip(fits);
    // The best; of several the first by name.
    let best = scored.min_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.node.name().cmp(other.node.name())));
    best.map(|(_, fit)| Chosen { fit, is_after_failure })
}

/// Whether a volume was asked for on a node, and the node was taken away from the claim again: it could not be made there.
fn has_failed(claim: &Claim) -> bool {
    claim.annotations.has(Annotation::StorageProvisioner) && !claim.annotations.has(Annotation::SelectedNode)
}

/// The next step on the way to a node.
fn proceed(known: &Cache, pod: &Pod, chosen: &Chosen<'_>) -> Verdict {
    let Chosen { fit, is_after_failure } = chosen;
    let node = fit.node.name();
    let is_nominated = is_meant(pod, fit.node);
    let is_ready = fit.found.bindings.is_empty() && fit.found.provisions.is_empty();
    if is_ready {
        return bind(pod, node);
    }
    let Some(plan) = Plan::new(User::of(pod), fit.node, &fit.found) else {
        return unschedulable(&rules::FAULT, pod, format!("what was found on node {node} does not fit"));
    };
    // Others are to leave room for it from here on. Only after a failure it must show on the claim first that another node is
    // meant, or the new one would be taken for the one that failed.
    if !is_nominated && !is_after_failure {
        return nominate(pod, node);
    }
    match plan.next(known) {
        Step::Write(write) => Verdict::write(&rules::VOLUMES, *write).with_note(format!("on node {node}")),
        Step::Done => bind(pod, node),
        Step::Wait if !is_nominated => nominate(pod, node),
        Step::Wait => Verdict::idle(&rules::WAITS_FOR_VOLUMES).with_note(format!("on node {node}")),
        Step::Fail(failure) => {
            let message = format!("running PreBind plugin \"VolumeBinding\": binding volumes: {failure}");
            unschedulable(&rules::FAULT, pod, message)
        }
    }
}

fn nominate(pod: &Pod, node: &Name) -> Verdict {
    let edit = PodStatusEdit { nominated: Some(node.clone()), unschedulable: None };
    Verdict::write(&rules::NOMINATE, Write::pod(&rules::NOMINATE, pod, edit)).with_note(format!("node {node}"))
}

fn bind(pod: &Pod, node: &Name) -> Verdict {
    let message = format!("Successfully assigned {} to {node}", pod.key());
    let bind = Bind::new(&rules::BIND, pod, node);
    let bind = bind.then(Event::pod(pod, EventType::Normal, Why::Scheduled, message));
    Verdict::request(&rules::BIND, Request::Bind(bind)).with_note(format!("to node {node}"))
}

/// No node will do: it is told, and written on the pod.
fn unschedulable(rule: &'static Rule, pod: &Pod, message: String) -> Verdict {
    let notice = Event::pod(pod, EventType::Warning, Why::FailedScheduling, message.clone());
    let is_said = pod.scheduling.unschedulable.as_deref() == Some(message.as_str());
    let edit = PodStatusEdit {
        nominated: (!pod.scheduling.nominated.is_empty()).then(Name::default),
        unschedulable: (!is_said).then(|| message.as_str().into()),
    };
    let verdict = match edit == PodStatusEdit::default() {
        true => Verdict::idle(rule),
        false => Verdict::write(rule, Write::pod(rule, pod, edit)),
    };
    verdict.with_note(message).publish(notice)
}
