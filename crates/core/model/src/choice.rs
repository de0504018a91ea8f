//! Which volume a claim gets, of those that are reserved for it and those that are free. The binder asks this for claims that
//! are bound at once, and placement for claims whose pod is being given a node.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::{
    Annotation, BindingMode, Claim, ClaimRef, Class, Name, Request, Volume, mismatch, points_to, reserved_mismatch,
};

/// Whether a claim is bound only when a pod uses it; why that cannot be said, when its class is not clear.
/// `class` looks a class up: one that does not exist delays nothing.
pub fn is_delayed<'a>(claim: &Claim, class: impl FnOnce(&Name) -> Option<&'a Arc<Class>>) -> Result<bool, String> {
    let name = claim.class();
    let Some(class) = (!name.is_empty()).then(|| class(name)).flatten() else { return Ok(false) };
    if let Some(flaw) = &class.flaw {
        return Err(format!("StorageClass {name:?}: {flaw}"));
    }
    match class.binding {
        Some(mode) => Ok(mode == BindingMode::WaitForFirstConsumer),
        None => Err(format!("VolumeBindingMode not set for StorageClass {:?}", name.as_str())),
    }
}

/// A volume for a claim; `F` is how free ones are told of.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice<'a, F = &'a Arc<Volume>> {
    /// One that is reserved for the claim.
    Reserved(&'a Arc<Volume>),
    /// A free one that fits.
    Fits(F),
}

impl<'a> Choice<'a> {
    /// The volume.
    pub fn volume(&self) -> &'a Arc<Volume> {
        match self {
            Choice::Reserved(volume) | Choice::Fits(volume) => volume,
        }
    }
}

/// The volume that a claim gets: one that is reserved for it, else the free one that `free` finds first of those that pass its
/// test. A delayed claim gets only what is reserved for it; and where that cannot be reached from the node, it gets nothing.
///
/// Of several reserved ones, one with the claim's UID comes before one with its name only, because it may be the one that the
/// claim was given before a crash; then the one with the fewest access modes, the smallest, the first by name.
pub fn choose<'a, F>(
    request: &Request<'_>,
    reserved: impl Iterator<Item = &'a Arc<Volume>>,
    free: impl FnOnce(&dyn Fn(&Volume) -> bool) -> Option<F>,
) -> Option<Choice<'a, F>> {
    let claim = request.claim;
    let serves = |volume: &&Arc<Volume>| points_to(volume, claim) && reserved_mismatch(request, volume).is_none();
    let rank = |volume: &&Arc<Volume>| {
        let is_own = volume.belongs_to(&claim.meta.uid);
        (Reverse(is_own), volume.modes.set().count(), volume.holds().nanos(), volume.name().clone())
    };
    if let Some(volume) = reserved.filter(serves).min_by_key(rank) {
        return request.reaches(volume).then_some(Choice::Reserved(volume));
    }
    if request.delayed {
        return None;
    }
    free(&|volume| mismatch(request, volume).is_none()).map(Choice::Fits)
}

/// What has to be written on a volume so that it is a claim's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The claim that it is to point at, unless it does already.
    pub claim_ref: Option<ClaimRef>,
    /// Whether it is to be said that it was not a user who chose it.
    pub mark: bool,
}

/// What has to be written on a volume so that it is a claim's; `None` when it is.
pub fn reservation(volume: &Volume, claim: &Claim) -> Option<Reservation> {
    let wanted = ClaimRef { key: claim.key(), uid: claim.meta.uid.clone() };
    let is_set = volume.claim_ref.as_ref() == Some(&wanted);
    let was_reserved = points_to(volume, claim);
    // Promise S1: only a free volume, one reserved for this claim, or this claim's own is ever pointed at it.
    assert!(
        volume.claim_ref.is_none() || was_reserved || volume.belongs_to(&claim.meta.uid),
        "a volume of another claim is never taken"
    );
    let mark = !was_reserved && !volume.annotations.has(Annotation::BoundByController);
    (!is_set || mark).then(|| Reservation { claim_ref: (!is_set).then_some(wanted), mark })
}
