//! Reading a pod's claims once, before any node is considered.
//!
//! Invariants of [`PreparedClaims`]:
//! - Every usable claim of the pod is in exactly one of `bound`, `selected` (a volume is to be
//!   provisioned for a node that was selected before) and `unbound`. Claims of classes with
//!   Immediate binding are bound, or the pod is rejected.
//! - `unbound` is in the order in which claims choose: the smallest request first, so that the
//!   smallest volumes are taken; then in the pod's order.
//! - It contains everything that does not depend on the node, so the cost per node does not depend
//!   on the number of objects.

use std::sync::Arc;

use bindery_cache::{Cache, Candidates, VolumeRequirements};
use bindery_matching::{MatchCriteria, is_delayed};
use bindery_model::{Annotation, Claim, ClaimKey, ClaimPhase, Name, Node, Pod, Volume};

use crate::migration::VolumeTopology;
use crate::provision::ProvisionOption;
use crate::{PlacementError, PodRejection};

/// A pod's claims, prepared for finding volumes on nodes.
#[derive(Debug)]
pub struct PreparedClaims<'a> {
    pub(crate) cache: &'a Cache,
    /// Bound claims, in the pod's order.
    pub(crate) bound: Vec<BoundClaim<'a>>,
    /// Claims for which a volume is to be provisioned on a node that was selected before.
    pub(crate) selected: Vec<SelectedClaim<'a>>,
    /// Claims that need a volume.
    pub(crate) unbound: Vec<UnboundClaim<'a>>,
}

/// A claim that is bound.
#[derive(Debug)]
pub(crate) struct BoundClaim<'a> {
    pub claim: &'a Arc<Claim>,
    /// The name of the volume.
    pub name: &'a Name,
    /// The topology of the volume, if it exists.
    pub volume: Option<VolumeTopology<'a>>,
}

/// A claim for which a volume is to be provisioned on the selected node.
#[derive(Debug)]
pub(crate) struct SelectedClaim<'a> {
    pub claim: &'a Arc<Claim>,
    pub node: &'a Name,
    pub option: ProvisionOption<'a>,
}

impl SelectedClaim<'_> {
    /// Whether another node is selected.
    pub fn is_elsewhere(&self, node: &Node) -> bool {
        self.node != node.name()
    }
}

/// A claim that needs a volume.
#[derive(Debug)]
pub(crate) struct UnboundClaim<'a> {
    pub claim: &'a Arc<Claim>,
    pub criteria: Result<MatchCriteria<'a>, PlacementError>,
    pub requirements: VolumeRequirements,
    /// The available volumes that match except for capacity and node.
    pub candidates: Candidates<'a>,
    /// Whether the candidates are those of the previous claim.
    pub is_like_previous: bool,
    /// The volumes that refer to the claim.
    pub reserved: Vec<&'a Arc<Volume>>,
    pub option: ProvisionOption<'a>,
}

/// A claim because of which its pod is rejected for all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRejection {
    /// The claim.
    pub claim: ClaimKey,
    /// The reason.
    pub why: PodRejection,
}

/// The claims of a pod in order, and whether each is for an ephemeral volume.
pub(crate) fn claims_of(pod: &Pod) -> impl Iterator<Item = (ClaimKey, bool)> {
    pod.volumes.iter().map(|volume| (pod.claim_key(volume), volume.is_ephemeral()))
}

/// The claims that a pod names, in order.
pub(crate) fn named_claims(pod: &Pod) -> impl Iterator<Item = ClaimKey> {
    claims_of(pod).filter(|(_, is_ephemeral)| !is_ephemeral).map(|(key, _)| key)
}

/// Reads a pod's claims. Claims because of which the pod is rejected are added to `rejected`, the
/// most relevant first, and left out.
pub fn prepare<'a>(cache: &'a Cache, pod: &Pod, rejected: &mut Vec<ClaimRejection>) -> PreparedClaims<'a> {
    let mut claims = Vec::new();
    for (key, is_ephemeral) in claims_of(pod) {
        match usable(cache, pod, &key, is_ephemeral) {
            Ok(claim) => claims.push(claim),
            Err(why) => rejected.push(ClaimRejection { claim: key, why }),
        }
    }
    let mut prepared = PreparedClaims { cache, bound: Vec::new(), selected: Vec::new(), unbound: Vec::new() };
    let mut immediate = Vec::new();
    for claim in claims {
        if let Some(name) = claim.volume.as_ref().filter(|_| claim.is_bind_completed()) {
            let volume = cache.volume(name).map(|volume| VolumeTopology::of(volume));
            prepared.bound.push(BoundClaim { claim, name, volume });
            continue;
        }
        match is_delayed(cache, claim) {
            Err(problem) => {
                rejected.push(ClaimRejection { claim: claim.key(), why: PodRejection::ClassInvalid(problem) });
            }
            Ok(true) if claim.volume.is_none() => prepared.add_delayed(claim),
            Ok(_) => immediate.push(claim.key()),
        }
    }
    rejected.extend(immediate.into_iter().map(|claim| ClaimRejection { claim, why: PodRejection::ClaimUnbound }));
    prepared.unbound.sort_by(|a, b| a.claim.requested().cmp(b.claim.requested()));
    for at in 1..prepared.unbound.len() {
        let (before, after) = prepared.unbound.split_at_mut(at);
        after[0].is_like_previous = after[0].candidates.are(&before[at - 1].candidates);
    }
    prepared
}

/// A claim, if the pod can use it.
fn usable<'a>(cache: &'a Cache, pod: &Pod, key: &ClaimKey, is_ephemeral: bool) -> Result<&'a Arc<Claim>, PodRejection> {
    let name = || key.name.clone();
    let Some(claim) = cache.claim(key) else {
        return Err(match is_ephemeral {
            true => PodRejection::EphemeralClaimMissing(name()),
            false => PodRejection::ClaimMissing(name()),
        });
    };
    if let Some(error) = &claim.field_error {
        Err(PodRejection::ClaimMalformed(name(), error.clone()))
    } else if claim.status.phase == ClaimPhase::Lost {
        Err(PodRejection::ClaimLost { claim: name(), volume: claim.volume.clone().unwrap_or_default() })
    } else if claim.deleting {
        Err(PodRejection::ClaimDeleting(name()))
    } else if is_ephemeral && claim.controller.as_ref() != Some(&pod.meta.uid) {
        Err(PodRejection::ClaimNotOwned { claim: key.clone(), pod: pod.key() })
    } else {
        Ok(claim)
    }
}

impl<'a> PreparedClaims<'a> {
    /// Adds an unbound claim whose binding is delayed.
    fn add_delayed(&mut self, claim: &'a Arc<Claim>) {
        let option = ProvisionOption::of(self.cache, claim);
        if let Some(node) = claim.annotations.get(Annotation::SelectedNode) {
            self.selected.push(SelectedClaim { claim, node, option });
            return;
        }
        let criteria = MatchCriteria::of(claim, true)
            .map_err(|problem| PlacementError::Selector { claim: claim.key(), problem: problem.to_owned() });
        let requirements = VolumeRequirements::of(claim);
        let selector = criteria.as_ref().ok().and_then(|criteria| criteria.selector);
        let key = claim.key();
        self.unbound.push(UnboundClaim {
            claim,
            candidates: self.cache.topology_index().candidates(&requirements, selector),
            is_like_previous: false,
            criteria,
            requirements,
            reserved: self.cache.volumes_of(&key).collect(),
            option,
        });
    }
}
