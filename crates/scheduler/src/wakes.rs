//! Whom a change wakes: the pods that wait for a node, as far as it can help them.

use std::sync::Arc;

use bindery_mirror::{Change, Mirror};
use bindery_volumes::{Class, Object, ObjectKey, Pod, Volume};

use crate::Scheduler;

/// Wakes the pods that a change concerns.
pub(crate) fn wake(scheduler: &Scheduler, known: &Mirror, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
    let mut wake_waiting = |concerns: &dyn Fn(&Pod) -> bool| {
        let waiting = known.tenants().waiting().filter_map(|key| known.pod(key));
        for pod in waiting.filter(|pod| scheduler.is_ours(pod) && concerns(pod)) {
            wake(pod.key().into());
        }
    };
    match (&change.before, &change.after) {
        (before, Some(Object::Pod(pod))) if pod.node.is_empty() && !pod.is_over() && !pod.deleting => {
            if scheduler.is_ours(pod) {
                wake(pod.key().into());
            }
            // It may have given back what was meant for it.
            if let Some(Object::Pod(before)) = before
                && before.scheduling.nominated != pod.scheduling.nominated
            {
                wake_others(scheduler, known, pod, wake);
            }
        }
        // It has its node, has ended or is gone: that makes room for others, or is near to them.
        (Some(Object::Pod(pod)), _) | (None, Some(Object::Pod(pod))) => wake_others(scheduler, known, pod, wake),
        (Some(Object::Node(_)), _) | (None, Some(Object::Node(_))) => wake_waiting(&|_| true),
        (before, after) => {
            for object in after.iter().chain(before) {
                match object {
                    Object::Claim(claim) => {
                        let key = claim.key();
                        wake_waiting(&|pod| pod.claim_keys().any(|used| used == key));
                    }
                    Object::Volume(volume) => wake_waiting(&|pod| may_use(known, pod, volume)),
                    Object::Class(class) => wake_waiting(&|pod| is_of(known, pod, class)),
                    Object::CsiDriver(_) | Object::CsiNode(_) | Object::Capacity(_) | Object::Attachment(_) => {
                        wake_waiting(&|pod| !pod.volumes.is_empty());
                    }
                    Object::AttributesClass(_) | Object::Pod(_) | Object::Node(_) => {}
                }
            }
        }
    }
}

fn wake_others(scheduler: &Scheduler, known: &Mirror, pod: &Arc<Pod>, wake: &mut dyn FnMut(ObjectKey)) {
    let waiting = known.tenants().waiting().filter_map(|key| known.pod(key));
    for other in waiting.filter(|other| scheduler.is_ours(other) && other.meta.uid != pod.meta.uid) {
        wake(other.key().into());
    }
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
