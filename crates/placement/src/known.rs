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

    fn is_used(&self, claim: &ClaimKey, besides: &PodKey) -> bool {
        let is_nominated = |pod: &Pod| !pod.scheduling.nominated.is_empty();
        let own = self.pod(besides);
        let comes_before = |other: &Pod| own.is_none_or(|own| !is_nominated(own) || other.turn() < own.turn());
        let others = self.pods_using(claim).filter(|pod| pod.key() != *besides && !pod.is_over());
        others.into_iter().any(|pod| !pod.node.is_empty() || is_nominated(pod) && comes_before(pod))
    }

    fn has_pod(&self, pod: &PodKey, uid: &Name) -> bool {
        self.pod(pod).is_some_and(|pod| pod.meta.uid == *uid)
    }
}
