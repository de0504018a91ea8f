//! The tests between one claim and one volume. Matching, checking what a user asked for, and explaining all use these.

use std::fmt;

use crate::{AccessSet, Claim, ClaimKey, Quantity, Selector, Volume, VolumePhase};

/// Whether a volume belongs to a claim or is reserved for it: by name, and by UID where it has one.
pub fn points_to(volume: &Volume, claim: &Claim) -> bool {
    volume.claim_ref.as_ref().is_some_and(|reserved| {
        reserved.key.name == claim.meta.name
            && reserved.key.namespace == claim.meta.namespace
            && (reserved.uid.is_empty() || reserved.uid == claim.meta.uid)
    })
}

/// Why a volume is not for a claim: the first test that fails, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// A field of the volume could not be understood.
    Malformed,
    /// It belongs to another claim, or is reserved for one.
    ReservedFor(ClaimKey),
    /// It holds less than is asked for.
    TooSmall {
        /// What is asked for.
        needs: Quantity,
        /// What it holds.
        has: Quantity,
    },
    /// It is a file system where a block device is asked for, or the other way round.
    VolumeMode,
    /// Its attributes class is another.
    AttributesClass,
    /// It is being deleted.
    Deleting,
    /// It cannot be mounted in all the ways that are asked for.
    AccessModes,
    /// The claim is bound only when its pod has a node.
    Delayed,
    /// It is not free.
    Phase(VolumePhase),
    /// Its labels are not those asked for.
    Selector,
    /// Its class is another.
    Class,
}

/// What a claim asks for, in the form that matching compares. Made once for many volumes.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The claim that asks.
    pub claim: &'a Claim,
    /// Its selector, if it has one.
    pub selector: Option<&'a Selector>,
    /// The access modes it needs.
    pub modes: AccessSet,
    /// Whether it is bound only when its pod has a node.
    pub delayed: bool,
}

impl<'a> Request<'a> {
    /// What a claim asks for; why that cannot be known, when its selector makes no sense.
    pub fn of(claim: &'a Claim, delayed: bool) -> Result<Request<'a>, &'a str> {
        let selector = match claim.selector.as_deref() {
            None => None,
            Some(Ok(selector)) => Some(selector),
            Some(Err(problem)) => return Err(problem),
        };
        Ok(Request { claim, selector, modes: claim.modes.set(), delayed })
    }
}

/// The tests that even a volume reserved for the claim must pass.
pub fn reserved_misfit(request: &Request<'_>, volume: &Volume) -> Option<Misfit> {
    let claim = request.claim;
    if volume.flaw.is_some() {
        return Some(Misfit::Malformed);
    }
    match &volume.claim_ref {
        Some(other) if !points_to(volume, claim) => return Some(Misfit::ReservedFor(other.key.clone())),
        Some(_) | None => {}
    }
    if volume.holds() < claim.requested() {
        return Some(Misfit::TooSmall { needs: claim.requested().clone(), has: volume.holds().clone() });
    }
    if volume.volume_mode != claim.volume_mode {
        return Some(Misfit::VolumeMode);
    }
    if volume.attributes() != claim.attributes() {
        return Some(Misfit::AttributesClass);
    }
    if volume.deleting {
        return Some(Misfit::Deleting);
    }
    if !volume.modes.set().contains(request.modes) {
        return Some(Misfit::AccessModes);
    }
    None
}

/// Why a claim cannot have a volume, if it cannot. A volume reserved for the claim is asked less than a free one.
pub fn misfit(request: &Request<'_>, volume: &Volume) -> Option<Misfit> {
    if let Some(misfit) = reserved_misfit(request, volume) {
        return Some(misfit);
    }
    if volume.claim_ref.is_some() {
        return None;
    }
    if request.delayed {
        return Some(Misfit::Delayed);
    }
    if !volume.is_free() {
        return Some(Misfit::Phase(volume.phase));
    }
    if request.selector.is_some_and(|selector| !selector.matches(&volume.labels)) {
        return Some(Misfit::Selector);
    }
    if volume.class() != request.claim.class() {
        return Some(Misfit::Class);
    }
    None
}

/// Whether an unclaimed volume is good enough for a claim that asks for it by name. Labels and phase are not looked at:
/// who names a volume gets it.
pub fn satisfies(claim: &Claim, volume: &Volume) -> Result<(), String> {
    if volume.deleting {
        Err(format!("the volume is marked for deletion {:?}", volume.name().as_str()))
    } else if volume.holds() < claim.requested() {
        Err("requested PV is too small".into())
    } else if volume.class() != claim.class() {
        Err("storageClassName does not match".into())
    } else if volume.attributes() != claim.attributes() {
        Err("volumeAttributesClassName does not match".into())
    } else if volume.volume_mode != claim.volume_mode {
        Err("incompatible volumeMode".into())
    } else if !volume.modes.set().contains(claim.modes.set()) {
        Err("incompatible accessMode".into())
    } else {
        Ok(())
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Malformed => f.write_str("it cannot be read"),
            Misfit::ReservedFor(key) => write!(f, "reserved for {key}"),
            Misfit::TooSmall { needs, has } => write!(f, "needs {needs}, has {has}"),
            Misfit::VolumeMode => f.write_str("other volume mode"),
            Misfit::AttributesClass => f.write_str("other attributes class"),
            Misfit::Deleting => f.write_str("it is being deleted"),
            Misfit::AccessModes => f.write_str("lacks an access mode"),
            Misfit::Delayed => f.write_str("the claim waits for its first consumer"),
            Misfit::Phase(phase) => write!(f, "it is {}", phase.as_str()),
            Misfit::Selector => f.write_str("its labels are not selected"),
            Misfit::Class => f.write_str("other class"),
        }
    }
}
