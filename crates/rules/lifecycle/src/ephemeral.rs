//! The ephemeral-volume controller: makes the claims of pods' ephemeral volumes. It deletes none: they go with their pods.

use std::sync::Arc;

use bindery_cache::{Cache, Change};
use bindery_model::event::{EventType, Reason};
use bindery_model::{Claim, ClaimKey, Kind, Object, ObjectKey, Pod, PodVolume};
use bindery_rules_api::{
    Backoff, Create, Event, Failure, FailureEffect, LiveReads, Profile, Request, ResyncInterval, RuleSet, Task, Verdict,
};
use serde_json::{Value, json};

use crate::rules::ephemeral as rules;

/// The rule set of the ephemeral-volume controller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ephemeral;

impl RuleSet for Ephemeral {
    fn profile(&self) -> Profile {
        Profile {
            name: "ephemeral-volume",
            component: "ephemeral_volume",
            tempo: ResyncInterval::Rarely,
            sees: &[Kind::Pod, Kind::Claim],
            queues: &[(Kind::Pod, "ephemeral_volume")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        if key.kind != Kind::Pod {
            return Verdict::settle(&rules::NOT_OURS);
        }
        let Some(pod) = known.pod(&key.pod_key()) else { return Verdict::settle(&rules::POD_GONE) };
        if let Some(flaw) = &pod.field_error {
            return Verdict::settle(&rules::POD_MALFORMED).noting(flaw.to_string());
        }
        if pod.ephemeral().next().is_none() {
            return Verdict::settle(&rules::NO_VOLUMES);
        }
        if pod.deleting {
            return Verdict::settle(&rules::POD_DELETED);
        }
        // In order: a volume whose claim cannot be had holds up those after it, as upstream.
        pod.ephemeral()
            .find_map(|(place, volume)| Missing { pod, place, volume }.verdict(known, live_reads))
            .unwrap_or_else(|| Verdict::settle(&rules::SERVED))
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        match (&change.before, &change.after) {
            // Nothing of a pod that claims depend on changes while it lives, unless it could not be understood before.
            (before, Some(Object::Pod(pod))) => {
                let is_same = |before: &Object| {
                    before.meta().uid == pod.meta.uid && before.field_error() == pod.field_error.as_deref()
                };
                if !before.as_ref().is_some_and(is_same) && is_served(pod) {
                    wake(pod.key().into());
                }
            }
            // What was said of it is over.
            (Some(Object::Pod(pod)), None) if pod.ephemeral().next().is_some() => wake(pod.key().into()),
            // A claim that is gone is made again; one that was another's may be there for the pod now.
            (Some(Object::Claim(before)), after) => {
                let is_as_before = |after: &Object| {
                    let is_same =
                        |after: &Arc<Claim>| after.meta.uid == before.meta.uid && after.controller == before.controller;
                    after.get::<Claim>().is_none_or(is_same)
                };
                if !after.as_ref().is_some_and(is_as_before) {
                    for pod in known.pods_using(&before.key()).filter(|pod| is_served(pod)) {
                        wake(pod.key().into());
                    }
                }
            }
            (_, _) => {}
        }
    }
}

/// Whether claims are made for a pod.
fn is_served(pod: &Pod) -> bool {
    !pod.deleting && pod.ephemeral().next().is_some()
}

/// A pod's ephemeral volume, whose claim may be missing.
struct Missing<'a> {
    pod: &'a Pod,
    place: usize,
    volume: &'a PodVolume,
}

impl Missing<'_> {
    /// What is to be done about it; `None` when it has its claim.
    fn verdict(&self, known: &Cache, live_reads: &LiveReads) -> Option<Verdict> {
        let key = self.pod.claim_key(self.volume);
        let task = Task::MakeClaim(self.place);
        let live = live_reads.claim(&key);
        if let Some(claim) = known.claim(&key).or(live.flatten()) {
            return self.conflict(claim);
        }
        // What went unanswered is tried once more at once, if it was not done: then it is a failure like any other.
        let is_uncertain = |failure: &Failure| {
            failure.after == FailureEffect::Unknown && (live.is_none() || live_reads.failure_count(task) < 2)
        };
        if let Some(failure) = live_reads.last_failure(task).filter(|failure| !is_uncertain(failure)) {
            let error = format!("create PVC {}: {}", key.name, failure.error);
            return Some(self.complain(Verdict::retry(&rules::FAILED, Backoff::Api, &error), &error));
        }
        // Somebody made it, or we did and do not know.
        let may_be_there = live_reads.is_done(task) || live_reads.failure_count(task) > 0;
        if may_be_there && live.is_none() {
            return Some(Verdict::request(&rules::CHECK_CLAIM, Request::Read(key.into())));
        }
        let body = self.claim(&key);
        let create = Create { key: key.into(), body, purpose: &rules::MAKE_CLAIM, task, then: Vec::new() };
        Some(Verdict::request(&rules::MAKE_CLAIM, Request::Create(create)))
    }

    /// A claim of that name is there: either it was made for the pod, or it is somebody else's.
    fn conflict(&self, claim: &Claim) -> Option<Verdict> {
        if self.pod.owns(claim) {
            return None;
        }
        let error = format!("PVC {} was not created for pod {} (pod is not owner)", claim.key(), self.pod.key());
        Some(self.complain(Verdict::settle(&rules::CONFLICT).noting(&error), &error))
    }

    fn complain(&self, verdict: Verdict, error: &str) -> Verdict {
        let message = format!("ephemeral volume {}: {error}", self.volume.name);
        verdict.tell(Event::pod(self.pod, EventType::Warning, Reason::FailedBinding, message))
    }

    /// The claim, from the volume's template.
    fn claim(&self, key: &ClaimKey) -> Value {
        let template = self.volume.template.as_deref().unwrap_or_default();
        // The template was cut out of JSON: it is JSON.
        let template: Value = serde_json::from_str(template).unwrap_or_default();
        let mut metadata = json!({
            "name": key.name.as_str(),
            "namespace": key.namespace.as_str(),
            "ownerReferences": [{
                "apiVersion": "v1",
                "kind": "Pod",
                "name": self.pod.meta.name.as_str(),
                "uid": self.pod.meta.uid.as_str(),
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        });
        for field in ["labels", "annotations"] {
            if !template["metadata"][field].is_null() {
                metadata[field] = template["metadata"][field].clone();
            }
        }
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]})
    }
}
