//! Claims that look for a volume and have none in sight, in the order in which a new volume is offered to them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use bindery_model::{AccessSet, Claim, ClaimKey};
use rustc_hash::FxHashMap;

use crate::PoolKey;

/// A claim's rank: who asks for most first, then the first by key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    request_nanos: Reverse<i128>,
    key: ClaimKey,
}

impl Rank {
    fn of(claim: &Claim) -> Rank {
        Rank { request_nanos: Reverse(claim.requested().nanos()), key: claim.key() }
    }
}

/// Looking claims by place, then by access modes, then by request.
#[derive(Debug, Default)]
pub struct Demand {
    places: FxHashMap<PoolKey, FxHashMap<AccessSet, BTreeSet<Rank>>>,
}

impl Demand {
    pub(crate) fn insert(&mut self, claim: &Claim) {
        let groups = self.places.entry(PoolKey::of_claim(claim)).or_default();
        groups.entry(claim.modes.set()).or_default().insert(Rank::of(claim));
    }

    pub(crate) fn remove(&mut self, claim: &Claim) {
        let place = PoolKey::of_claim(claim);
        let Some(groups) = self.places.get_mut(&place) else { return };
        let Some(ranks) = groups.get_mut(&claim.modes.set()) else { return };
        ranks.remove(&Rank::of(claim));
        if ranks.is_empty() {
            groups.remove(&claim.modes.set());
        }
        if groups.is_empty() {
            self.places.remove(&place);
        }
    }

    /// The claim that a volume is offered to: of those that it can serve, the one that asks for most, so that small claims do
    /// not take what only large volumes can give; then the first by key.
    pub fn most(
        &self,
        place: &PoolKey,
        modes: AccessSet,
        capacity_nanos: i128,
        mut accept: impl FnMut(&ClaimKey) -> bool,
    ) -> Option<&ClaimKey> {
        let groups = self.places.get(place)?;
        let most = Rank { request_nanos: Reverse(capacity_nanos), key: ClaimKey::default() };
        let served = groups.iter().filter(|(needed, _)| modes.contains(**needed));
        let best = served.filter_map(|(_, ranks)| ranks.range(&most..).find(|rank| accept(&rank.key))).min();
        best.map(|rank| &rank.key)
    }

    /// How many claims look for a volume.
    pub fn len(&self) -> usize {
        self.places.values().flat_map(|groups| groups.values()).map(BTreeSet::len).sum()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}
