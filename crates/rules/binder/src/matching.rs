//! Finding a volume for a claim, and a claim for a volume, by index lookups.

use std::sync::Arc;

use bindery_cache::{Cache, PoolKey};
use bindery_model::{Claim, ClaimKey, Request, Volume, mismatch};

pub use bindery_model::Choice;

/// Whether a claim's class uses WaitForFirstConsumer; an error if its binding mode is invalid. A
/// class that does not exist counts as Immediate.
pub fn is_delayed(known: &Cache, claim: &Claim) -> Result<bool, String> {
    bindery_model::is_delayed(claim, |name| known.class(name))
}

/// The volume for a claim: one reserved for it, otherwise an available match with the fewest access
/// modes, then the smallest capacity, then the first name. A delayed claim gets only a reserved
/// one.
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

/// The claim that an available volume is handed to: the matching one that requests most, then the
/// first key. `skip` excludes claims that it was handed to before.
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
