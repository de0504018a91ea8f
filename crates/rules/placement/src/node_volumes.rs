//! The volumes that a node has for a pod's claims.

use std::sync::Arc;

use bindery_cache::ReachableVolumes;
use bindery_matching::{Choice, choose};
use bindery_model::{Capacity, Claim, Name, Node, Volume};

use crate::prepare::{BoundClaim, UnboundClaim};
use crate::provision::ProvisionOption;
use crate::{NodeRejection, PlacementError, PreparedClaims};

/// A volume that was found for a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binding<'a> {
    /// The claim.
    pub claim: &'a Arc<Claim>,
    /// The volume.
    pub volume: &'a Arc<Volume>,
    /// The volume's class. Stored here, like `bytes`, so that scoring nodes reads no volumes.
    pub class: &'a Name,
    /// The volume's capacity in whole bytes, rounded up.
    pub bytes: i128,
}

impl<'a> Binding<'a> {
    /// A volume for a claim.
    pub fn of(claim: &'a Arc<Claim>, volume: &'a Arc<Volume>) -> Binding<'a> {
        Binding { claim, volume, class: volume.class(), bytes: volume.size().units() }
    }
}

/// A volume that can be provisioned for a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewVolume<'a> {
    /// The claim.
    pub claim: &'a Arc<Claim>,
    /// The capacity that it fits in, if its driver publishes capacity.
    pub capacity: Option<&'a Arc<Capacity>>,
}

/// The volumes that a node has for a pod's claims.
#[derive(Debug, Default, PartialEq)]
pub struct NodeVolumes<'a> {
    /// Existing volumes for claims, the smallest request first.
    pub bindings: Vec<Binding<'a>>,
    /// Volumes to provision.
    pub new_volumes: Vec<NewVolume<'a>>,
    /// Why the node is not suitable; empty if it is.
    pub rejections: Vec<NodeRejection>,
}

/// Why the volume of a bound claim cannot be used from a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnusableVolume {
    /// Its node affinity excludes the node.
    NodeAffinity,
    /// It does not exist.
    Missing,
}

impl UnusableVolume {
    /// The rejection of the node that follows.
    pub fn rejection(self) -> NodeRejection {
        match self {
            UnusableVolume::NodeAffinity => NodeRejection::VolumeUnreachable,
            UnusableVolume::Missing => NodeRejection::VolumeMissing,
        }
    }
}

impl<'a> PreparedClaims<'a> {
    /// The volumes that a node has for the pod's claims, and why it is not suitable.
    pub fn find(&self, node: &Node) -> Result<NodeVolumes<'_>, PlacementError> {
        let mut found = NodeVolumes::default();
        let bound = self.check_bound(node)?;
        // In upstream's order: unreachable volumes before the other claims, missing volumes after
        // them.
        found.rejections.extend(bound.clone().filter(|reason| *reason == NodeRejection::VolumeUnreachable));
        let unbound = self.find_unbound(node, &mut found)?;
        found.rejections.extend(unbound);
        found.rejections.extend(bound.filter(|reason| *reason == NodeRejection::VolumeMissing));
        Ok(found)
    }

    /// The rejection because of the first bound volume that cannot be used from a node.
    fn check_bound(&self, node: &Node) -> Result<std::option::IntoIter<NodeRejection>, PlacementError> {
        for bound in &self.bound {
            if let Err(unusable) = self.check_volume(bound, node)? {
                return Ok(Some(unusable.rejection()).into_iter());
            }
        }
        Ok(None.into_iter())
    }

    /// Whether the volume of a bound claim can be used from a node.
    pub(crate) fn check_volume(
        &self,
        bound: &BoundClaim<'_>,
        node: &Node,
    ) -> Result<Result<(), UnusableVolume>, PlacementError> {
        let Some(volume) = &bound.volume else { return Ok(Err(UnusableVolume::Missing)) };
        let reached = volume.check(node, || self.cache.csi_node(node.name()).map(|csi| &**csi))?;
        Ok(reached.map_err(|_| UnusableVolume::NodeAffinity))
    }

    /// Finds or provisions volumes for the unbound claims.
    fn find_unbound<'s>(
        &'s self,
        node: &Node,
        found: &mut NodeVolumes<'s>,
    ) -> Result<Option<NodeRejection>, PlacementError> {
        if self.selected.iter().any(|selected| selected.is_elsewhere(node)) {
            return Ok(Some(NodeRejection::NoMatchingVolume));
        }
        let unmatched = self.match_unbound(node, &mut found.bindings)?;
        let unmatched = unmatched.into_iter().map(|unbound| &unbound.option);
        let options = self.selected.iter().map(|selected| &selected.option).chain(unmatched);
        Ok(Self::provision(options, node, found))
    }

    /// Finds available volumes for the unbound claims; returns the claims without one.
    pub(crate) fn match_unbound<'s>(
        &'s self,
        node: &Node,
        bindings: &mut Vec<Binding<'s>>,
    ) -> Result<Vec<&'s UnboundClaim<'a>>, PlacementError> {
        let mut unmatched = Vec::new();
        let mut reachable = ReachableVolumes::default();
        bindings.reserve_exact(self.unbound.len());
        for unbound in &self.unbound {
            if !unbound.is_like_previous {
                reachable = unbound.candidates.reachable(&node.labels);
            }
            match find_volume(unbound, &reachable, node, bindings)? {
                Some(binding) => bindings.push(binding),
                None => unmatched.push(unbound),
            }
        }
        Ok(unmatched)
    }

    /// Adds the volumes to provision: all of them or none.
    fn provision<'s>(
        options: impl Iterator<Item = &'s ProvisionOption<'a>>,
        node: &Node,
        found: &mut NodeVolumes<'s>,
    ) -> Option<NodeRejection>
    where
        'a: 's,
    {
        for option in options {
            match option.on(node) {
                Ok(volume) => found.new_volumes.push(volume),
                Err(reason) => {
                    found.new_volumes.clear();
                    return Some(reason.rejection());
                }
            }
        }
        None
    }
}

/// The volume for a claim, if one is left that is not taken for another claim of the pod.
fn find_volume<'s>(
    unbound: &'s UnboundClaim<'_>,
    reachable: &ReachableVolumes<'s>,
    node: &Node,
    taken: &[Binding<'s>],
) -> Result<Option<Binding<'s>>, PlacementError> {
    let claim = unbound.claim;
    let criteria = unbound.criteria.as_ref().map_err(Clone::clone)?.on(&node.labels);
    let is_taken = |volume: &Arc<Volume>| taken.iter().any(|binding| Arc::ptr_eq(binding.volume, volume));
    let reserved = unbound.reserved.iter().copied().filter(|volume| !is_taken(volume));
    let free = |fits: &dyn Fn(&Volume) -> bool| {
        let found = reachable.first(&unbound.requirements, &node.labels, is_taken);
        // Not tested for each of thousands of nodes, but again in the plan for the chosen one.
        debug_assert!(found.is_none_or(|found| fits(found.volume())), "the index contains only matching volumes");
        found
    };
    Ok(choose(&criteria, reserved, free).map(|choice| match choice {
        Choice::Reserved(volume) => Binding::of(claim, volume),
        Choice::Fits(found) => Binding { claim, volume: found.volume(), class: claim.class(), bytes: found.bytes() },
    }))
}
