//! Finding a volume for a claim, and a claim for a volume, by index lookups.

use std::sync::Arc;

use bindery_cache::{Cache, MatchKey};
use bindery_matching::{MatchCriteria, mismatch};
use bindery_model::{ClaimKey, Volume};

pub use bindery_matching::{Choice, is_delayed};

/// The volume for a claim: one reserved for it, otherwise an available match with the fewest access
/// modes, then the smallest capacity, then the first name. A delayed claim gets only a reserved
/// one.
pub fn choose<'a>(known: &'a Cache, request: &MatchCriteria<'_>) -> Option<Choice<'a>> {
    let claim = request.claim;
    bindery_matching::choose(
        request,
        known.volumes_of(&claim.key()),
        |fits: &dyn Fn(&Volume) -> bool| -> Option<&'a Arc<Volume>> {
            let key = MatchKey::of_claim(claim);
            known.free_volumes().first(&key, request.modes, claim.requested(), request.selector, fits)
        },
    )
}

/// The claim that an available volume is handed to: the matching one that requests most, then the
/// first key. `skip` excludes claims that it was handed to before.
pub fn taker<'a>(known: &'a Cache, volume: &Volume, skip: impl Fn(&ClaimKey) -> bool) -> Option<&'a ClaimKey> {
    if !volume.is_free() || known.is_requested_by_name(volume) {
        return None;
    }
    let would_take = |key: &ClaimKey| {
        !skip(key)
            && known.claim(key).is_some_and(|claim| {
                let request = MatchCriteria::of(claim, is_delayed(known, claim).unwrap_or(true));
                request.is_ok_and(|request| mismatch(&request, volume).is_none())
            })
    };
    known.unmatched_claims().largest(volume, would_take)
}
