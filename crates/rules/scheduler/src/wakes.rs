//! Whom a change wakes: the pods that wait for a node, as far as it can help them.

use std::sync::Arc;

use bindery_cache::{Cache, Change};
use bindery_model::{Annotation, Claim, ClaimKey, Name, Node, Object, ObjectKey, Pod, PodKey};

use crate::Scheduler;

/// Wakes the pods that a change concerns. Returns how many were looked at for that.
pub(crate) fn wake(scheduler: &Scheduler, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) -> usize {
    let mut woken = Woken { scheduler, known, wake, looked_at: 0 };
    if let (before, Some(Object::Pod(pod))) = (&change.before, &change.after) {
        let own = |other: &Pod| other.meta.uid == pod.meta.uid;
        woken.of([&pod.key()], own);
        let before = if let Some(Object::Pod(before)) = before { Some(&**before) } else { None };
        // What it gives back is room for those that have found none; where it comes, others may want to
        // be near it; and it tips the scales for those that are to be spread evenly.
        if before.is_some_and(|before| gives_back(before, pod)) {
            woken.of(known.tenants().waiting(), |other| is_stuck(other) && !own(other));
        } else if place(pod).is_some() && before.is_none_or(|before| is_counted_otherwise(before, pod)) {
            let counts = |other: &Pod| !other.scheduling.near.is_empty() || !other.scheduling.spread.is_empty();
            woken.of(known.tenants().waiting(), |other| is_stuck(other) && counts(other) && !own(other));
        }
        return woken.looked_at;
    }
    if frees_room(known, change) {
        woken.of(known.tenants().waiting(), is_stuck);
    }
    for object in change.after.iter().chain(&change.before) {
        woken.by(object);
    }
    woken.looked_at
}

/// Whoever is woken.
struct Woken<'a> {
    scheduler: &'a Scheduler,
    known: &'a Cache,
    wake: &'a mut dyn FnMut(ObjectKey),
    /// How many pods were looked at: what a change costs.
    looked_at: usize,
}

impl<'a> Woken<'a> {
    /// Wakes those of some pods that wait for a node, and that it concerns.
    fn of<'k>(&mut self, keys: impl IntoIterator<Item = &'k PodKey>, concerns: impl Fn(&Pod) -> bool) {
        for key in keys {
            self.looked_at += 1;
            let pod = self.known.pod(key).filter(|_| self.known.tenants().is_waiting(key));
            if pod.is_some_and(|pod| self.scheduler.is_ours(pod) && concerns(pod)) {
                (self.wake)(key.clone().into());
            }
        }
    }

    /// Wakes the pods that use one of some claims.
    fn using(&mut self, claims: impl IntoIterator<Item = ClaimKey>) {
        let known = self.known;
        for claim in claims {
            let keys: Vec<PodKey> = known.pods_using(&claim).map(|pod| pod.key()).collect();
            self.of(&keys, |_| true);
        }
    }

    /// Wakes those that an object concerns, as it was or as it is.
    fn by(&mut self, object: &Object) {
        let known = self.known;
        let tenants = known.tenants();
        let is_stuck_with_volumes = |pod: &Pod| is_stuck(pod) && !pod.volumes.is_empty();
        match object {
            // It is gone.
            Object::Pod(pod) if takes(pod) => self.of(tenants.waiting(), is_stuck),
            Object::Pod(_) => {}
            Object::Node(node) => self.of(tenants.waiting(), |pod| is_stuck(pod) || is_meant(pod, node)),
            Object::Claim(claim) => self.using([claim.key()]),
            // One of their claims has it, or has none and asks for its class.
            Object::Volume(volume) => {
                self.using(known.claims_naming(volume.name()).map(|claim| claim.key()));
                let class = volume.class();
                let looks_for = |claim: &Arc<Claim>| claim.volume.is_none() && claim.class() == class;
                let wants = |pod: &Pod| pod.claim_keys().filter_map(|key| known.claim(&key)).any(looks_for);
                self.of(tenants.waiting_for_class(class), wants);
            }
            Object::Class(class) => self.of(tenants.waiting_for_class(&class.meta.name), |_| true),
            Object::Capacity(capacity) => self.of(tenants.waiting_for_class(&capacity.class), is_stuck),
            Object::CsiDriver(_) | Object::CsiNode(_) | Object::Attachment(_) => {
                self.of(tenants.waiting(), is_stuck_with_volumes);
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
    !(pod.is_over() || pod.node.is_empty() && pod.deleting)
}

/// Whether a pod takes something: at its place, or where a volume is made or reserved for it, which only its claims say.
fn takes(pod: &Pod) -> bool {
    place(pod).is_some() || is_about(pod) && !pod.volumes.is_empty()
}

/// Whether a pod has left its place, or takes less there.
fn gives_back(before: &Pod, after: &Pod) -> bool {
    let scheduling =
        |pod: &Pod| (pod.scheduling.needs.clone(), pod.scheduling.labels.clone(), pod.scheduling.apart.clone());
    let has_left = place(before).is_some() && place(before) != place(after) || !takes(after);
    takes(before) && (has_left || scheduling(before) != scheduling(after))
}

/// Whether a pod has come to another place, or does not count any more where others are counted.
fn is_counted_otherwise(before: &Pod, after: &Pod) -> bool {
    place(before) != place(after) || before.deleting != after.deleting
}

/// Whether a node is no longer meant for pods that say nothing of it themselves: it was selected for a claim of theirs, or a volume
/// there was reserved for it.
fn frees_room(known: &Cache, change: &Change) -> bool {
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

    /// Many pods that wait, each with a claim of its own that looks for a volume.
    fn known() -> Cache {
        let mut known = Cache::default();
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

    /// How many pods are woken by an object that comes, and how many are looked at.
    fn woken(known: &mut Cache, kind: Kind, json: &str) -> (usize, usize) {
        let change = known.watched(object(kind, json)).expect("it is news");
        let mut woken = BTreeSet::new();
        let looked_at = wake(&Scheduler::default(), known, &change, &mut |key| {
            woken.insert(key);
        });
        (woken.len(), looked_at)
    }

    #[test]
    fn what_a_change_costs_follows_whom_it_concerns() {
        let mut known = known();
        let volume = r#"{"metadata":{"name":"v","uid":"v"},"spec":{"storageClassName":"class-7"}}"#;
        assert_eq!(woken(&mut known, Kind::Volume, volume), (PODS_PER_CLASS, PODS_PER_CLASS));
        let class = r#"{"metadata":{"name":"class-8","uid":"s"},"provisioner":"p"}"#;
        assert_eq!(woken(&mut known, Kind::Class, class), (PODS_PER_CLASS, PODS_PER_CLASS));
        let room =
            r#"{"metadata":{"namespace":"d","name":"r","uid":"r"},"storageClassName":"class-9","capacity":"1Gi"}"#;
        assert_eq!(woken(&mut known, Kind::Capacity, room), (PODS_PER_CLASS, PODS_PER_CLASS));
        let claim =
            r#"{"metadata":{"namespace":"default","name":"claim-1","uid":"c1"},"spec":{"storageClassName":"other"}}"#;
        let (pods, looked_at) = woken(&mut known, Kind::Claim, claim);
        assert_eq!(pods, 1);
        assert!(looked_at <= 2, "once as it was and once as it is, not {looked_at} times");
        assert_eq!(
            woken(&mut known, Kind::Volume, &volume.replace("class-7", "other").replace("\"v\"", "\"w\"")),
            (1, 1)
        );
    }
}
