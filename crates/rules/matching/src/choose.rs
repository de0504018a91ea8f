//! Which volume a claim gets: one reserved for it, else a free one.

use std::cmp::Reverse;
use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::{Annotation, BindingMode, Claim, ClaimRef, Volume};

use crate::{MatchCriteria, mismatch, reserved_mismatch};

/// Whether a claim's class delays binding until a pod uses the claim (WaitForFirstConsumer). A
/// class that does not exist delays nothing; a class that cannot be understood is an error.
pub fn is_delayed(known: &Cache, claim: &Claim) -> Result<bool, String> {
    let name = claim.class();
    let Some(class) = (!name.is_empty()).then(|| known.class(name)).flatten() else { return Ok(false) };
    if let Some(error) = &class.field_error {
        return Err(format!("StorageClass {name:?}: {error}"));
    }
    match class.binding {
        Some(mode) => Ok(mode == BindingMode::WaitForFirstConsumer),
        None => Err(format!("VolumeBindingMode not set for StorageClass {:?}", name.as_str())),
    }
}

/// A volume for a claim. `F` is the type by which the caller refers to free volumes.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice<'a, F = &'a Arc<Volume>> {
    /// A volume that is already reserved for the claim.
    Reserved(&'a Arc<Volume>),
    /// A free volume that satisfies the claim.
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

/// Chooses a volume for a claim: a reserved one if it satisfies the claim, else the first free
/// volume that `free` finds among those that pass the given test. A claim whose binding is delayed
/// gets only a reserved volume. If the reserved volume is unreachable from the node, the claim gets
/// none.
///
/// Among several reserved volumes, one with the claim's UID precedes one with only its name,
/// because it may have been reserved before a crash; then fewest access modes, smallest, first by
/// name.
pub fn choose<'a, F>(
    criteria: &MatchCriteria<'_>,
    reserved: impl Iterator<Item = &'a Arc<Volume>>,
    free: impl FnOnce(&dyn Fn(&Volume) -> bool) -> Option<F>,
) -> Option<Choice<'a, F>> {
    let claim = criteria.claim;
    let serves = |volume: &&Arc<Volume>| volume.refers_to(claim) && reserved_mismatch(criteria, volume).is_none();
    let rank = |volume: &&Arc<Volume>| {
        let has_uid = volume.belongs_to(&claim.meta.uid);
        (Reverse(has_uid), volume.modes.set().count(), volume.size().nanos(), volume.name().clone())
    };
    if let Some(volume) = reserved.filter(serves).min_by_key(rank) {
        return criteria.reaches(volume).then_some(Choice::Reserved(volume));
    }
    if criteria.delayed {
        return None;
    }
    free(&|volume| mismatch(criteria, volume).is_none()).map(Choice::Fits)
}

/// The fields to write on a volume to reserve it for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The `spec.claimRef` to set; `None` when it is set already.
    pub claim_ref: Option<ClaimRef>,
    /// Whether to add the annotation that a controller, not a user, made the reservation.
    pub mark: bool,
}

/// What to write on a volume to reserve it for a claim; `None` when nothing is missing.
pub fn reservation(volume: &Volume, claim: &Claim) -> Option<Reservation> {
    let wanted = ClaimRef { key: claim.key(), uid: claim.meta.uid.clone() };
    let is_set = volume.claim_ref.as_ref() == Some(&wanted);
    let was_reserved = volume.refers_to(claim);
    // Promise S1: a volume that refers to another claim is never redirected.
    assert!(
        volume.claim_ref.is_none() || was_reserved || volume.belongs_to(&claim.meta.uid),
        "a volume that belongs to another claim must not be reserved"
    );
    let mark = !was_reserved && !volume.annotations.has(Annotation::BoundByController);
    (!is_set || mark).then(|| Reservation { claim_ref: (!is_set).then_some(wanted), mark })
}
