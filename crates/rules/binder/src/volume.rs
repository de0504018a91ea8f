//! Deciding about volumes. Every branch names its rule.

use std::sync::Arc;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim, ClaimKey, ClaimRef, Name, ReclaimPolicy, Volume, VolumePhase};
use bindery_rules_api::{Action, Edit, Event, Measure, RefEdit, Request, Rule, Timed, Verdict, VolumeEdit, Write};

use crate::decision::Decision;
use crate::{matching, migration, rules, status};

/// The claim that a volume's claimRef names, with its UID.
enum Owner {
    /// It exists.
    Exists(Arc<Claim>),
    /// It does not exist.
    Deleted,
    /// It is not in the cache and must be read live.
    Unknown,
}

impl Decision<'_> {
    /// Decides about a volume.
    pub fn volume(self, name: &Name) -> Verdict {
        let Some(volume) = self.known.volume(name) else {
            return Verdict::idle(&rules::VOLUME_DELETED).measuring(Measure::End(Timed::Delete));
        };
        if let Some(error) = &volume.field_error {
            return Verdict::idle(&rules::VOLUME_MALFORMED).with_note(error.to_string());
        }
        if let Some(write) = migration::volume(volume) {
            return Verdict::write(&rules::VOLUME_MIGRATION, write);
        }
        if let Some(marked) = volume.annotations.get(Annotation::Scrubbing).filter(|_| !self.is_recyclable(volume)) {
            return self.stop_scrub(volume, marked);
        }
        match &volume.claim_ref {
            None => self.unclaimed(volume),
            Some(claim) if claim.uid.is_empty() => self.reserved(volume, &claim.key),
            Some(claim) => self.claimed(volume, claim),
        }
    }

    /// A volume without claimRef: a waiting claim is handed the volume, otherwise it is Available.
    fn unclaimed(self, volume: &Volume) -> Verdict {
        match matching::taker(self.known, volume, |claim| self.live_reads.was_handed_to(&claim.clone().into())) {
            Some(claim) => Verdict::new(&rules::VOLUME_WANTED, Action::HandOff(claim.clone().into())),
            None => phase(&rules::VOLUME_UNCLAIMED, volume, VolumePhase::Available),
        }
    }

    /// A volume whose claimRef has no UID: the claim may be bound at once, otherwise it is
    /// Available.
    fn reserved(self, volume: &Volume, key: &ClaimKey) -> Verdict {
        let may_take = |claim: &Arc<Claim>| claim.volume.as_ref().is_none_or(|name| name == volume.name());
        let expected =
            self.known.claim(key).is_some_and(may_take) && !self.live_reads.was_handed_to(&key.clone().into());
        if expected && volume.phase != VolumePhase::Available {
            return Verdict::new(&rules::VOLUME_EXPECTED, Action::HandOff(key.clone().into()));
        }
        phase(&rules::VOLUME_RESERVED, volume, VolumePhase::Available)
    }

    /// A volume whose claimRef has a UID.
    fn claimed(self, volume: &Volume, claim_ref: &ClaimRef) -> Verdict {
        let claim = match self.owner(volume, claim_ref) {
            Owner::Exists(claim) => claim,
            Owner::Deleted => return self.released(&rules::VOLUME_RELEASE, volume),
            Owner::Unknown => {
                let read = Request::Read(claim_ref.key.clone().into());
                return Verdict::request(&rules::VOLUME_VERIFY_CLAIM, read);
            }
        };
        if let Some(error) = &claim.field_error {
            return Verdict::idle(&rules::VOLUME_CLAIM_MALFORMED).with_note(format!("{}: {error}", claim_ref.key));
        }
        match &claim.volume {
            None if claim.volume_mode != volume.volume_mode => mode_mismatch(volume, &claim),
            None => Verdict::idle(&rules::VOLUME_WAITS_FOR_CLAIM),
            Some(name) if name == volume.name() => phase(&rules::VOLUME_BOUND, volume, VolumePhase::Bound),
            // The claim names another volume only in a pending write, which may still fail.
            Some(_) if self.known.is_claim_assumed(&claim_ref.key) => Verdict::idle(&rules::VOLUME_WAITS_FOR_CLAIM),
            Some(_) if is_unneeded(volume) => self.released(&rules::VOLUME_UNNEEDED, volume),
            Some(_) => Verdict::write(&rules::VOLUME_UNBIND, unbind(&rules::VOLUME_UNBIND, volume)),
        }
    }

    /// Whether a volume is released and to be scrubbed.
    fn is_recyclable(self, volume: &Volume) -> bool {
        let is_released =
            |claim_ref: &ClaimRef| !claim_ref.uid.is_empty() && matches!(self.owner(volume, claim_ref), Owner::Deleted);
        volume.phase.is_released()
            && volume.policy == ReclaimPolicy::Recycle
            && !is_migrated(volume)
            && volume.claim_ref.as_ref().is_some_and(is_released)
    }

    /// The claim of a volume. Its deletion must be confirmed by a live read, unless the volume is
    /// Released already. Deleting data requires another proof.
    fn owner(self, volume: &Volume, claim_ref: &ClaimRef) -> Owner {
        let is_owner = |claim: &&Arc<Claim>| claim.meta.uid == claim_ref.uid;
        if let Some(claim) = self.known.claim(&claim_ref.key).filter(is_owner) {
            return Owner::Exists(claim.clone());
        }
        match self.live_reads.claim(&claim_ref.key) {
            Some(found) => match found.filter(is_owner) {
                Some(claim) => Owner::Exists(claim.clone()),
                None => Owner::Deleted,
            },
            None if volume.phase.is_released() => Owner::Deleted,
            None => Owner::Unknown,
        }
    }

    /// A volume that its claim no longer needs: it is marked Released, then reclaimed.
    fn released(self, rule: &'static Rule, volume: &Volume) -> Verdict {
        if !volume.phase.is_released() {
            return phase(rule, volume, VolumePhase::Released);
        }
        self.reclaim(volume)
    }
}

fn phase(rule: &'static Rule, volume: &Volume, phase: VolumePhase) -> Verdict {
    Verdict::write_or_idle(rule, status::volume(volume, phase))
}

/// Whether a volume was provisioned and is deleted when its claim does not need it.
fn is_unneeded(volume: &Volume) -> bool {
    volume.annotations.has(Annotation::ProvisionedBy) && volume.policy == ReclaimPolicy::Delete
}

fn mode_mismatch(volume: &Volume, claim: &Claim) -> Verdict {
    let of_volume = format!(
        "Cannot bind PersistentVolume to requested PersistentVolumeClaim {:?} due to incompatible volumeMode.",
        claim.meta.name.as_str()
    );
    let of_claim = format!(
        "Cannot bind PersistentVolume {:?} to requested PersistentVolumeClaim due to incompatible volumeMode.",
        volume.name().as_str()
    );
    Verdict::idle(&rules::VOLUME_MODE_MISMATCH)
        .publish(Event::volume(volume, EventType::Warning, Reason::VolumeMismatch, of_volume))
        .publish(Event::claim(claim, EventType::Warning, Reason::VolumeMismatch, of_claim))
}

/// Whether a CSI driver has taken the volume over from its in-tree plugin.
pub(crate) fn is_migrated(volume: &Volume) -> bool {
    volume.annotations.get(Annotation::MigratedTo).is_some_and(|driver| !driver.is_empty())
}

fn unbind(purpose: &'static Rule, volume: &Volume) -> Write {
    Write::volume(purpose, volume, Edit::Volume(unbind_edit(volume)))
}

/// Removes the claimRef if a controller had set it; otherwise only its UID, as the user had set it.
pub(crate) fn unbind_edit(volume: &Volume) -> VolumeEdit {
    if volume.annotations.has(Annotation::BoundByController) {
        VolumeEdit {
            claim_ref: Some(RefEdit::Clear),
            annotations: vec![(Annotation::BoundByController, None)],
            ..VolumeEdit::default()
        }
    } else {
        VolumeEdit { claim_ref: Some(RefEdit::ClearUid), ..VolumeEdit::default() }
    }
}
