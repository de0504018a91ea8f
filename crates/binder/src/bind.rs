//! The four writes of a bind: the next missing piece, in the one order in which a crash loses nothing.

use bindery_verdict::{ClaimEdit, Edit, RefEdit, Rule, Verdict, VolumeEdit, VolumeStatusEdit, Write};
use bindery_volumes::{Annotation, Claim, ClaimRef, Name, Volume, VolumePhase, points_to};

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
    let wanted = ClaimRef { key: claim.key(), uid: claim.meta.uid.clone() };
    let is_set = volume.claim_ref.as_ref() == Some(&wanted);
    let was_reserved = points_to(volume, claim);
    // Promise S1: only a free volume, one reserved for this claim, or this claim's own is ever pointed at it.
    assert!(
        volume.claim_ref.is_none() || was_reserved || volume.belongs_to(&claim.meta.uid),
        "a volume of another claim is never taken"
    );
    let is_marked = volume.annotations.has(Annotation::BoundByController);
    let mut edit = VolumeEdit::default();
    if !is_set {
        edit.claim_ref = Some(RefEdit::Set(wanted, claim.meta.version));
    }
    if !was_reserved && !is_marked {
        edit.annotations.push((Annotation::BoundByController, Some(Annotation::YES)));
    }
    (edit != VolumeEdit::default()).then(|| Write::volume(&rules::BIND_RESERVE, volume, Edit::Volume(edit)))
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
