//! Choosing a volume for a claim, and a claim for a volume. Both by lookup, never by a scan.

use std::cmp::Reverse;
use std::sync::Arc;

use bindery_mirror::{Mirror, Place};
use bindery_volumes::{BindingMode, Claim, ClaimKey, Request, Volume, misfit, points_to, reserved_misfit};

/// Whether a claim is bound only when a pod uses it; why that cannot be said, when its class is not clear.
/// A class that does not exist delays nothing.
pub fn is_delayed(known: &Mirror, claim: &Claim) -> Result<bool, String> {
    let name = claim.class();
    let Some(class) = (!name.is_empty()).then(|| known.class(name)).flatten() else { return Ok(false) };
    if let Some(flaw) = &class.flaw {
        return Err(format!("StorageClass {name:?}: {flaw}"));
    }
    match class.binding {
        Some(mode) => Ok(mode == BindingMode::WaitForFirstConsumer),
        None => Err(format!("VolumeBindingMode not set for StorageClass {:?}", name.as_str())),
    }
}

/// A volume for a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice<'a> {
    /// One that is reserved for the claim.
    Reserved(&'a Arc<Volume>),
    /// A free one that fits.
    Fits(&'a Arc<Volume>),
}

/// The volume that a claim gets: one that is reserved for it, else a free one that fits. Of several the one with the fewest
/// access modes, then the smallest, then the first by name. A delayed claim gets only what is reserved for it.
pub fn choose<'a>(known: &'a Mirror, request: &Request<'_>) -> Option<Choice<'a>> {
    let claim = request.claim;
    if let Some(volume) = reserved(known, request) {
        return Some(Choice::Reserved(volume));
    }
    if request.delayed {
        return None;
    }
    let fits = |volume: &Volume| misfit(request, volume).is_none();
    let place = Place::of_claim(claim);
    known.pool().first(&place, request.modes, claim.requested().nanos(), fits).map(Choice::Fits)
}

/// A volume that is reserved for the claim and can serve it. One with the claim's UID comes before one with its name only: it
/// may be the one that the claim was given before a crash.
fn reserved<'a>(known: &'a Mirror, request: &Request<'_>) -> Option<&'a Arc<Volume>> {
    let claim = request.claim;
    let serves = |volume: &&Arc<Volume>| points_to(volume, claim) && reserved_misfit(request, volume).is_none();
    let rank = |volume: &&Arc<Volume>| {
        let is_own = volume.belongs_to(&claim.meta.uid);
        (Reverse(is_own), volume.modes.set().count(), volume.holds().nanos(), volume.name().clone())
    };
    known.volumes_of(&claim.key()).filter(serves).min_by_key(rank)
}

/// The claim that a free volume is offered to: of those that look for one like it the one that asks for most, then the first by
/// key. `skip` are claims that were offered it already.
pub fn taker<'a>(known: &'a Mirror, volume: &Volume, skip: impl Fn(&ClaimKey) -> bool) -> Option<&'a ClaimKey> {
    if !volume.is_free() || known.is_spoken_for(volume) {
        return None;
    }
    let would_take = |key: &ClaimKey| {
        !skip(key)
            && known.claim(key).is_some_and(|claim| {
                let request = Request::of(claim, is_delayed(known, claim).unwrap_or(true));
                request.is_ok_and(|request| misfit(&request, volume).is_none())
            })
    };
    known.demand().most(&Place::of_volume(volume), volume.modes.set(), volume.holds().nanos(), would_take)
}
