//! Why a pod cannot be placed: on any node, or on one. Each reason is a rule, and is worded as upstream words it.

use std::fmt;

use bindery_model::{ClaimKey, FieldError, Name, PodKey};
use bindery_rules_api::Rule;

use crate::rules;

/// Why a pod cannot be placed on any node, as things stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It uses a claim that does not exist.
    ClaimMissing(Name),
    /// The claim for one of its ephemeral volumes was not made yet.
    EphemeralMissing(Name),
    /// A claim cannot be understood.
    ClaimMalformed(Name, Box<FieldError>),
    /// A claim has lost its volume.
    ClaimLost {
        /// The claim.
        claim: Name,
        /// The volume that it had.
        volume: Name,
    },
    /// A claim is being deleted.
    ClaimDeleting(Name),
    /// A claim with the name of one of its ephemeral volumes was not made for it.
    ClaimOfAnother {
        /// The claim.
        claim: ClaimKey,
        /// The pod.
        pod: PodKey,
    },
    /// A claim that is bound without regard to pods is not bound.
    ClaimUnbound,
    /// A class does not say when its claims are bound, or cannot be understood.
    ClassUnclear(String),
    /// A class does not exist.
    ClassMissing(Name),
    /// An unbound claim has no class.
    NoClass,
    /// An unbound claim is to be bound at once; so the test of zones says it.
    NoVolume,
    /// A volume does not exist.
    VolumeMissing(Name),
}

impl Refusal {
    /// Its rule.
    pub fn rule(&self) -> &'static Rule {
        match self {
            Refusal::ClaimMissing(_) => &rules::POD_CLAIM_MISSING,
            Refusal::EphemeralMissing(_) => &rules::POD_EPHEMERAL_MISSING,
            Refusal::ClaimMalformed(..) => &rules::POD_CLAIM_MALFORMED,
            Refusal::ClaimLost { .. } => &rules::POD_CLAIM_LOST,
            Refusal::ClaimDeleting(_) => &rules::POD_CLAIM_DELETING,
            Refusal::ClaimOfAnother { .. } => &rules::POD_CLAIM_OF_ANOTHER,
            Refusal::ClaimUnbound | Refusal::NoVolume => &rules::POD_CLAIM_UNBOUND,
            Refusal::ClassUnclear(_) => &rules::POD_CLASS_UNCLEAR,
            Refusal::ClassMissing(_) => &rules::POD_CLASS_MISSING,
            Refusal::NoClass => &rules::POD_NO_CLASS,
            Refusal::VolumeMissing(_) => &rules::POD_VOLUME_MISSING,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::ClaimMissing(claim) => write!(f, "persistentvolumeclaim \"{claim}\" not found"),
            Refusal::EphemeralMissing(claim) => {
                write!(f, "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{claim}\"")
            }
            Refusal::ClaimMalformed(claim, flaw) => {
                write!(f, "persistentvolumeclaim \"{claim}\" cannot be read: {flaw}")
            }
            Refusal::ClaimLost { claim, volume } => {
                write!(f, "persistentvolumeclaim \"{claim}\" bound to non-existent persistentvolume \"{volume}\"")
            }
            Refusal::ClaimDeleting(claim) => write!(f, "persistentvolumeclaim \"{claim}\" is being deleted"),
            Refusal::ClaimOfAnother { claim, pod } => {
                write!(f, "PVC {claim} was not created for pod {pod} (pod is not owner)")
            }
            Refusal::ClaimUnbound => f.write_str("pod has unbound immediate PersistentVolumeClaims"),
            Refusal::ClassUnclear(problem) => f.write_str(problem),
            Refusal::ClassMissing(class) => write!(f, "storageclass.storage.k8s.io \"{class}\" not found"),
            Refusal::NoClass => f.write_str("PersistentVolumeClaim had no pv name and storageClass name"),
            Refusal::NoVolume => f.write_str("PersistentVolume had no name"),
            Refusal::VolumeMissing(volume) => write!(f, "persistentvolume \"{volume}\" not found"),
        }
    }
}

/// Why a node cannot serve a pod. Several of the first four may hold at once; they are told in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// A bound volume cannot be reached from it.
    Unreachable,
    /// There is no volume for a claim, and none can be made.
    NothingToBind,
    /// There is no room to make one.
    NoRoom,
    /// A claim is bound to a volume that does not exist.
    VolumeMissing,
    /// A volume is in another zone or region.
    OtherZone,
    /// A pod there uses the same disk.
    DiskInUse,
    /// A claim that is for one pod only has another user.
    ClaimInUse,
    /// It would have too many volumes of a driver.
    TooManyVolumes,
    /// A driver is not installed there.
    DriverMissing(Name),
}

impl Obstacle {
    /// Its rule.
    pub fn rule(&self) -> &'static Rule {
        match self {
            Obstacle::Unreachable => &rules::NODE_UNREACHABLE,
            Obstacle::NothingToBind => &rules::NODE_NOTHING_TO_BIND,
            Obstacle::NoRoom => &rules::NODE_NO_ROOM,
            Obstacle::VolumeMissing => &rules::NODE_VOLUME_MISSING,
            Obstacle::OtherZone => &rules::NODE_OTHER_ZONE,
            Obstacle::DiskInUse => &rules::NODE_DISK_IN_USE,
            Obstacle::ClaimInUse => &rules::NODE_CLAIM_IN_USE,
            Obstacle::TooManyVolumes => &rules::NODE_TOO_MANY_VOLUMES,
            Obstacle::DriverMissing(_) => &rules::NODE_DRIVER_MISSING,
        }
    }

    /// Whether another pod's going could remove it, rather than a change of volumes or nodes.
    pub fn is_for_lack_of_space(&self) -> bool {
        match self {
            Obstacle::DiskInUse | Obstacle::ClaimInUse | Obstacle::TooManyVolumes | Obstacle::DriverMissing(_) => true,
            Obstacle::Unreachable
            | Obstacle::NothingToBind
            | Obstacle::NoRoom
            | Obstacle::VolumeMissing
            | Obstacle::OtherZone => false,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::Unreachable => "node(s) didn't match PersistentVolume's node affinity",
            Obstacle::NothingToBind => "node(s) didn't find available persistent volumes to bind",
            Obstacle::NoRoom => "node(s) did not have enough free storage",
            Obstacle::VolumeMissing => "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            Obstacle::OtherZone => "node(s) had no available volume zone",
            Obstacle::DiskInUse => "node(s) had no available disk",
            Obstacle::ClaimInUse => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
                 another pod"
            }
            Obstacle::TooManyVolumes => "node(s) exceed max volume count",
            Obstacle::DriverMissing(driver) => {
                return write!(f, "{driver} CSI driver is not installed on the node");
            }
        })
    }
}

/// Why it cannot be said whether a node can serve a pod: something must be mended first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A claim's selector makes no sense.
    Selector {
        /// The claim.
        claim: ClaimKey,
        /// What is wrong with it.
        problem: String,
    },
    /// A volume that has moved to CSI cannot be translated.
    Translation(String),
}

impl Fault {
    /// Its rule.
    pub fn rule(&self) -> &'static Rule {
        match self {
            Fault::Selector { .. } => &rules::FAULT_SELECTOR,
            Fault::Translation(_) => &rules::FAULT_TRANSLATION,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Selector { claim, problem } => {
                write!(f, "error creating internal label selector for claim: {claim}: {problem}")
            }
            Fault::Translation(problem) => write!(f, "could not translate pv: {problem}"),
        }
    }
}
