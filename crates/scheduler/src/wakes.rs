//! Whom a change wakes: the pods that wait for a node, as far as it can help them.

use std::sync::Arc;

use bindery_mirror::{Change, Mirror};
use bindery_volumes::{Annotation, Claim, Class, Name, Node, Object, ObjectKey, Pod, Volume};

use crate::Scheduler;

/// Wakes the pods that a change concerns.
pub(crate) fn wake(scheduler: &Scheduler, known: &Mirror, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
    let mut wake_waiting = |concerns: &dyn Fn(&Pod) -> bool| {
        let waiting = known.tenants().waiting().filter_map(|key| known.pod(key));
        for pod in waiting.filter(|pod| scheduler.is_ours(pod) && concerns(pod)) {
            wake(pod.key().into());
        }
    };
    if let (before, Some(Object::Pod(pod))) = (&change.before, &change.after) {
        let own = |other: &Pod| other.meta.uid == pod.meta.uid;
        wake_waiting(&own);
        let before = if let Some(Object::Pod(before)) = before { Some(&**before) } else { None };
        // What it gives back is room for those that have found none; where it comes, others may want to be near it.
        if before.is_some_and(|before| gives_back(before, pod)) {
            wake_waiting(&|other| is_stuck(other) && !own(other));
        } else if place(pod).is_some() && before.and_then(place) != place(pod) {
            wake_waiting(&|other| is_stuck(other) && !own(other) && !other.scheduling.near.is_empty());
        }
        return;
    }
    if frees_room(known, change) {
        wake_waiting(&is_stuck);
    }
    for object in change.after.iter().chain(&change.before) {
        match object {
            // It is gone.
            Object::Pod(pod) => wake_waiting(&|other| takes(pod) && is_stuck(other)),
            Object::Node(node) => wake_waiting(&|pod| is_stuck(pod) || is_meant(pod, node)),
            Object::Claim(claim) => {
                let key = claim.key();
                wake_waiting(&|pod| pod.claim_keys().any(|used| used == key));
            }
            Object::Volume(volume) => wake_waiting(&|pod| may_use(known, pod, volume)),
            Object::Class(class) => wake_waiting(&|pod| is_of(known, pod, class)),
            Object::CsiDriver(_) | Object::CsiNode(_) | Object::Capacity(_) | Object::Attachment(_) => {
                wake_waiting(&|pod| is_stuck(pod) && !pod.volumes.is_empty());
            }
            Object::AttributesClass(_) => {}
        }
    }
}

/// Where a pod is, or says that it is meant to be, while it takes something there.
fn place(pod: &Pod) -> Option<&Name> {
    let node = if pod.node.is_empty() { &pod.scheduling.nominated } else { &pod.node };
    (!node.is_empty() && is_about(pod)).then_some(node)
}

/// Whether a pod is on a node, or is to be.
fn is_about(pod: &Pod) -> bool {
    !pod.is_over() && !(pod.node.is_empty() && pod.deleting)
}

/// Whether a pod takes something: at its place, or where a volume is made or reserved for it, which only its claims say.
fn takes(pod: &Pod) -> bool {
    place(pod).is_some() || is_about(pod) && !pod.volumes.is_empty()
}

/// Whether a pod has left its place, or takes less there.
fn gives_back(before: &Pod, after: &Pod) -> bool {
    let scheduling = |pod: &Pod| (pod.scheduling.needs, pod.scheduling.labels.clone(), pod.scheduling.apart.clone());
    let has_left = place(before).is_some() && place(before) != place(after) || !takes(after);
    takes(before) && (has_left || scheduling(before) != scheduling(after))
}

/// Whether a node is no longer meant for pods that say nothing of it themselves: it was selected for a claim of theirs, or a volume
/// there was reserved for it.
fn frees_room(known: &Mirror, change: &Change) -> bool {
    let claim = match (&change.before, &change.after) {
        (Some(Object::Claim(before)), Some(Object::Claim(after))) => {
            let selected = |claim: &Claim| claim.annotations.get(Annotation::SelectedNode).cloned();
            let is_same =
                selected(before) == selected(after) && before.is_bind_completed() == after.is_bind_completed();
            (!is_same && !before.is_bind_completed()).then(|| before.key())
        }
        (Some(Object::Claim(before)), None) => Some(before.key()),
        (Some(Object::Volume(before)), Some(Object::Volume(after))) if before.claim_ref == after.claim_ref => None,
        (Some(Object::Volume(before)), _) => before.claim_ref.as_ref().map(|claim| claim.key.clone()),
        (_, _) => None,
    };
    let is_silent = |pod: &Arc<Pod>| pod.node.is_empty() && pod.scheduling.nominated.is_empty();
    claim.is_some_and(|claim| known.pods_using(&claim).any(is_silent))
}

/// Whether a pod has found no node.
fn is_stuck(pod: &Pod) -> bool {
    pod.scheduling.nominated.is_empty()
}

fn is_meant(pod: &Pod, node: &Node) -> bool {
    pod.scheduling.nominated == *node.name()
}

/// Whether a volume may be what a pod waits for: one of its claims has it, or has none and asks for its class.
fn may_use(known: &Mirror, pod: &Pod, volume: &Volume) -> bool {
    pod.claim_keys().filter_map(|key| known.claim(&key)).any(|claim| match &claim.volume {
        Some(name) => name == volume.name(),
        None => claim.class() == volume.class(),
    })
}

fn is_of(known: &Mirror, pod: &Pod, class: &Class) -> bool {
    pod.claim_keys().filter_map(|key| known.claim(&key)).any(|claim| *claim.class() == class.meta.name)
}
