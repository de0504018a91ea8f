//! Why a pod is rejected for all nodes or for one, with upstream's messages.

use std::fmt;

use bindery_model::{ClaimKey, FieldError, Name, PodKey};

/// Why a pod cannot be scheduled to any node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodRejection {
    /// It uses a claim that does not exist.
    ClaimMissing(Name),
    /// The claim of one of its ephemeral volumes does not exist yet.
    EphemeralClaimMissing(Name),
    /// A field of a claim could not be parsed.
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
    /// It does not own the claim with the name of one of its ephemeral volumes.
    ClaimNotOwned {
        /// The claim.
        claim: ClaimKey,
        /// The pod.
        pod: PodKey,
    },
    /// A claim of a class with Immediate binding is not bound.
    ClaimUnbound,
    /// A class has no binding mode, or a field of it could not be parsed.
    ClassInvalid(String),
    /// A class does not exist.
    ClassMissing(Name),
    /// An unbound claim has no class.
    NoClass,
    /// The same as `ClaimUnbound`, as the test of zones reports it.
    NoVolume,
    /// A volume does not exist.
    VolumeMissing(Name),
}

impl fmt::Display for PodRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PodRejection::ClaimMissing(claim) => write!(f, "persistentvolumeclaim \"{claim}\" not found"),
            PodRejection::EphemeralClaimMissing(claim) => {
                write!(f, "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{claim}\"")
            }
            PodRejection::ClaimMalformed(claim, error) => {
                write!(f, "persistentvolumeclaim \"{claim}\" cannot be read: {error}")
            }
            PodRejection::ClaimLost { claim, volume } => {
                write!(f, "persistentvolumeclaim \"{claim}\" bound to non-existent persistentvolume \"{volume}\"")
            }
            PodRejection::ClaimDeleting(claim) => write!(f, "persistentvolumeclaim \"{claim}\" is being deleted"),
            PodRejection::ClaimNotOwned { claim, pod } => {
                write!(f, "PVC {claim} was not created for pod {pod} (pod is not owner)")
            }
            PodRejection::ClaimUnbound => f.write_str("pod has unbound immediate PersistentVolumeClaims"),
            PodRejection::ClassInvalid(problem) => f.write_str(problem),
            PodRejection::ClassMissing(class) => write!(f, "storageclass.storage.k8s.io \"{class}\" not found"),
            PodRejection::NoClass => f.write_str("PersistentVolumeClaim had no pv name and storageClass name"),
            PodRejection::NoVolume => f.write_str("PersistentVolume had no name"),
            PodRejection::VolumeMissing(volume) => write!(f, "persistentvolume \"{volume}\" not found"),
        }
    }
}

/// Why a node is not suitable for a pod. The first four can apply together, and are reported in
/// this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeRejection {
    /// The node affinity of a bound volume excludes it.
    VolumeUnreachable,
    /// No available volume matches a claim, and none can be provisioned.
    NoMatchingVolume,
    /// There is not enough capacity to provision a volume.
    InsufficientCapacity,
    /// A claim is bound to a volume that does not exist.
    VolumeMissing,
    /// A volume is in another zone or region.
    ZoneMismatch,
    /// A pod on it uses the same disk.
    DiskInUse,
    /// A ReadWriteOncePod claim is used by another pod.
    ClaimInUse,
    /// It would exceed the volume limit of a driver.
    TooManyVolumes,
    /// This driver is not installed on it.
    DriverMissing(Name),
}

impl NodeRejection {
    /// Whether the eviction of other pods could resolve it.
    pub fn could_preemption_help(&self) -> bool {
        match self {
            NodeRejection::DiskInUse
            | NodeRejection::ClaimInUse
            | NodeRejection::TooManyVolumes
            | NodeRejection::DriverMissing(_) => true,
            NodeRejection::VolumeUnreachable
            | NodeRejection::NoMatchingVolume
            | NodeRejection::InsufficientCapacity
            | NodeRejection::VolumeMissing
            | NodeRejection::ZoneMismatch => false,
        }
    }
}

impl fmt::Display for NodeRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NodeRejection::VolumeUnreachable => "node(s) didn't match PersistentVolume's node affinity",
            NodeRejection::NoMatchingVolume => "node(s) didn't find available persistent volumes to bind",
            NodeRejection::InsufficientCapacity => "node(s) did not have enough free storage",
            NodeRejection::VolumeMissing => "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            NodeRejection::ZoneMismatch => "node(s) had no available volume zone",
            NodeRejection::DiskInUse => "node(s) had no available disk",
            NodeRejection::ClaimInUse => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by \
                 another pod"
            }
            NodeRejection::TooManyVolumes => "node(s) exceed max volume count",
            NodeRejection::DriverMissing(driver) => {
                return write!(f, "{driver} CSI driver is not installed on the node");
            }
        })
    }
}

/// Why it cannot be determined whether a node is suitable for a pod: an object must be fixed first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacementError {
    /// The selector of a claim is invalid.
    Selector {
        /// The claim.
        claim: ClaimKey,
        /// The error.
        problem: String,
    },
    /// A volume cannot be translated to CSI.
    Translation(String),
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementError::Selector { claim, problem } => {
                write!(f, "error creating internal label selector for claim: {claim}: {problem}")
            }
            PlacementError::Translation(problem) => write!(f, "could not translate pv: {problem}"),
        }
    }
}
