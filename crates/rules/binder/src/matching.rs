//! Choosing a volume for a claim, and a claim for a volume. Both by lookup, never by a scan.

use std::sync::Arc;

use bindery_cache::{Cache, MatchKey};
use bindery_matching::{MatchCriteria, mismatch};
use bindery_model::{ClaimKey, Volume};

pub use bindery_matching::{Choice, is_delayed};

/// The volume that a claim gets: one that is reserved for it, else a free one that fits. Of several the one with the fewest
/// access modes, then the smallest, then the first by name. A delayed claim gets only what is reserved for it.
pub fn choose<'a>(known: &'a Cache, request: &MatchCriteria<'_>) -> Option<Choice<'a>> {
    let claim = request.claim;
    bindery_matching::choose(
        request,
        known.volumes_of(&claim.key()),
        |fits: &dyn Fn(&Volume) -> bool| -> Option<&'a Arc<Volume>> {
            known.free_volumes().first(&MatchKey::of_claim(claim), request.modes, claim.requested(), fits)
        },
    )
}

/// The claim that a free volume is offered to: of those that look for one like it the one that asks for most, then the first by
/// key. `skip` are claims that were offered it already.
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
    known.unmatched_claims().largest(
        &MatchKey::of_volume(volume),
        volume.modes.set(),
        volume.size().nanos(),
        would_take,
    )
}
