//! Proof that nothing is lost by destroying a volume.

use bindery_model::{Meta, Name, ReclaimPolicy, Volume};

use crate::LiveReads;

/// A token that a volume's claim is gone, by live reads of the volume and of the claim made after the decision to reclaim it.
/// There is no other way to make one, and nothing is deleted or scrubbed without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseProof {
    volume: Meta,
    policy: ReclaimPolicy,
}

/// Why there is no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotReleased {
    /// The volume has to be read first.
    ReadVolume,
    /// The claim has to be read first.
    ReadClaim(bindery_model::ClaimKey),
    /// The volume is gone.
    VolumeGone,
    /// It is another volume by now, or refers to another claim, or to none.
    VolumeChanged,
    /// Its claim lives, and may use it.
    ClaimLives,
}

impl ReleaseProof {
    /// Looks at what was read live: a released volume, whose claim does not exist or is bound to another volume.
    pub fn find(volume: &Volume, live_reads: &LiveReads) -> Result<ReleaseProof, NotReleased> {
        let Some(live) = live_reads.volume(volume.name()) else { return Err(NotReleased::ReadVolume) };
        let live = live.ok_or(NotReleased::VolumeGone)?;
        let is_same = live.meta.uid == volume.meta.uid
            && live.claim_ref == volume.claim_ref
            && live.policy == volume.policy
            && live.field_error.is_none();
        let Some(claim_ref) = live.claim_ref.as_ref().filter(|claim| is_same && !claim.uid.is_empty()) else {
            return Err(NotReleased::VolumeChanged);
        };
        if !live.phase.is_released() {
            return Err(NotReleased::VolumeChanged);
        }
        let Some(claim) = live_reads.claim(&claim_ref.key) else {
            return Err(NotReleased::ReadClaim(claim_ref.key.clone()));
        };
        let may_use = |claim: &bindery_model::Claim| {
            claim.field_error.is_some()
                || claim.meta.uid == claim_ref.uid && claim.volume.as_ref().is_none_or(|other| other == live.name())
        };
        match claim {
            Some(claim) if may_use(claim) => Err(NotReleased::ClaimLives),
            Some(_) | None => Ok(ReleaseProof { volume: live.meta.clone(), policy: live.policy.clone() }),
        }
    }

    /// The volume, in the state in which it was read.
    pub fn volume(&self) -> &Meta {
        &self.volume
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.volume.name
    }

    /// Whether its policy, read live, is this one.
    pub fn has_policy(&self, policy: &ReclaimPolicy) -> bool {
        self.policy == *policy
    }
}
