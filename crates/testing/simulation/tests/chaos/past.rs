//! What has been, as far as promises speak of it.

use std::collections::BTreeSet;

use bindery_model::{Kind, Name};
use bindery_simulation::World;
use serde_json::Value;

use crate::guards;

/// What has been.
#[derive(Debug, Default)]
pub struct Past {
    /// The names of all claims that a pod has had.
    used: BTreeSet<String>,
    /// The UIDs of the pods that were given their nodes when one of their claims was being deleted already. Who decided that
    /// had not heard of it, and who let go of the claim had looked before.
    too_late: BTreeSet<String>,
}

impl Past {
    /// Notes how things stand.
    pub fn note(&mut self, world: &World) {
        let pods = world.objects().filter(|(key, _)| key.kind == Kind::Pod);
        self.used.extend(pods.flat_map(|(_, pod)| guards::claims_of(pod)).map(|(claim, _)| claim));
    }

    /// Whether a claim of that name was ever used by a pod.
    pub fn was_used(&self, claim: &Name) -> bool {
        self.used.contains(claim.as_str())
    }

    /// Notes that a pod was given a node too late.
    pub fn note_too_late(&mut self, pod: &Value) {
        self.too_late.extend(pod["metadata"]["uid"].as_str().map(str::to_owned));
    }

    /// Whether a pod was given a node too late.
    pub fn was_too_late(&self, pod: &Value) -> bool {
        pod["metadata"]["uid"].as_str().is_some_and(|uid| self.too_late.contains(uid))
    }
}
