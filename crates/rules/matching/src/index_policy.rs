//! The tests that decide what the cache indexes.

use std::sync::Arc;

use bindery_cache::{Cache, IndexPolicy};
use bindery_model::{Annotation, Claim, Name, Pod, Volume};

use crate::{MatchCriteria, check_satisfies, reserved_mismatch};

/// The policy of a cache that rules look volumes, claims and pods up in.
pub const INDEX_POLICY: IndexPolicy = IndexPolicy { is_requested_by_name, is_served_by, planned_node };

/// A claim that names a volume gets it if it can have it, so the volume is not a candidate for
/// other claims, even before anything is written on it.
fn is_requested_by_name(claim: &Claim, volume: &Volume) -> bool {
    claim.field_error.is_none() && (claim.is_bind_completed() || check_satisfies(claim, volume).is_ok())
}

/// A claim with a reserved volume that satisfies it needs no other.
fn is_served_by(claim: &Claim, volume: &Volume) -> bool {
    let criteria = MatchCriteria::of(claim, false);
    volume.refers_to(claim) && criteria.is_ok_and(|criteria| reserved_mismatch(&criteria, volume).is_none())
}

/// The node on which a pod without a node is expected to run, so that it counts there: its
/// nominated node; else the node selected for one of its unbound claims; else the host of a volume
/// that a controller reserved for one. A volume that a user reserved does not count: nothing has
/// checked yet whether the pod can run there.
fn planned_node(known: &Cache, pod: &Pod) -> Option<Name> {
    if !pod.scheduling.nominated_node.is_empty() {
        return Some(pod.scheduling.nominated_node.clone());
    }
    let claims = pod.claim_keys().filter_map(|key| known.claim(&key));
    claims.filter(|claim| !claim.is_bind_completed()).find_map(|claim| {
        let selected = claim.annotations.get(Annotation::SelectedNode).filter(|node| !node.is_empty());
        let is_reserved =
            |volume: &&Arc<Volume>| volume.refers_to(claim) && volume.annotations.has(Annotation::BoundByController);
        let host = || {
            let key = claim.key();
            let mut reserved = known.volumes_of(&key).filter(is_reserved);
            reserved.find_map(|volume| volume.nodes.as_ref()?.host().cloned())
        };
        selected.cloned().or_else(host)
    })
}
