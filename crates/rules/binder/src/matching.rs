//! Choosing a volume for a claim, and a claim for a volume. Both by lookup, never by a scan.

use std::sync::Arc;

use bindery_cache::{Cache, PoolKey};
use bindery_model::{Claim, ClaimKey, Request, Volume, mismatch};

pub use bindery_model::Choice;

/// Whether a claim is bound only when a pod uses it; why that cannot be said, when its class is not clear.
/// A class that does not exist delays nothing.
pub fn is_delayed(known: &Cache, claim: &Claim) -> Result<bool, String> {
    bindery_model::is_delayed(claim, |name| known.class(name))
}

/// The volume that a claim gets: one that is reserved for it, else a free one that fits. Of several the one with the fewest
/// access modes, then the smallest, then the first by name. A delayed claim gets only what is reserved for it.
pub fn choose<'a>(known: &'a Cache, request: &Request<'_>) -> Option<Choice<'a>> {
    let claim = request.claim;
    bindery_model::choose(
        request,
        known.volumes_of(&claim.key()),
        |fits: &dyn Fn(&Volume) -> bool| -> Option<&'a Arc<Volume>> {
            known.pool().first(&PoolKey::of_claim(claim), request.modes, claim.requested(), fits)
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
                let request = Request::of(claim, is_delayed(known, claim).unwrap_or(true));
                request.is_ok_and(|request| mismatch(&request, volume).is_none())
            })
    };
    known.demand().most(&PoolKey::of_volume(volume), volume.modes.set(), volume.holds().nanos(), would_take)
}
