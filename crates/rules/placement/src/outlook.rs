//! What a node has for each of a pod's claims by itself: for whoever wants to know all reasons, and not only the first.

use std::sync::Arc;

use bindery_model::{Claim, Name, Node, Volume, points_to};

use crate::prepare::{Bound, Wanted};
use crate::{Fault, Obstacle, Prepared, Provision, Unmade, Unreached, View};

/// What a node has for a pod.
#[derive(Debug)]
pub struct Outlook<'a> {
    /// What it has for each of the pod's claims, but for those that keep the pod from every node.
    pub claims: Vec<(&'a Arc<Claim>, Prospect<'a>)>,
    /// What there is against the node beside.
    pub beside: Vec<Obstacle>,
}

/// What a node has for a claim.
#[derive(Debug, PartialEq)]
pub enum Prospect<'a> {
    /// The volume that the claim is bound to can be reached from there.
    Bound(&'a Name),
    /// The claim would be bound to a volume that is reserved for it.
    Reserved(&'a Arc<Volume>),
    /// The claim would be bound to a free volume.
    Free(&'a Arc<Volume>),
    /// A volume would be made for it.
    Made(Provision<'a>),
    /// Nothing.
    Nothing(Lack<'a>),
}

/// Why a node has nothing for a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack<'a> {
    /// The volume that it is bound to cannot be used from there.
    Unreached(&'a Name, Unreached),
    /// Its volume is to be made for another node.
    Elsewhere(&'a Name),
    /// A volume that is reserved for it cannot be reached from there, and it gets no other.
    ReservedElsewhere(&'a Name),
    /// Its class makes none, and of the free volumes that can be reached from there this is the largest: it is too small.
    TooSmall(&'a Arc<Volume>),
    /// No free volume that fits can be reached from there, and none can be made.
    Unmade(Unmade),
}

impl Lack<'_> {
    /// What that is of the reasons against a node.
    pub fn obstacle(&self) -> Obstacle {
        match self {
            Lack::Unreached(_, unreached) => unreached.obstacle(),
            Lack::Elsewhere(_) => Obstacle::NothingToBind,
            // What is reserved and out of reach is passed over in silence, and then it is asked whether one can be made.
            Lack::ReservedElsewhere(_) | Lack::TooSmall(_) => Obstacle::NothingToBind,
            Lack::Unmade(unmade) => unmade.obstacle(),
        }
    }
}

impl<'a, V: View> Prepared<'a, V> {
    /// What a node has for each claim, by the tests that [`Prepared::find`] makes. There is nothing against the node there exactly
    /// when no claim has [`Prospect::Nothing`] here.
    pub fn prospects(&self, node: &Node) -> Result<Vec<(&Arc<Claim>, Prospect<'_>)>, Fault> {
        let mut all = Vec::new();
        for bound in &self.bound {
            all.push((bound.claim, of_bound(bound, self.reach(bound, node)?)));
        }
        for pinned in &self.pinned {
            let prospect = match pinned.is_elsewhere(node) {
                true => Prospect::Nothing(Lack::Elsewhere(pinned.node)),
                false => made(pinned.making.on(node)),
            };
            all.push((pinned.claim, prospect));
        }
        let mut bindings = Vec::new();
        let unmatched = self.match_wanted(node, &mut bindings)?;
        all.extend(bindings.into_iter().map(|binding| {
            let is_reserved = points_to(binding.volume, binding.claim);
            let of = if is_reserved { Prospect::Reserved } else { Prospect::Free };
            (binding.claim, of(binding.volume))
        }));
        all.extend(unmatched.into_iter().map(|wanted| (wanted.claim, of_unmatched(wanted, node))));
        debug_assert_eq!(
            self.find(node).is_ok_and(|found| found.obstacles.is_empty()),
            !all.iter().any(|(_, prospect)| matches!(prospect, Prospect::Nothing(_))),
            "what is said of each claim is what is said of all"
        );
        Ok(all)
    }
}

fn of_bound<'s>(bound: &'s Bound<'_>, reached: Result<(), Unreached>) -> Prospect<'s> {
    match reached {
        Ok(()) => Prospect::Bound(bound.name),
        Err(unreached) => Prospect::Nothing(Lack::Unreached(bound.name, unreached)),
    }
}

fn made<'s>(made: Result<Provision<'s>, Unmade>) -> Prospect<'s> {
    match made {
        Ok(provision) => Prospect::Made(provision),
        Err(unmade) => Prospect::Nothing(Lack::Unmade(unmade)),
    }
}

fn of_unmatched<'s>(wanted: &'s Wanted<'_>, node: &Node) -> Prospect<'s> {
    let is_out_of_reach =
        |volume: &&&Arc<Volume>| points_to(volume, wanted.claim) && !volume.is_reachable(&node.labels);
    match (wanted.making.on(node), wanted.reserved.iter().find(is_out_of_reach)) {
        (Err(Unmade::NoMaker | Unmade::Topology), Some(volume)) => {
            Prospect::Nothing(Lack::ReservedElsewhere(volume.name()))
        }
        (Err(Unmade::NoMaker), None) => {
            let near = wanted.candidates.near(&node.labels);
            let too_small = near.largest_too_small(&wanted.wish, &node.labels).map(|found| found.volume());
            Prospect::Nothing(too_small.map_or(Lack::Unmade(Unmade::NoMaker), Lack::TooSmall))
        }
        (on_node, _) => made(on_node),
    }
}
