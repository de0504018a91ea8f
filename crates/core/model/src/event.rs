//! Events: their types, and every reason that is published, written down once.

/// How grave an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventType {
    /// Things go as they should.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Why an event is published: the word that dashboards and runbooks look for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)* }
            }
        }
    };
}

reasons! {
    /// No volume fits, or the one asked for is another's.
    FailedBinding,
    /// A claim waits for a pod that uses it.
    WaitForFirstConsumer,
    /// A claim waits for the pods that use it to be scheduled.
    WaitForPodScheduled,
    /// A claim and the volume it is tied to do not fit each other.
    VolumeMismatch,
    /// A bound claim has lost its volume.
    ClaimLost,
    /// A bound claim's volume belongs to another claim.
    ClaimMisbound,
    /// A volume's reclaim policy is none that is known.
    VolumeUnknownReclaimPolicy,
    /// A volume's reclaim policy is one that whoever made it cannot carry out.
    VolumeUnsupportedReclaimPolicy,
    /// A volume could not be recycled, or not yet.
    VolumeFailedRecycle,
    /// A volume was recycled.
    VolumeRecycled,
    /// What happened to the pod that recycles a volume.
    RecyclerPod,
    /// A volume's storage is in use and not deleted yet.
    VolumeDelete,
    /// A volume's storage could not be deleted.
    VolumeFailedDelete,
    /// An external provisioner was asked for a volume.
    ExternalProvisioning,
    /// A provisioner begins to provision a volume.
    Provisioning,
    /// A volume could not be provisioned.
    ProvisioningFailed,
    /// Storage was provisioned in vain and could not be removed.
    ProvisioningCleanupFailed,
    /// A volume was provisioned.
    ProvisioningSucceeded,
    /// A pod was given a node.
    Scheduled,
    /// No node will do for a pod.
    FailedScheduling,
    /// Somebody else makes a claim's volume grow.
    ExternalExpanding,
    /// A volume has grown.
    VolumeResizeSuccessful,
    /// A volume could not be made to grow.
    VolumeResizeFailed,
    /// A claim's volume is on a node that is gone.
    ReferencedNodeDeleted,
}
