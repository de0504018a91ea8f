//! What to do next for a pod.

use std::sync::Arc;
use std::time::Duration;

use bindery_cache::Cache;
use bindery_model::event::{EventType, Reason as EventReason};
use bindery_model::{Annotation, Claim, Name, Node, ObjectKey, Pod, PodKey};
use bindery_placement::{BindingPlan, NodeRejection, NodeVolumes, PodRejection, Step};
use bindery_rules_api::{Action, Bind, Event, LiveReads, PodStatusEdit, Request, Rule, Verdict, Write};

use crate::evaluation::Evaluation;
use crate::message::{ReasonCounts, rejected};
use crate::reason::Reason;
use crate::{Scheduler, rules, score};

/// How long to wait before retrying the only suitable node after provisioning failed there.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A suitable node, and its volumes for the pod's claims.
struct SuitableNode<'a> {
    node: &'a Arc<Node>,
    volumes: NodeVolumes<'a>,
}

pub(crate) fn decide(scheduler: &Scheduler, known: &Cache, key: &PodKey, live_reads: &LiveReads) -> Verdict {
    let pod = match schedulable(scheduler, known, key) {
        Ok(pod) => pod,
        Err(verdict) => return *verdict,
    };
    if let Some(first) = pod_ahead(scheduler, known, pod, live_reads) {
        return Verdict::new(&rules::AFTER_ANOTHER, Action::HandOff(first));
    }
    schedule(scheduler, known, pod, live_reads)
}

/// The same, regardless of pods before it in the queue.
pub(crate) fn decide_ignoring_queue(scheduler: &Scheduler, known: &Cache, key: &PodKey) -> Verdict {
    match schedulable(scheduler, known, key) {
        Ok(pod) => schedule(scheduler, known, pod, &LiveReads::default()),
        Err(verdict) => *verdict,
    }
}

/// The pod, if it is to be scheduled.
fn schedulable<'k>(scheduler: &Scheduler, known: &'k Cache, key: &PodKey) -> Result<&'k Arc<Pod>, Box<Verdict>> {
    let settled = |rule| Err(Verdict::idle(rule).into());
    let Some(pod) = known.pod(key) else { return settled(&rules::POD_GONE) };
    if !scheduler.is_ours(pod) {
        settled(&rules::NOT_OURS)
    } else if !pod.node.is_empty() {
        settled(&rules::ASSIGNED)
    } else if pod.is_finished() || pod.deleting {
        settled(&rules::FINISHED)
    } else if let Some(error) = &pod.field_error {
        Err(Verdict::idle(&rules::POD_MALFORMED).with_note(error.to_string()).into())
    } else if pod.scheduling.is_gated {
        settled(&rules::GATED)
    } else {
        Ok(pod)
    }
}

/// The first pod ahead in the queue for which scheduling was not attempted yet.
fn pod_ahead(scheduler: &Scheduler, known: &Cache, pod: &Pod, live_reads: &LiveReads) -> Option<ObjectKey> {
    let order = pod.queue_order();
    let ahead = known.node_pods().unattempted_before(&order).filter_map(|key| known.pod(key));
    let keys = ahead.filter(|other| scheduler.is_ours(other)).map(|other| ObjectKey::from(other.key()));
    keys.into_iter().find(|key| !live_reads.was_handed_to(key))
}

fn schedule(scheduler: &Scheduler, known: &Cache, pod: &Pod, live_reads: &LiveReads) -> Verdict {
    let all = known.nodes().count();
    if all == 0 {
        return unschedulable(&rules::NO_NODES, pod, "no nodes available to schedule pods".into());
    }
    if pod.scheduling.has_device_claims {
        let why = "the pod has resource claims, which this scheduler does not allocate: name one that does in spec.schedulerName";
        return unschedulable(&rules::RESOURCE_CLAIMS, pod, format!("0/{all} nodes are available: {why}."));
    }
    let evaluation = match Evaluation::of(known, pod) {
        Ok(evaluation) => evaluation,
        // The watch may deliver a provisioned volume after the claim that is bound to it.
        Err(PodRejection::VolumeMissing(volume)) if is_nominated(pod) => return wait_for_volume(pod, &volume),
        Err(why @ PodRejection::EphemeralClaimMissing(_)) => return wait_for_claim(pod, &why),
        Err(rejection) => return unschedulable(&rules::CLAIMS_REJECTED, pod, rejected(all, &rejection)),
    };
    match suitable_nodes(known, pod, &evaluation) {
        Ok(nodes) => match choose(scheduler, known, pod, nodes, live_reads) {
            Some(chosen) => proceed(known, pod, &chosen),
            None => Verdict::new(&rules::PROVISIONING_FAILED, Action::Pause(RETRY_PAUSE)),
        },
        Err(verdict) => *verdict,
    }
}

/// The suitable nodes; if there are none, the verdict about the pod.
fn suitable_nodes<'e>(
    known: &'e Cache,
    pod: &Pod,
    evaluation: &'e Evaluation<'_>,
) -> Result<Vec<SuitableNode<'e>>, Box<Verdict>> {
    let mut suitable = Vec::new();
    let mut counts = ReasonCounts::default();
    for node in known.nodes() {
        let result =
            evaluation.check(node).map_err(|error| unschedulable(&rules::CANNOT_EVALUATE, pod, error.to_string()))?;
        if result.reasons == [Reason::Volumes(NodeRejection::VolumeMissing)] && is_nominated_to(pod, node) {
            return Err(wait_for_volume(pod, &Name::default()).into());
        }
        counts.add(&result.reasons);
        if result.reasons.is_empty() {
            suitable.push(SuitableNode { node, volumes: result.volumes });
        }
    }
    match suitable.is_empty() {
        true => Err(unschedulable(&rules::UNSCHEDULABLE, pod, counts.message()).into()),
        false => Ok(suitable),
    }
}

/// The node to which a pod would be scheduled, or is being scheduled.
pub(crate) fn node_for(scheduler: &Scheduler, known: &Cache, pod: &Pod) -> Option<Name> {
    let evaluation = Evaluation::of(known, pod).ok()?;
    let nodes = suitable_nodes(known, pod, &evaluation).ok()?;
    choose(scheduler, known, pod, nodes, &LiveReads::default()).map(|chosen| chosen.node.node.name().clone())
}

fn is_nominated(pod: &Pod) -> bool {
    !pod.scheduling.nominated_node.is_empty()
}

fn is_nominated_to(pod: &Pod, node: &Node) -> bool {
    pod.scheduling.nominated_node == *node.name()
}

/// Waits for a volume that a claim of the pod is bound to and that is not in the cache. If it was
/// deleted, the claim becomes Lost, which is reported then.
fn wait_for_volume(pod: &Pod, volume: &Name) -> Verdict {
    let node = &pod.scheduling.nominated_node;
    Verdict::idle(&rules::WAITS_FOR_VOLUMES).with_note(format!("on node {node}: waiting for volume {volume}"))
}

/// Waits for the claim of an ephemeral volume. It is usually created milliseconds after the pod, so
/// its absence is not a failure; if it cannot be created, the ephemeral volume controller says why.
fn wait_for_claim(pod: &Pod, why: &PodRejection) -> Verdict {
    let rule = &rules::WAITS_FOR_EPHEMERAL_CLAIM;
    let release = || PodStatusEdit { nominated: Some(Name::default()), unschedulable: None };
    let write = is_nominated(pod).then(|| Write::pod(rule, pod, release()));
    Verdict::write_or_idle(rule, write).with_note(why.to_string())
}

/// The chosen node.
struct Chosen<'a> {
    node: SuitableNode<'a>,
    /// Whether provisioning failed on the pod's previous nominated node.
    is_after_failure: bool,
}

/// The node to continue with; `None` to pause if provisioning failed on the only suitable one.
fn choose<'a>(
    scheduler: &Scheduler,
    known: &Cache,
    pod: &Pod,
    mut nodes: Vec<SuitableNode<'a>>,
    live_reads: &LiveReads,
) -> Option<Chosen<'a>> {
    let nominated = &pod.scheduling.nominated_node;
    let mut is_after_failure = false;
    if let Some(at) = nodes.iter().position(|suitable| suitable.node.name() == nominated) {
        is_after_failure = nodes[at].volumes.new_volumes.iter().any(|volume| has_failed(volume.claim));
        if !is_after_failure {
            return Some(Chosen { node: nodes.swap_remove(at), is_after_failure });
        }
        if nodes.len() > 1 {
            nodes.swap_remove(at);
        } else if live_reads.pause_count() == 0 {
            return None;
        }
    }
    let raw_score = |suitable: &SuitableNode<'_>| {
        score::raw_score(known, pod, suitable.node, scheduler.shape.score(&suitable.volumes))
    };
    let raw_scores: Vec<_> = nodes.iter().map(raw_score).collect();
    let scored = score::scores(&raw_scores).into_iter().zip(nodes);
    // The highest score, then the first by name.
    let best = scored.min_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.node.name().cmp(other.node.name())));
    best.map(|(_, node)| Chosen { node, is_after_failure })
}

/// Whether provisioning failed for a claim: a provisioner was assigned, and it removed the selected
/// node.
fn has_failed(claim: &Claim) -> bool {
    claim.annotations.has(Annotation::StorageProvisioner) && !claim.annotations.has(Annotation::SelectedNode)
}

/// The next step towards assigning a pod to a node.
fn proceed(known: &Cache, pod: &Pod, chosen: &Chosen<'_>) -> Verdict {
    let Chosen { node: SuitableNode { node, volumes }, is_after_failure } = chosen;
    let is_nominated = is_nominated_to(pod, node);
    let name = node.name();
    if volumes.bindings.is_empty() && volumes.new_volumes.is_empty() {
        return bind(pod, name);
    }
    let Some(plan) = BindingPlan::new(pod, node, volumes) else {
        let message = format!("the volumes found for node {name} do not match the pod's claims");
        return unschedulable(&rules::CANNOT_EVALUATE, pod, message);
    };
    let node = name;
    // Nominating first reserves the node's resources. But after a failure the claim must get the
    // new node first, or the new nominated node would look like the one that failed.
    if !is_nominated && !is_after_failure {
        return nominate(pod, node);
    }
    match plan.next(known) {
        Step::Write(write) => Verdict::write(&rules::BIND_VOLUMES, *write).with_note(format!("on node {node}")),
        Step::Done => bind(pod, node),
        Step::Wait if !is_nominated => nominate(pod, node),
        Step::Wait => Verdict::idle(&rules::WAITS_FOR_VOLUMES).with_note(format!("on node {node}")),
        Step::Fail(error) => {
            let message = format!("running PreBind plugin \"VolumeBinding\": binding volumes: {error}");
            unschedulable(&rules::CANNOT_EVALUATE, pod, message)
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
    let bind = bind.then(Event::pod(pod, EventType::Normal, EventReason::Scheduled, message));
    Verdict::request(&rules::BIND, Request::Bind(bind)).with_note(format!("to node {node}"))
}

/// Publishes that a pod is unschedulable, and writes it to the pod's status.
fn unschedulable(rule: &'static Rule, pod: &Pod, message: String) -> Verdict {
    let event = Event::pod(pod, EventType::Warning, EventReason::FailedScheduling, message.clone());
    let is_written = pod.scheduling.unschedulable.as_deref() == Some(message.as_str());
    let edit = PodStatusEdit {
        nominated: (!pod.scheduling.nominated_node.is_empty()).then(Name::default),
        unschedulable: (!is_written).then(|| message.as_str().into()),
    };
    let verdict = match edit == PodStatusEdit::default() {
        true => Verdict::idle(rule),
        false => Verdict::write(rule, Write::pod(rule, pod, edit)),
    };
    verdict.with_note(message).publish(event)
}
