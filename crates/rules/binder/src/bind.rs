//! The four writes of a bind: the next missing piece, in the one order in which a crash loses nothing.

use bindery_matching::reservation;
use bindery_model::{Annotation, Claim, Name, Volume, VolumePhase};
use bindery_rules_api::{ClaimEdit, Edit, RefEdit, Rule, Verdict, VolumeEdit, VolumeStatusEdit, Write};

use crate::{rules, status};

/// What is next in binding a claim to a volume, for the reason that `rule` gives.
pub(crate) fn verdict(rule: &'static Rule, claim: &Claim, volume: &Volume) -> Verdict {
    let written = || reserve(volume, claim).or_else(|| mark_volume(volume)).or_else(|| point(claim, volume));
    match written() {
        Some(write) => Verdict::write(rule, write),
        None => match status::bound(claim, volume) {
            Ok(write) => Verdict::write_or_settle(rule, write),
            Err(error) => Verdict::settle(&rules::BIND_NO_CAPACITY).noting(error),
        },
    }
}

/// The volume points at the claim: from here on it is the claim's.
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

/// The claim points at the volume, and says that its binding is complete.
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
