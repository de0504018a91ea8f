//! What is said of a claim or a volume in its status. Nothing is written that is there already.

use bindery_model::{Annotation, Claim, ClaimPhase, Name, Volume, VolumePhase};
use bindery_rules_api::{ClaimStatusEdit, Edit, Event, VolumeStatusEdit, Write};

use crate::rules;

/// Marks a claim Pending, if it is not, and removes what was said of a former volume.
pub(crate) fn pending(claim: &Claim) -> Option<Write> {
    let edit = ClaimStatusEdit { phase: ClaimPhase::Pending, ..ClaimStatusEdit::default() };
    differs(claim, &edit).then(|| Write::claim(&rules::STATUS_PENDING, claim, Edit::ClaimStatus(edit)))
}

/// Marks a claim Lost, if it is not, and tells it.
pub(crate) fn lost(claim: &Claim, notice: Event) -> Option<Write> {
    let edit = ClaimStatusEdit { phase: ClaimPhase::Lost, ..ClaimStatusEdit::default() };
    (claim.status.phase != ClaimPhase::Lost)
        .then(|| Write::claim(&rules::STATUS_LOST, claim, Edit::ClaimStatus(edit)).then(notice))
}

/// Marks a claim Bound, with what its volume gives it. Capacity is told when the claim becomes Bound, and is the resizer's
/// from then on; the attributes class likewise.
pub(crate) fn bound(claim: &Claim, volume: &Volume) -> Result<Option<Write>, String> {
    let is_new = claim.status.phase != ClaimPhase::Bound;
    let mut edit = ClaimStatusEdit {
        phase: ClaimPhase::Bound,
        // An API server does not keep an empty list.
        modes: (volume.modes.iter().next().is_some()).then_some(volume.modes),
        capacity: claim.status.capacity.clone(),
        attributes_class: claim.status.attributes_class.clone(),
    };
    if is_new {
        let Some(capacity) = &volume.capacity else {
            return Err(format!("PersistentVolume {:?} is without a storage capacity", volume.name().as_str()));
        };
        let before_resize = volume.annotations.get(Annotation::PreResizeCapacity).and_then(|text| text.parse().ok());
        edit.capacity = Some(before_resize.unwrap_or_else(|| capacity.clone()));
    }
    if claim.status.phase == ClaimPhase::Pending {
        edit.attributes_class = volume.attributes_class.clone();
    }
    Ok(differs(claim, &edit).then(|| Write::claim(&rules::BIND_MARK_CLAIM, claim, Edit::ClaimStatus(edit))))
}

fn differs(claim: &Claim, edit: &ClaimStatusEdit) -> bool {
    let status = &claim.status;
    status.phase != edit.phase
        || status.modes != edit.modes
        || status.capacity != edit.capacity
        || status.attributes_class != edit.attributes_class
}

/// Marks a volume with a phase, if it has another.
pub(crate) fn volume(volume: &Volume, phase: VolumePhase) -> Option<Write> {
    let edit = VolumeStatusEdit { phase, message: Name::default() };
    (volume.phase != phase).then(|| Write::volume(&rules::STATUS_VOLUME, volume, Edit::VolumeStatus(edit)))
}

/// Marks a volume Failed with the reason that the notice gives, if it is not Failed yet, and tells it.
pub(crate) fn volume_failed(volume: &Volume, notice: Event) -> Option<Write> {
    let edit = VolumeStatusEdit { phase: VolumePhase::Failed, message: Name::from(notice.message.as_str()) };
    (volume.phase != VolumePhase::Failed)
        .then(|| Write::volume(&rules::STATUS_VOLUME, volume, Edit::VolumeStatus(edit)).then(notice))
}
