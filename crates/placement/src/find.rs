//! What a node has for a pod's claims.

use std::sync::Arc;

use bindery_mirror::Near;
use bindery_volumes::{Capacity, Choice, Claim, Name, Node, Volume, choose};

use crate::prepare::Wanted;
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
        for volume in &self.bound {
            let Some(volume) = volume else { return Ok(Some(Obstacle::VolumeMissing).into_iter()) };
            if volume.check(node, || self.view.csi_node(node.name()).map(|csi| &**csi))?.is_err() {
                return Ok(Some(Obstacle::Unreachable).into_iter());
            }
        }
        Ok(None.into_iter())
    }

    /// Finds volumes for the claims that have none, or that they can be made.
    fn find_unbound<'s>(&'s self, node: &Node, found: &mut Found<'s>) -> Result<Option<Obstacle>, Fault> {
        if self.pinned.iter().any(|pinned| pinned.node != node.name()) {
            return Ok(Some(Obstacle::NothingToBind));
        }
        let mut unmatched = Vec::new();
        let mut near = Near::default();
        found.bindings.reserve_exact(self.wanted.len());
        for wanted in &self.wanted {
            if !wanted.is_like_previous {
                near = wanted.candidates.near(&node.labels);
            }
            match matching(wanted, &near, node, &found.bindings)? {
                Some(binding) => found.bindings.push(binding),
                None => unmatched.push(&wanted.making),
            }
        }
        let provisions = self.pinned.iter().map(|pinned| &pinned.making).chain(unmatched);
        Ok(Self::make(provisions, node, found))
    }

    /// Whether volumes can be made for all of these claims; if not, none is to be made.
    fn make<'s>(all: impl Iterator<Item = &'s Making<'a>>, node: &Node, found: &mut Found<'s>) -> Option<Obstacle>
    where
        'a: 's,
    {
        for making in all {
            match making.on(node) {
                Ok(provision) => found.provisions.push(provision),
                Err(obstacle) => {
                    found.provisions.clear();
                    return Some(obstacle);
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
