//! What a node has for a pod's claims.

use std::sync::Arc;

use bindery_cache::Near;
use bindery_model::{Capacity, Choice, Claim, Name, Node, Volume, choose};

use crate::prepare::{Bound, Wanted};
use crate::provision::Making;
use crate::{Fault, Obstacle, Prepared, View};

/// A volume that was found for a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binding<'a> {
    /// The claim.
    pub claim: &'a Arc<Claim>,
    /// The volume.
    pub volume: &'a Arc<Volume>,
    /// The volume's class. It and the next are here so that nodes can be scored without looking at volumes.
    pub class: &'a Name,
    /// How much the volume holds, in whole bytes, rounded up.
    pub bytes: i128,
}

impl<'a> Binding<'a> {
    /// A volume for a claim.
    pub fn of(claim: &'a Arc<Claim>, volume: &'a Arc<Volume>) -> Binding<'a> {
        Binding { claim, volume, class: volume.class(), bytes: volume.holds().units() }
    }
}

/// A claim for which a volume can be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Provision<'a> {
    /// The claim.
    pub claim: &'a Arc<Claim>,
    /// Where there is room for it, if its driver says how much there is.
    pub room: Option<&'a Arc<Capacity>>,
}

/// What a node has for a pod's claims.
#[derive(Debug, Default, PartialEq)]
pub struct Found<'a> {
    /// Volumes for claims, who asks for least first.
    pub bindings: Vec<Binding<'a>>,
    /// Claims for which a volume can be made.
    pub provisions: Vec<Provision<'a>>,
    /// Why the node cannot serve the pod all the same; it can when there is nothing here.
    pub obstacles: Vec<Obstacle>,
}

/// Why the volume of a bound claim cannot be used from a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreached {
    /// By its node affinity it cannot be reached from there.
    NodeAffinity,
    /// It does not exist.
    Missing,
}

impl Unreached {
    /// What that is of the reasons against a node.
    pub fn obstacle(self) -> Obstacle {
        match self {
            Unreached::NodeAffinity => Obstacle::Unreachable,
            Unreached::Missing => Obstacle::VolumeMissing,
        }
    }
}

impl<'a, V: View> Prepared<'a, V> {
    /// What a node has for the pod's claims, and what stands against the node; why that cannot be said, otherwise.
    pub fn find(&self, node: &Node) -> Result<Found<'_>, Fault> {
        let mut found = Found::default();
        let bound = self.reach_bound(node)?;
        // Bound volumes that are out of reach are told of before what lacks for the other claims, missing ones after.
        found.obstacles.extend(bound.clone().filter(|obstacle| *obstacle == Obstacle::Unreachable));
        let unbound = self.find_unbound(node, &mut found)?;
        found.obstacles.extend(unbound);
        found.obstacles.extend(bound.filter(|obstacle| *obstacle == Obstacle::VolumeMissing));
        Ok(found)
    }

    /// What is wrong with the first bound volume that cannot be used from a node.
    fn reach_bound(&self, node: &Node) -> Result<std::option::IntoIter<Obstacle>, Fault> {
        for bound in &self.bound {
            if let Err(unreached) = self.reach(bound, node)? {
                return Ok(Some(unreached.obstacle()).into_iter());
            }
        }
        Ok(None.into_iter())
    }

    /// Whether the volume of a bound claim can be used from a node.
    pub(crate) fn reach(&self, bound: &Bound<'_>, node: &Node) -> Result<Result<(), Unreached>, Fault> {
        let Some(volume) = &bound.volume else { return Ok(Err(Unreached::Missing)) };
        let reached = volume.check(node, || self.view.csi_node(node.name()).map(|csi| &**csi))?;
        Ok(reached.map_err(|_| Unreached::NodeAffinity))
    }

    /// Finds volumes for the claims that have none, or that they can be made.
    fn find_unbound<'s>(&'s self, node: &Node, found: &mut Found<'s>) -> Result<Option<Obstacle>, Fault> {
        if self.pinned.iter().any(|pinned| pinned.is_elsewhere(node)) {
            return Ok(Some(Obstacle::NothingToBind));
        }
        let unmatched = self.match_wanted(node, &mut found.bindings)?;
        let unmatched = unmatched.into_iter().map(|wanted| &wanted.making);
        let provisions = self.pinned.iter().map(|pinned| &pinned.making).chain(unmatched);
        Ok(Self::make(provisions, node, found))
    }

    /// Finds volumes for the claims that look for one; returns the claims for which there is none.
    pub(crate) fn match_wanted<'s>(
        &'s self,
        node: &Node,
        bindings: &mut Vec<Binding<'s>>,
    ) -> Result<Vec<&'s Wanted<'a>>, Fault> {
        let mut unmatched = Vec::new();
        let mut near = Near::default();
        bindings.reserve_exact(self.wanted.len());
        for wanted in &self.wanted {
            if !wanted.is_like_previous {
                near = wanted.candidates.near(&node.labels);
            }
            match matching(wanted, &near, node, bindings)? {
                Some(binding) => bindings.push(binding),
                None => unmatched.push(wanted),
            }
        }
        Ok(unmatched)
    }

    /// Whether volumes can be made for all of these claims; if not, none is to be made.
    fn make<'s>(all: impl Iterator<Item = &'s Making<'a>>, node: &Node, found: &mut Found<'s>) -> Option<Obstacle>
    where
        'a: 's,
    {
        for making in all {
            match making.on(node) {
                Ok(provision) => found.provisions.push(provision),
                Err(unmade) => {
                    found.provisions.clear();
                    return Some(unmade.obstacle());
                }
            }
        }
        None
    }
}

/// The volume for a claim, of those that are not taken for another claim of the pod.
fn matching<'s>(
    wanted: &'s Wanted<'_>,
    near: &Near<'s>,
    node: &Node,
    taken: &[Binding<'s>],
) -> Result<Option<Binding<'s>>, Fault> {
    let claim = wanted.claim;
    let request = wanted.request.as_ref().map_err(Clone::clone)?.on(&node.labels);
    let is_taken = |volume: &Arc<Volume>| taken.iter().any(|binding| Arc::ptr_eq(binding.volume, volume));
    let reserved = wanted.reserved.iter().copied().filter(|volume| !is_taken(volume));
    let free = |fits: &dyn Fn(&Volume) -> bool| {
        let found = near.first(&wanted.wish, &node.labels, is_taken);
        // Of thousands of nodes one is chosen: there it is tested when it is planned for.
        debug_assert!(found.is_none_or(|found| fits(found.volume())), "what is in the index fits");
        found
    };
    Ok(choose(&request, reserved, free).map(|choice| match choice {
        Choice::Reserved(volume) => Binding::of(claim, volume),
        Choice::Fits(found) => Binding { claim, volume: found.volume(), class: claim.class(), bytes: found.bytes() },
    }))
}
