//! Status updates of claims and volumes. Nothing is written that is already set.

use bindery_model::{Annotation, Claim, ClaimPhase, Name, Volume, VolumePhase};
use bindery_rules_api::{ClaimStatusEdit, Edit, Event, VolumeStatusEdit, Write};

use crate::rules;

/// Marks a claim Pending, and removes the capacity and access modes of a former volume.
pub(crate) fn pending(claim: &Claim) -> Option<Write> {
    let edit = ClaimStatusEdit { phase: ClaimPhase::Pending, ..ClaimStatusEdit::default() };
    differs(claim, &edit).then(|| Write::claim(&rules::STATUS_PENDING, claim, Edit::ClaimStatus(edit)))
}

/// Marks a claim Lost and publishes an event, unless it is Lost already.
pub(crate) fn lost(claim: &Claim, event: Event) -> Option<Write> {
    let edit = ClaimStatusEdit { phase: ClaimPhase::Lost, ..ClaimStatusEdit::default() };
    (claim.status.phase != ClaimPhase::Lost)
        .then(|| Write::claim(&rules::STATUS_LOST, claim, Edit::ClaimStatus(edit)).then(event))
}

/// Marks a claim Bound, with the volume's access modes. The capacity and the attributes class are
/// copied only when the claim becomes Bound; later the resizer writes them.
pub(crate) fn bound(claim: &Claim, volume: &Volume) -> Result<Option<Write>, String> {
    let is_new = claim.status.phase != ClaimPhase::Bound;
    let mut edit = ClaimStatusEdit {
        phase: ClaimPhase::Bound,
        // The API server drops empty lists.
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

/// Sets a volume's phase.
pub(crate) fn volume(volume: &Volume, phase: VolumePhase) -> Option<Write> {
    let edit = VolumeStatusEdit { phase, message: Name::default() };
    (volume.phase != phase).then(|| Write::volume(&rules::STATUS_VOLUME, volume, Edit::VolumeStatus(edit)))
}

/// Marks a volume Failed with the event's message and publishes it, unless it is Failed already.
pub(crate) fn volume_failed(volume: &Volume, event: Event) -> Option<Write> {
    let edit = VolumeStatusEdit { phase: VolumePhase::Failed, message: Name::from(event.message.as_str()) };
    (volume.phase != VolumePhase::Failed)
        .then(|| Write::volume(&rules::STATUS_VOLUME, volume, Edit::VolumeStatus(edit)).then(event))
}
