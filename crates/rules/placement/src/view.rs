//! What placement is shown.

use std::sync::Arc;

use bindery_cache::{CapacityIndex, TopologyIndex};
use bindery_model::{
    Attachment, Claim, ClaimKey, Class, CsiDriver, CsiNode, Disk, Meta, Name, Node, Pod, PodKey, PodVolume, Volume,
};

/// A pod, as far as it uses volumes.
#[derive(Debug, Clone, Copy)]
pub struct User<'a> {
    /// Who it is.
    pub meta: &'a Meta,
    /// Its volumes that are claims', in their order.
    pub volumes: &'a [PodVolume],
    /// The disks that it names itself.
    pub disks: &'a [Disk],
}

impl<'a> User<'a> {
    /// A pod.
    pub fn of(pod: &'a Pod) -> User<'a> {
        User { meta: &pod.meta, volumes: &pod.volumes, disks: &pod.disks }
    }

    /// Where the pod lives.
    pub fn key(&self) -> PodKey {
        PodKey { namespace: self.meta.namespace.clone(), name: self.meta.name.clone() }
    }

    /// The claims that it uses, in their order, and whether each was made for this very pod to use.
    pub fn claims(self) -> impl Iterator<Item = (ClaimKey, bool)> + use<'a> {
        let key = move |volume: &PodVolume| ClaimKey::new(self.meta.namespace.clone(), volume.claim.clone());
        self.volumes.iter().map(move |volume| (key(volume), volume.is_ephemeral()))
    }

    /// The claims that it names, in their order.
    pub fn named_claims(self) -> impl Iterator<Item = ClaimKey> + use<'a> {
        self.claims().filter(|(_, is_own)| !is_own).map(|(key, _)| key)
    }
}

/// What is known of the cluster, as far as placement asks. Objects are shown as our own unanswered writes will make them.
pub trait View {
    /// A claim.
    fn claim(&self, key: &ClaimKey) -> Option<&Arc<Claim>>;

    /// The UID of the object that a claim belongs to, if one controls it.
    fn controller_of<'a>(&'a self, claim: &'a Claim) -> Option<&'a Name>;

    /// A volume.
    fn volume(&self, name: &Name) -> Option<&Arc<Volume>>;

    /// Volumes that belong to a claim of that name, or are reserved for one; by name.
    fn volumes_of(&self, claim: &ClaimKey) -> impl Iterator<Item = &Arc<Volume>>;

    /// A class.
    fn class(&self, name: &Name) -> Option<&Arc<Class>>;

    /// A node.
    fn node(&self, name: &Name) -> Option<&Arc<Node>>;

    /// The free volumes, by who can reach them.
    fn reach(&self) -> &TopologyIndex;

    /// The room for new volumes, by who can reach it.
    fn room(&self) -> &CapacityIndex;

    /// A CSI driver.
    fn driver(&self, name: &Name) -> Option<&Arc<CsiDriver>>;

    /// What CSI drivers can do on a node.
    fn csi_node(&self, node: &Name) -> Option<&Arc<CsiNode>>;

    /// What is attached to a node, or is to be.
    fn attachments(&self, node: &Name) -> impl Iterator<Item = &Arc<Attachment>>;

    /// The pods that were given a node, and have not ended.
    fn users_on(&self, node: &Name) -> impl Iterator<Item = User<'_>>;

    /// Whether a claim is used by another pod that was given a node, or that one is meant for, and that has not ended. Of two that
    /// nodes are only meant for, the one whose turn comes first has it.
    fn is_used(&self, claim: &ClaimKey, besides: &PodKey) -> bool;

    /// Whether a pod still exists.
    fn has_pod(&self, pod: &PodKey, uid: &Name) -> bool;
}
