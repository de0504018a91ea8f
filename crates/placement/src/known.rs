//! The mirror, as placement is shown it.

use std::sync::Arc;

use bindery_mirror::{Mirror, Reach, Room};
use bindery_volumes::{Attachment, Claim, ClaimKey, Class, CsiDriver, CsiNode, Name, Node, Pod, PodKey, Volume};

use crate::{User, View};

impl<'a> User<'a> {
    /// A pod, as far as it uses volumes.
    pub fn of(pod: &'a Pod) -> User<'a> {
        User { meta: &pod.meta, mounts: &pod.mounts }
    }
}

impl View for Mirror {
    fn claim(&self, key: &ClaimKey) -> Option<&Arc<Claim>> {
        Mirror::claim(self, key)
    }

    fn controller_of<'a>(&'a self, claim: &'a Claim) -> Option<&'a Name> {
        claim.controller.as_ref()
    }

    fn volume(&self, name: &Name) -> Option<&Arc<Volume>> {
        Mirror::volume(self, name)
    }

    fn volumes_of(&self, claim: &ClaimKey) -> impl Iterator<Item = &Arc<Volume>> {
        Mirror::volumes_of(self, claim)
    }

    fn class(&self, name: &Name) -> Option<&Arc<Class>> {
        Mirror::class(self, name)
    }

    fn node(&self, name: &Name) -> Option<&Arc<Node>> {
        Mirror::node(self, name)
    }

    fn reach(&self) -> &Reach {
        Mirror::reach(self)
    }

    fn room(&self) -> &Room {
        Mirror::room(self)
    }

    fn driver(&self, name: &Name) -> Option<&Arc<CsiDriver>> {
        Mirror::driver(self, name)
    }

    fn csi_node(&self, node: &Name) -> Option<&Arc<CsiNode>> {
        Mirror::csi_node(self, node)
    }

    fn attachments(&self, node: &Name) -> impl Iterator<Item = &Arc<Attachment>> {
        self.attachments_on(node)
    }

    fn users_on(&self, node: &Name) -> impl Iterator<Item = User<'_>> {
        self.pods_on(node).map(|pod| User::of(pod))
    }

    fn is_used(&self, claim: &ClaimKey) -> bool {
        self.pods_using(claim).any(|pod| !pod.node.is_empty() && !pod.is_over())
    }

    fn has_pod(&self, pod: &PodKey, uid: &Name) -> bool {
        self.pod(pod).is_some_and(|pod| pod.meta.uid == *uid)
    }
}
