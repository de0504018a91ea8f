//! Claims that need a volume and have no suitable one reserved, in the order in which a new volume
//! is handed to them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use bindery_model::{AccessSet, Claim, ClaimKey};
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

/// Claims that need a volume, by match key, then by access modes and request.
#[derive(Debug, Clone, Default)]
pub struct UnmatchedClaims {
    groups: FxHashMap<MatchKey, FxHashMap<AccessSet, BTreeSet<RankedClaim>>>,
}

impl UnmatchedClaims {
    pub(crate) fn insert(&mut self, claim: &Claim) {
        let groups = self.groups.entry(MatchKey::of_claim(claim)).or_default();
        groups.entry(claim.modes.set()).or_default().insert(RankedClaim::of(claim));
    }

    pub(crate) fn remove(&mut self, claim: &Claim) {
        let key = MatchKey::of_claim(claim);
        let Some(groups) = self.groups.get_mut(&key) else { return };
        let Some(claims) = groups.get_mut(&claim.modes.set()) else { return };
        claims.remove(&RankedClaim::of(claim));
        if claims.is_empty() {
            groups.remove(&claim.modes.set());
        }
        if groups.is_empty() {
            self.groups.remove(&key);
        }
    }

    /// The claim to hand a volume to: among the acceptable ones, the one with the largest request
    /// that fits, so that small claims do not take large volumes; then the first by key.
    pub fn largest(
        &self,
        key: &MatchKey,
        modes: AccessSet,
        capacity_nanos: i128,
        mut accept: impl FnMut(&ClaimKey) -> bool,
    ) -> Option<&ClaimKey> {
        let groups = self.groups.get(key)?;
        let most = RankedClaim { request_nanos: Reverse(capacity_nanos), key: ClaimKey::default() };
        let served = groups.iter().filter(|(needed, _)| modes.contains(**needed));
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
