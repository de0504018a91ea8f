//! The four writes of a bind, in the order in which a crash loses nothing.

use bindery_matching::reservation;
use bindery_model::{Annotation, Claim, Name, Volume, VolumePhase};
use bindery_rules_api::{ClaimEdit, Edit, RefEdit, Rule, Verdict, VolumeEdit, VolumeStatusEdit, Write};

use crate::{rules, status};

/// The next write of a bind, decided by `rule`.
pub(crate) fn verdict(rule: &'static Rule, claim: &Claim, volume: &Volume) -> Verdict {
    // Promise S4: a volume that may be scrubbed belongs to no claim.
    assert!(!volume.is_scrubbing(), "a volume that may be scrubbed must not be bound");
    let written = || reserve(volume, claim).or_else(|| mark_volume(volume)).or_else(|| point(claim, volume));
    match written() {
        Some(write) => Verdict::write(rule, write),
        None => match status::bound(claim, volume) {
            Ok(write) => Verdict::write_or_idle(rule, write),
            Err(error) => Verdict::idle(&rules::BIND_NO_CAPACITY).with_note(error),
        },
    }
}

/// Sets the volume's claimRef. From now on no other claim can be bound to it.
fn reserve(volume: &Volume, claim: &Claim) -> Option<Write> {
    let reservation = reservation(volume, claim)?;
    let edit = VolumeEdit {
        claim_ref: reservation.claim_ref.map(|claim_ref| RefEdit::Set(claim_ref, claim.meta.version)),
        annotations: reservation
            .mark
            .then_some((Annotation::BoundByController, Some(Annotation::YES)))
            .into_iter()
            .collect(),
        ..VolumeEdit::default()
    };
    Some(Write::volume(&rules::BIND_RESERVE, volume, Edit::Volume(edit)))
}

fn mark_volume(volume: &Volume) -> Option<Write> {
    let edit = || VolumeStatusEdit { phase: VolumePhase::Bound, message: Name::default() };
    (volume.phase != VolumePhase::Bound)
        .then(|| Write::volume(&rules::BIND_MARK_VOLUME, volume, Edit::VolumeStatus(edit())))
}

/// Sets the claim's volumeName and the bind-completed annotation.
fn point(claim: &Claim, volume: &Volume) -> Option<Write> {
    let mut edit = ClaimEdit::default();
    let mut annotate = |annotation| {
        if !claim.annotations.has(annotation) {
            edit.annotations.push((annotation, Some(Annotation::YES)));
        }
    };
    if claim.volume.is_none() {
        annotate(Annotation::BoundByController);
    }
    annotate(Annotation::BindCompleted);
    if claim.volume.is_none() {
        edit.volume = Some(volume.name().clone());
    }
    (edit != ClaimEdit::default()).then(|| Write::claim(&rules::BIND_POINT, claim, Edit::Claim(edit)))
}
