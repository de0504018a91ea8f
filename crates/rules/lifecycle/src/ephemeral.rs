//! The ephemeral-volume controller: creates the claims of pods' ephemeral volumes. Garbage
//! collection deletes them with their pods.

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
            resync: ResyncInterval::Rarely,
            watches: &[Kind::Pod, Kind::Claim],
            queues: &[(Kind::Pod, "ephemeral_volume")],
        }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        if key.kind != Kind::Pod {
            return Verdict::idle(&rules::NOT_HANDLED);
        }
        let Some(pod) = known.pod(&key.pod_key()) else { return Verdict::idle(&rules::POD_DELETED) };
        if let Some(error) = &pod.field_error {
            return Verdict::idle(&rules::POD_MALFORMED).with_note(error.to_string());
        }
        if pod.ephemeral().next().is_none() {
            return Verdict::idle(&rules::NO_VOLUMES);
        }
        if pod.deleting {
            return Verdict::idle(&rules::POD_TERMINATING);
        }
        // In order, as upstream: a volume whose claim fails delays those after it.
        pod.ephemeral()
            .find_map(|(index, volume)| EphemeralVolume { pod, index, volume }.verdict(known, live_reads))
            .unwrap_or_else(|| Verdict::idle(&rules::COMPLETE))
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        match (&change.before, &change.after) {
            // The volumes of a pod are immutable, unless it could not be parsed before.
            (before, Some(Object::Pod(pod))) => {
                let is_same = |before: &Object| {
                    before.meta().uid == pod.meta.uid && before.field_error() == pod.field_error.as_deref()
                };
                if !before.as_ref().is_some_and(is_same) && needs_claims(pod) {
                    wake(pod.key().into());
                }
            }
            // Clears the last published events.
            (Some(Object::Pod(pod)), None) if pod.ephemeral().next().is_some() => wake(pod.key().into()),
            // A deleted claim is created again, and a conflict may be resolved.
            (Some(Object::Claim(before)), after) => {
                let is_same_owner = |after: &Object| {
                    let is_same =
                        |after: &Arc<Claim>| after.meta.uid == before.meta.uid && after.controller == before.controller;
                    after.get::<Claim>().is_none_or(is_same)
                };
                if !after.as_ref().is_some_and(is_same_owner) {
                    for pod in known.pods_using(&before.key()).filter(|pod| needs_claims(pod)) {
                        wake(pod.key().into());
                    }
                }
            }
            (_, _) => {}
        }
    }
}

/// Whether claims are created for a pod.
fn needs_claims(pod: &Pod) -> bool {
    !pod.deleting && pod.ephemeral().next().is_some()
}

/// An ephemeral volume of a pod.
struct EphemeralVolume<'a> {
    pod: &'a Pod,
    index: usize,
    volume: &'a PodVolume,
}

impl EphemeralVolume<'_> {
    /// The next step; `None` if it has its claim.
    fn verdict(&self, known: &Cache, live_reads: &LiveReads) -> Option<Verdict> {
        let key = self.pod.claim_key(self.volume);
        let task = Task::CreateClaim(self.index);
        let live = live_reads.claim(&key);
        if let Some(claim) = known.claim(&key).or(live.flatten()) {
            return self.conflict(claim);
        }
        // After an unknown outcome and a read that finds no claim, it is tried once more at once.
        // The next failure counts.
        let is_unknown = |failure: &Failure| {
            failure.effect == FailureEffect::Unknown && (live.is_none() || live_reads.failure_count(task) < 2)
        };
        if let Some(failure) = live_reads.last_failure(task).filter(|failure| !is_unknown(failure)) {
            let error = format!("create PVC {}: {}", key.name, failure.error);
            return Some(self.with_warning(Verdict::retry(&rules::FAILED, Backoff::Api, &error), &error));
        }
        // It already existed, or the outcome of its creation is unknown.
        let may_exist = live_reads.is_done(task) || live_reads.failure_count(task) > 0;
        if may_exist && live.is_none() {
            return Some(Verdict::request(&rules::READ_CLAIM, Request::Read(key.into())));
        }
        let body = self.claim(&key);
        let create = Create { key: key.into(), body, purpose: &rules::CREATE_CLAIM, task, then: Vec::new() };
        Some(Verdict::request(&rules::CREATE_CLAIM, Request::Create(create)))
    }

    /// A claim of that name exists: reports a conflict unless the pod owns it.
    fn conflict(&self, claim: &Claim) -> Option<Verdict> {
        if self.pod.owns(claim) {
            return None;
        }
        let error = format!("PVC {} was not created for pod {} (pod is not owner)", claim.key(), self.pod.key());
        Some(self.with_warning(Verdict::idle(&rules::CONFLICT).with_note(&error), &error))
    }

    fn with_warning(&self, verdict: Verdict, error: &str) -> Verdict {
        let message = format!("ephemeral volume {}: {error}", self.volume.name);
        verdict.publish(Event::pod(self.pod, EventType::Warning, Reason::FailedBinding, message))
    }

    /// The claim, from the volume's template.
    fn claim(&self, key: &ClaimKey) -> Value {
        let template = self.volume.template.as_deref().unwrap_or_default();
        // The template was taken from a JSON object, so it parses.
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
