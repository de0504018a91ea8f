//! The volume side: what a volume needs next. Every arm names its rule.

use std::sync::Arc;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, Claim, ClaimKey, ClaimRef, Name, ReclaimPolicy, Volume, VolumePhase};
use bindery_rules_api::{
    Action, Edit, Event, Measure, RefEdit, Request as Ask, Rule, Timed, Verdict, VolumeEdit, Write,
};

use crate::decision::Decision;
use crate::{matching, migration, rules, status};

/// What is known of the claim that a volume belongs to.
enum Owner {
    /// It exists.
    Lives(Arc<Claim>),
    /// It does not.
    Gone,
    /// Only a live read can tell.
    Unsure,
}

impl Decision<'_> {
    /// What a volume needs next.
    pub fn volume(self, name: &Name) -> Verdict {
        let Some(volume) = self.known.volume(name) else {
            return Verdict::settle(&rules::VOLUME_GONE).measuring(Measure::End(Timed::Delete));
        };
        if let Some(flaw) = &volume.field_error {
            return Verdict::settle(&rules::VOLUME_MALFORMED).noting(flaw.to_string());
        }
        if let Some(write) = migration::volume(volume) {
            return Verdict::write(&rules::VOLUME_MIGRATION, write);
        }
        match &volume.claim_ref {
            None => self.unclaimed(volume),
            Some(claim) if claim.uid.is_empty() => self.reserved(volume, &claim.key),
            Some(claim) => self.claimed(volume, claim),
        }
    }

    /// A volume that belongs to nobody: a waiting claim gets it, else it is Available.
    fn unclaimed(self, volume: &Volume) -> Verdict {
        match matching::taker(self.known, volume, |claim| self.live_reads.was_handed_to(&claim.clone().into())) {
            Some(claim) => Verdict::new(&rules::VOLUME_WANTED, Action::HandOff(claim.clone().into())),
            None => phase(&rules::VOLUME_UNCLAIMED, volume, VolumePhase::Available),
        }
    }

    /// A volume that is reserved for a claim by name: the claim may take it at once, else it is Available.
    fn reserved(self, volume: &Volume, key: &ClaimKey) -> Verdict {
        let may_take = |claim: &Arc<Claim>| claim.volume.as_ref().is_none_or(|name| name == volume.name());
        let expected =
            self.known.claim(key).is_some_and(may_take) && !self.live_reads.was_handed_to(&key.clone().into());
        if expected && volume.phase != VolumePhase::Available {
            return Verdict::new(&rules::VOLUME_EXPECTED, Action::HandOff(key.clone().into()));
        }
        phase(&rules::VOLUME_RESERVED, volume, VolumePhase::Available)
    }

    /// A volume that belongs to one very claim.
    fn claimed(self, volume: &Volume, claim_ref: &ClaimRef) -> Verdict {
        let claim = match self.owner(volume, claim_ref) {
            Owner::Lives(claim) => claim,
            Owner::Gone => return self.released(&rules::VOLUME_RELEASE, volume),
            Owner::Unsure => {
                let read = Ask::Read(claim_ref.key.clone().into());
                return Verdict::request(&rules::VOLUME_LOOKS_FOR_CLAIM, read);
            }
        };
        if let Some(flaw) = &claim.field_error {
            return Verdict::settle(&rules::VOLUME_CLAIM_UNREADABLE).noting(format!("{}: {flaw}", claim_ref.key));
        }
        match &claim.volume {
            None if claim.volume_mode != volume.volume_mode => mode_mismatch(volume, &claim),
            None => Verdict::settle(&rules::VOLUME_WAITS_FOR_CLAIM),
            Some(name) if name == volume.name() => phase(&rules::VOLUME_BOUND, volume, VolumePhase::Bound),
            // That it points elsewhere is so far only written by us, and not answered: nothing is taken back on such grounds.
            Some(_) if self.known.is_claim_assumed(&claim_ref.key) => Verdict::settle(&rules::VOLUME_WAITS_FOR_CLAIM),
            Some(_) if is_unneeded(volume) => self.released(&rules::VOLUME_UNNEEDED, volume),
            Some(_) => Verdict::write(&rules::VOLUME_UNBIND, unbind(&rules::VOLUME_UNBIND, volume)),
        }
    }

    /// Who the claim of a volume is. That it is gone is believed only by a live read, or when the volume is marked so already;
    /// whatever is destroyed then takes proof of its own.
    fn owner(self, volume: &Volume, claim_ref: &ClaimRef) -> Owner {
        let is_owner = |claim: &&Arc<Claim>| claim.meta.uid == claim_ref.uid;
        if let Some(claim) = self.known.claim(&claim_ref.key).filter(is_owner) {
            return Owner::Lives(claim.clone());
        }
        match self.live_reads.claim(&claim_ref.key) {
            Some(found) => match found.filter(is_owner) {
                Some(claim) => Owner::Lives(claim.clone()),
                None => Owner::Gone,
            },
            None if volume.phase.is_released() => Owner::Gone,
            None => Owner::Unsure,
        }
    }

    /// A volume whose claim needs it no more: it is Released, and then reclaimed as its policy says.
    fn released(self, rule: &'static Rule, volume: &Volume) -> Verdict {
        if !volume.phase.is_released() {
            return phase(rule, volume, VolumePhase::Released);
        }
        self.reclaim(volume)
    }
}

fn phase(rule: &'static Rule, volume: &Volume, phase: VolumePhase) -> Verdict {
    Verdict::write_or_settle(rule, status::volume(volume, phase))
}

/// Whether a volume was made for a claim and is to be deleted when the claim does not need it.
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
    Verdict::settle(&rules::VOLUME_MODE_MISMATCH)
        .tell(Event::volume(volume, EventType::Warning, Reason::VolumeMismatch, of_volume))
        .tell(Event::claim(claim, EventType::Warning, Reason::VolumeMismatch, of_claim))
}

/// Sets a volume free: wholly, where a controller had bound it; else it stays reserved by name, as its user had it.
pub(crate) fn unbind(purpose: &'static Rule, volume: &Volume) -> Write {
    let edit = if volume.annotations.has(Annotation::BoundByController) {
        VolumeEdit {
            claim_ref: Some(RefEdit::Clear),
            annotations: vec![(Annotation::BoundByController, None)],
            ..VolumeEdit::default()
        }
    } else {
        VolumeEdit { claim_ref: Some(RefEdit::ClearUid), ..VolumeEdit::default() }
    };
    Write::volume(purpose, volume, Edit::Volume(edit))
}
