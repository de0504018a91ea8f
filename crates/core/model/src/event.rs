//! Event types, and every event reason that is published.

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventType {
    /// Information only.
    Normal,
    /// Something may need attention.
    Warning,
}

impl EventType {
    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The reason of an event, as dashboards and runbooks match it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// The reason in the API.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)* }
            }
        }
    };
}

reasons! {
    /// No volume matches, or the requested one belongs to another claim.
    FailedBinding,
    /// The API server refuses a step: a permission is missing, or a policy or a field prevents it.
    RequestRejected,
    /// A claim waits for a pod that uses it.
    WaitForFirstConsumer,
    /// A claim waits for the pods that use it to be scheduled.
    WaitForPodScheduled,
    /// A claim and its volume do not match.
    VolumeMismatch,
    /// A bound claim has lost its volume.
    ClaimLost,
    /// A bound claim's volume belongs to another claim.
    ClaimMisbound,
    /// A volume's reclaim policy is unknown.
    VolumeUnknownReclaimPolicy,
    /// A volume's plugin does not support its reclaim policy.
    VolumeUnsupportedReclaimPolicy,
    /// A volume could not be recycled.
    VolumeFailedRecycle,
    /// A volume was recycled.
    VolumeRecycled,
    /// An event of the pod that recycles a volume.
    RecyclerPod,
    /// A volume's backing storage is still in use and could not be deleted yet.
    VolumeDelete,
    /// A volume's backing storage could not be deleted.
    VolumeFailedDelete,
    /// A claim waits for an external provisioner.
    ExternalProvisioning,
    /// A provisioner starts to provision a volume.
    Provisioning,
    /// A volume could not be provisioned.
    ProvisioningFailed,
    /// Provisioned storage is not needed and could not be deleted.
    ProvisioningCleanupFailed,
    /// A volume was provisioned.
    ProvisioningSucceeded,
    /// A pod was assigned to a node.
    Scheduled,
    /// A pod cannot be scheduled to any node.
    FailedScheduling,
    /// A claim waits for an external resizer.
    ExternalExpanding,
    /// A volume was expanded.
    VolumeResizeSuccessful,
    /// A volume could not be expanded.
    VolumeResizeFailed,
    /// A claim's volume is on a node that was deleted.
    ReferencedNodeDeleted,
    /// A disk of a node cannot be used for a volume.
    LocalDiskUnavailable,
}
