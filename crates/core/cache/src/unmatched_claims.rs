//! Claims that need a volume and have no suitable one reserved, in the order in which a new volume
//! is handed to them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use bindery_model::{AccessSet, Claim, ClaimKey, Labels, Selector, Volume};
use rustc_hash::FxHashMap;

use crate::MatchKey;

/// A claim ordered by request, the largest first, then by key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RankedClaim {
    request_nanos: Reverse<i128>,
    key: ClaimKey,
}

impl RankedClaim {
    fn of(claim: &Claim) -> RankedClaim {
        RankedClaim { request_nanos: Reverse(claim.requested().nanos()), key: claim.key() }
    }
}

/// What claims of one group require of a volume besides its match key and size.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Requirements {
    modes: AccessSet,
    /// An invalid selector matches nothing.
    selector: Option<Box<Result<Selector, String>>>,
}

impl Requirements {
    fn of(claim: &Claim) -> Requirements {
        Requirements { modes: claim.modes.set(), selector: claim.selector.clone() }
    }

    fn are_met(&self, modes: AccessSet, labels: &Labels) -> bool {
        let matches = |selector: &Result<Selector, String>| selector.as_ref().is_ok_and(|it| it.matches(labels));
        modes.contains(self.modes) && self.selector.as_deref().is_none_or(matches)
    }
}

/// Claims that need a volume, by match key, then by access modes, selector and request. Claims with
/// equal selectors are in one group, so that a selector is tested once for all of them.
#[derive(Debug, Clone, Default)]
pub struct UnmatchedClaims {
    groups: FxHashMap<MatchKey, FxHashMap<Requirements, BTreeSet<RankedClaim>>>,
}

impl UnmatchedClaims {
    pub(crate) fn insert(&mut self, claim: &Claim) {
        let groups = self.groups.entry(MatchKey::of_claim(claim)).or_default();
        groups.entry(Requirements::of(claim)).or_default().insert(RankedClaim::of(claim));
    }

    pub(crate) fn remove(&mut self, claim: &Claim) {
        let key = MatchKey::of_claim(claim);
        let Some(groups) = self.groups.get_mut(&key) else { return };
        let requirements = Requirements::of(claim);
        let Some(claims) = groups.get_mut(&requirements) else { return };
        claims.remove(&RankedClaim::of(claim));
        if claims.is_empty() {
            groups.remove(&requirements);
        }
        if groups.is_empty() {
            self.groups.remove(&key);
        }
    }

    /// The claim to hand a volume to: among the acceptable ones, the one with the largest request
    /// that fits, so that small claims do not take large volumes; then the first by key.
    pub fn largest(&self, volume: &Volume, mut accept: impl FnMut(&ClaimKey) -> bool) -> Option<&ClaimKey> {
        let groups = self.groups.get(&MatchKey::of_volume(volume))?;
        let most = RankedClaim { request_nanos: Reverse(volume.size().nanos()), key: ClaimKey::default() };
        let modes = volume.modes.set();
        let served = groups.iter().filter(|(required, _)| required.are_met(modes, &volume.labels));
        let best = served.filter_map(|(_, claims)| claims.range(&most..).find(|claim| accept(&claim.key))).min();
        best.map(|claim| &claim.key)
    }

    /// The number of unmatched claims.
    pub fn len(&self) -> usize {
        self.groups.values().flat_map(|groups| groups.values()).map(BTreeSet::len).sum()
    }

    /// Whether every claim has a volume.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}
