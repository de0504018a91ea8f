//! Past states, as far as the promises depend on them.

use std::collections::BTreeSet;

use bindery_model::{Kind, Name};
use bindery_simulation::SimulatedCluster;
use serde_json::Value;

use crate::protection;

/// What happened so far.
#[derive(Debug, Default)]
pub struct History {
    /// The names of all claims that a pod has used.
    used: BTreeSet<String>,
    /// The UIDs of pods that were bound to a node while one of their claims was being deleted. The
    /// scheduler had not seen the deletion, and the protection controller had not seen the node.
    placed_too_late: BTreeSet<String>,
}

impl History {
    /// Records the claims that are in use now.
    pub fn observe(&mut self, cluster: &SimulatedCluster) {
        let pods = cluster.objects().filter(|(key, _)| key.kind == Kind::Pod);
        self.used.extend(pods.flat_map(|(_, pod)| protection::claims_of(pod)).map(|(claim, _)| claim));
    }

    pub fn was_used(&self, claim: &Name) -> bool {
        self.used.contains(claim.as_str())
    }

    /// Records that a pod was bound to a node after the deletion of a claim.
    pub fn note_placed_too_late(&mut self, pod: &Value) {
        self.placed_too_late.extend(pod["metadata"]["uid"].as_str().map(str::to_owned));
    }

    pub fn was_placed_too_late(&self, pod: &Value) -> bool {
        pod["metadata"]["uid"].as_str().is_some_and(|uid| self.placed_too_late.contains(uid))
    }
}
