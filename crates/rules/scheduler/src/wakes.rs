//! Which pods a change wakes: waiting pods whose verdict it can change.

use std::sync::Arc;

use bindery_cache::{Cache, Change};
use bindery_model::{Annotation, Claim, ClaimKey, Name, Node, Object, ObjectKey, Pod, PodKey};

use crate::Scheduler;

/// Wakes the pods that a change concerns. Returns the number of pods that were examined.
pub(crate) fn wake(scheduler: &Scheduler, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) -> usize {
    let mut waker = Waker { scheduler, known, wake, examined: 0 };
    if let (before, Some(Object::Pod(pod))) = (&change.before, &change.after) {
        let is_same = |other: &Pod| other.meta.uid == pod.meta.uid;
        waker.wake([&pod.key()], is_same);
        let before = if let Some(Object::Pod(before)) = before { Some(&**before) } else { None };
        // Resources that it frees may help unschedulable pods. On its new node it may satisfy the
        // affinity of others, and it changes the topology spread.
        if before.is_some_and(|before| frees_resources(before, pod)) {
            waker.wake(known.node_pods().waiting(), |other| is_unschedulable(other) && !is_same(other));
        } else if node_of(pod).is_some() && before.is_none_or(|before| has_moved(before, pod)) {
            let depends_on_pods =
                |other: &Pod| !other.scheduling.affinity.is_empty() || !other.scheduling.topology_spread.is_empty();
            let concerns = |other: &Pod| is_unschedulable(other) && depends_on_pods(other) && !is_same(other);
            waker.wake(known.node_pods().waiting(), concerns);
        }
        return waker.examined;
    }
    if ends_planned_pod(known, change) {
        waker.wake(known.node_pods().waiting(), is_unschedulable);
    }
    for object in change.after.iter().chain(&change.before) {
        waker.wake_for(object);
    }
    waker.examined
}

/// Wakes pods, and counts how many were examined.
struct Waker<'a> {
    scheduler: &'a Scheduler,
    known: &'a Cache,
    wake: &'a mut dyn FnMut(ObjectKey),
    /// The number of pods that were examined: the cost of a change.
    examined: usize,
}

impl<'a> Waker<'a> {
    /// Wakes the pods among these that wait for a node and that the change concerns.
    fn wake<'k>(&mut self, keys: impl IntoIterator<Item = &'k PodKey>, concerns: impl Fn(&Pod) -> bool) {
        for key in keys {
            self.examined += 1;
            let pod = self.known.pod(key).filter(|_| self.known.node_pods().is_waiting(key));
            if pod.is_some_and(|pod| self.scheduler.is_ours(pod) && concerns(pod)) {
                (self.wake)(key.clone().into());
            }
        }
    }

    /// Wakes the pods that use one of these claims.
    fn wake_users(&mut self, claims: impl IntoIterator<Item = ClaimKey>) {
        let known = self.known;
        for claim in claims {
            let keys: Vec<PodKey> = known.pods_using(&claim).map(|pod| pod.key()).collect();
            self.wake(&keys, |_| true);
        }
    }

    /// Wakes the pods that the old or new state of an object concerns.
    fn wake_for(&mut self, object: &Object) {
        let known = self.known;
        let pods = known.node_pods();
        match object {
            // It was deleted.
            Object::Pod(pod) if uses_resources(pod) => self.wake(pods.waiting(), is_unschedulable),
            Object::Pod(_) => {}
            Object::Node(node) => {
                self.wake(pods.waiting(), |pod| is_unschedulable(pod) || is_nominated_to(pod, node));
            }
            Object::Claim(claim) => self.wake_users([claim.key()]),
            // One of their claims is bound to it, or is unbound and has its class.
            Object::Volume(volume) => {
                self.wake_users(known.claims_naming(volume.name()).map(|claim| claim.key()));
                let class = volume.class();
                let needs_it = |claim: &Arc<Claim>| claim.volume.is_none() && claim.class() == class;
                let concerns = |pod: &Pod| pod.claim_keys().filter_map(|key| known.claim(&key)).any(needs_it);
                self.wake(pods.waiting_for_class(class), concerns);
            }
            Object::Class(class) => self.wake(pods.waiting_for_class(&class.meta.name), |_| true),
            Object::Capacity(capacity) => self.wake(pods.waiting_for_class(&capacity.class), is_unschedulable),
            Object::CsiDriver(_) | Object::CsiNode(_) | Object::Attachment(_) => {
                self.wake(pods.waiting(), |pod| is_unschedulable(pod) && !pod.volumes.is_empty());
            }
            Object::AttributesClass(_) | Object::Record(_) => {}
        }
    }
}

/// The node, or nominated node, on which a pod uses resources.
fn node_of(pod: &Pod) -> Option<&Name> {
    let node = if pod.node.is_empty() { &pod.scheduling.nominated_node } else { &pod.node };
    (!node.is_empty() && is_active(pod)).then_some(node)
}

/// Whether a pod is on a node, or may still be assigned to one.
fn is_active(pod: &Pod) -> bool {
    !(pod.is_finished() || pod.node.is_empty() && pod.deleting)
}

/// Whether a pod uses resources: on its node, or on one planned for it, which only its claims show.
fn uses_resources(pod: &Pod) -> bool {
    node_of(pod).is_some() || is_active(pod) && !pod.volumes.is_empty()
}

/// Whether a pod has left its node, or changed what it uses there.
fn frees_resources(before: &Pod, after: &Pod) -> bool {
    let scheduling = |pod: &Pod| {
        (pod.scheduling.requests.clone(), pod.scheduling.labels.clone(), pod.scheduling.anti_affinity.clone())
    };
    let has_left = node_of(before).is_some() && node_of(before) != node_of(after) || !uses_resources(after);
    uses_resources(before) && (has_left || scheduling(before) != scheduling(after))
}

/// Whether a pod has another node, or no longer counts for topology spread.
fn has_moved(before: &Pod, after: &Pod) -> bool {
    node_of(before) != node_of(after) || before.deleting != after.deleting
}

/// Whether a node is no longer planned for a pod without a nominated node: the node was selected
/// for one of its claims, or a volume there was reserved for one.
fn ends_planned_pod(known: &Cache, change: &Change) -> bool {
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
    let is_planned = |pod: &Arc<Pod>| pod.node.is_empty() && pod.scheduling.nominated_node.is_empty();
    claim.is_some_and(|claim| known.pods_using(&claim).any(is_planned))
}

/// Whether a pod has no nominated node.
fn is_unschedulable(pod: &Pod) -> bool {
    pod.scheduling.nominated_node.is_empty()
}

fn is_nominated_to(pod: &Pod, node: &Node) -> bool {
    pod.scheduling.nominated_node == *node.name()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use bindery_model::Kind;

    const CLASSES: usize = 50;
    const PODS_PER_CLASS: usize = 20;

    fn object(kind: Kind, json: &str) -> Object {
        Object::from_json(kind, json.as_bytes()).expect("it has a name")
    }

    /// Many waiting pods, each with an unbound claim.
    fn known() -> Cache {
        let mut known = Cache::new(bindery_matching::INDEX_POLICY);
        for n in 0..CLASSES * PODS_PER_CLASS {
            let class = n % CLASSES;
            let claim = format!(
                r#"{{"metadata":{{"namespace":"default","name":"claim-{n}","uid":"c{n}"}},"spec":{{"storageClassName":"class-{class}"}}}}"#
            );
            known.watched(object(Kind::Claim, &claim));
            let pod = format!(
                r#"{{"metadata":{{"namespace":"default","name":"pod-{n}","uid":"p{n}"}},
                    "spec":{{"volumes":[{{"name":"v","persistentVolumeClaim":{{"claimName":"claim-{n}"}}}}]}}}}"#
            );
            known.watched(object(Kind::Pod, &pod));
        }
        known
    }

    /// The number of pods that a new object wakes, and the number examined.
    fn woken(known: &mut Cache, kind: Kind, json: &str) -> (usize, usize) {
        let change = known.watched(object(kind, json)).expect("it is new");
        let mut woken = BTreeSet::new();
        let examined = wake(&Scheduler::default(), known, &change, &mut |key| {
            woken.insert(key);
        });
        (woken.len(), examined)
    }

    #[test]
    fn cost_of_a_change_is_proportional_to_the_pods_it_concerns() {
        let mut known = known();
        let volume = r#"{"metadata":{"name":"v","uid":"v"},"spec":{"storageClassName":"class-7"}}"#;
        assert_eq!(woken(&mut known, Kind::Volume, volume), (PODS_PER_CLASS, PODS_PER_CLASS));
        let class = r#"{"metadata":{"name":"class-8","uid":"s"},"provisioner":"p"}"#;
        assert_eq!(woken(&mut known, Kind::Class, class), (PODS_PER_CLASS, PODS_PER_CLASS));
        let capacity =
            r#"{"metadata":{"namespace":"d","name":"r","uid":"r"},"storageClassName":"class-9","capacity":"1Gi"}"#;
        assert_eq!(woken(&mut known, Kind::Capacity, capacity), (PODS_PER_CLASS, PODS_PER_CLASS));
        let claim =
            r#"{"metadata":{"namespace":"default","name":"claim-1","uid":"c1"},"spec":{"storageClassName":"other"}}"#;
        let (pods, examined) = woken(&mut known, Kind::Claim, claim);
        assert_eq!(pods, 1);
        assert!(examined <= 2, "once for the old and once for the new state, not {examined} times");
        assert_eq!(
            woken(&mut known, Kind::Volume, &volume.replace("class-7", "other").replace("\"v\"", "\"w\"")),
            (1, 1)
        );
    }
}
