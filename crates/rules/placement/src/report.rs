//! A node's volumes for each of a pod's claims separately, to explain all reasons and not only the
//! first.

use std::sync::Arc;

use bindery_model::{Claim, Name, Node, Volume};

use crate::prepare::{BoundClaim, UnboundClaim};
use crate::{CannotProvision, NewVolume, NodeRejection, PlacementError, PreparedClaims, UnusableVolume};

/// Everything to say about a node's volumes for a pod.
#[derive(Debug)]
pub struct NodeReport<'a> {
    /// The outcome for each claim, except those because of which the pod is rejected for all nodes.
    pub claims: Vec<(&'a Arc<Claim>, ClaimOutcome<'a>)>,
    /// The rejections for other reasons.
    pub rejections: Vec<NodeRejection>,
}

/// What a node has for a claim.
#[derive(Debug, PartialEq)]
pub enum ClaimOutcome<'a> {
    /// The volume that the claim is bound to is reachable.
    Bound(&'a Name),
    /// The claim would be bound to a volume that is reserved for it.
    Reserved(&'a Arc<Volume>),
    /// The claim would be bound to an available volume.
    Available(&'a Arc<Volume>),
    /// A volume would be provisioned.
    Provision(NewVolume<'a>),
    /// The claim cannot be bound there.
    Failed(ClaimFailure<'a>),
}

/// Why a claim cannot be bound on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFailure<'a> {
    /// The volume that it is bound to cannot be used from there.
    Unusable(&'a Name, UnusableVolume),
    /// Another node is selected for provisioning its volume.
    SelectedElsewhere(&'a Name),
    /// The volume that is reserved for it is unreachable, and it gets no other.
    ReservedElsewhere(&'a Name),
    /// Its class has no provisioner, and this is the largest reachable volume: it is too small.
    TooSmall(&'a Arc<Volume>),
    /// No reachable volume matches, and none can be provisioned.
    CannotProvision(CannotProvision),
}

impl ClaimFailure<'_> {
    /// The rejection of the node that follows.
    pub fn rejection(&self) -> NodeRejection {
        match self {
            ClaimFailure::Unusable(_, unusable) => unusable.rejection(),
            ClaimFailure::SelectedElsewhere(_) | ClaimFailure::ReservedElsewhere(_) | ClaimFailure::TooSmall(_) => {
                NodeRejection::NoMatchingVolume
            }
            ClaimFailure::CannotProvision(reason) => reason.rejection(),
        }
    }
}

impl<'a> PreparedClaims<'a> {
    /// The outcome of each claim on a node, by the same tests as [`PreparedClaims::find`]: that has
    /// no rejection exactly when no claim is [`ClaimOutcome::Failed`].
    pub fn outcomes(&self, node: &Node) -> Result<Vec<(&Arc<Claim>, ClaimOutcome<'_>)>, PlacementError> {
        let mut all = Vec::new();
        for bound in &self.bound {
            all.push((bound.claim, of_bound(bound, self.check_volume(bound, node)?)));
        }
        for selected in &self.selected {
            let outcome = match selected.is_elsewhere(node) {
                true => ClaimOutcome::Failed(ClaimFailure::SelectedElsewhere(selected.node)),
                false => of_option(selected.option.on(node)),
            };
            all.push((selected.claim, outcome));
        }
        let mut bindings = Vec::new();
        let unmatched = self.match_unbound(node, &mut bindings)?;
        all.extend(bindings.into_iter().map(|binding| {
            let is_reserved = binding.volume.refers_to(binding.claim);
            let outcome = if is_reserved { ClaimOutcome::Reserved } else { ClaimOutcome::Available };
            (binding.claim, outcome(binding.volume))
        }));
        all.extend(unmatched.into_iter().map(|unbound| (unbound.claim, of_unmatched(unbound, node))));
        debug_assert_eq!(
            self.find(node).is_ok_and(|found| found.rejections.is_empty()),
            !all.iter().any(|(_, outcome)| matches!(outcome, ClaimOutcome::Failed(_))),
            "the outcomes of claims agree with the node's suitability"
        );
        Ok(all)
    }
}

fn of_bound<'s>(bound: &'s BoundClaim<'_>, checked: Result<(), UnusableVolume>) -> ClaimOutcome<'s> {
    match checked {
        Ok(()) => ClaimOutcome::Bound(bound.name),
        Err(unusable) => ClaimOutcome::Failed(ClaimFailure::Unusable(bound.name, unusable)),
    }
}

fn of_option<'s>(volume: Result<NewVolume<'s>, CannotProvision>) -> ClaimOutcome<'s> {
    match volume {
        Ok(volume) => ClaimOutcome::Provision(volume),
        Err(reason) => ClaimOutcome::Failed(ClaimFailure::CannotProvision(reason)),
    }
}

fn of_unmatched<'s>(unbound: &'s UnboundClaim<'_>, node: &Node) -> ClaimOutcome<'s> {
    let is_unreachable = |volume: &&&Arc<Volume>| volume.refers_to(unbound.claim) && !volume.is_reachable(&node.labels);
    match (unbound.option.on(node), unbound.reserved.iter().find(is_unreachable)) {
        (Err(CannotProvision::NoProvisioner | CannotProvision::Topology), Some(volume)) => {
            ClaimOutcome::Failed(ClaimFailure::ReservedElsewhere(volume.name()))
        }
        (Err(reason @ CannotProvision::NoProvisioner), None) => {
            let reachable = unbound.candidates.reachable(&node.labels);
            let too_small = reachable.largest_too_small(&unbound.requirements, &node.labels);
            let failure = too_small.map(|found| ClaimFailure::TooSmall(found.volume()));
            ClaimOutcome::Failed(failure.unwrap_or(ClaimFailure::CannotProvision(reason)))
        }
        (option, _) => of_option(option),
    }
}
