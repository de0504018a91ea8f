//! Proof that a released volume can be deleted or scrubbed without losing data that a claim needs.

use bindery_model::{Annotation, Meta, Name, ReclaimPolicy, Volume};

use crate::LiveReads;

/// Proof from live reads of a volume and its claim, made after the decision to reclaim, that the
/// claim no longer needs the volume. [`ReleaseProof::find`] is the only constructor, and no volume
/// is deleted or scrubbed without a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseProof {
    volume: Meta,
    policy: ReclaimPolicy,
    recycler_pod: Option<Name>,
}

/// Why there is no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotReleased {
    /// The volume must be read live first.
    ReadVolume,
    /// The claim must be read live first.
    ReadClaim(bindery_model::ClaimKey),
    /// The volume does not exist.
    VolumeDeleted,
    /// The volume was replaced, changed its policy, or no longer refers to the same claim.
    VolumeChanged,
    /// The claim exists and may use the volume.
    ClaimExists,
}

impl ReleaseProof {
    /// Checks the live reads: the volume is released, and its claim does not exist or is bound to
    /// another volume.
    pub fn find(volume: &Volume, live_reads: &LiveReads) -> Result<ReleaseProof, NotReleased> {
        let Some(live) = live_reads.volume(volume.name()) else { return Err(NotReleased::ReadVolume) };
        let live = live.ok_or(NotReleased::VolumeDeleted)?;
        let is_same = live.meta.uid == volume.meta.uid
            && live.claim_ref == volume.claim_ref
            && live.policy == volume.policy
            && live.annotations.get(Annotation::Scrubbing) == volume.annotations.get(Annotation::Scrubbing)
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
            Some(claim) if may_use(claim) => Err(NotReleased::ClaimExists),
            Some(_) | None => Ok(ReleaseProof {
                volume: live.meta.clone(),
                policy: live.policy.clone(),
                recycler_pod: live.annotations.get(Annotation::Scrubbing).cloned(),
            }),
        }
    }

    /// The volume's metadata as read live.
    pub fn volume(&self) -> &Meta {
        &self.volume
    }

    /// The UID of the recycler pod that may scrub the volume, as read live.
    pub fn recycler_pod(&self) -> Option<&Name> {
        self.recycler_pod.as_ref()
    }

    /// The volume's name.
    pub fn name(&self) -> &Name {
        &self.volume.name
    }

    /// Whether the reclaim policy, as read live, is this one.
    pub fn has_policy(&self, policy: &ReclaimPolicy) -> bool {
        self.policy == *policy
    }
}
