//! The mirror, as placement is shown it.

use std::sync::Arc;

use bindery_cache::{Cache, CapacityIndex, TopologyIndex};
use bindery_model::{Attachment, Claim, ClaimKey, Class, CsiDriver, CsiNode, Name, Node, Pod, PodKey, Volume};

use crate::{User, View};

impl View for Cache {
    fn claim(&self, key: &ClaimKey) -> Option<&Arc<Claim>> {
        self.claim(key)
    }

    fn controller_of<'a>(&'a self, claim: &'a Claim) -> Option<&'a Name> {
        claim.controller.as_ref()
    }

    fn volume(&self, name: &Name) -> Option<&Arc<Volume>> {
        self.volume(name)
    }

    fn volumes_of(&self, claim: &ClaimKey) -> impl Iterator<Item = &Arc<Volume>> {
        self.volumes_of(claim)
    }

    fn class(&self, name: &Name) -> Option<&Arc<Class>> {
        self.class(name)
    }

    fn node(&self, name: &Name) -> Option<&Arc<Node>> {
        self.node(name)
    }

    fn reach(&self) -> &TopologyIndex {
        self.reach()
    }

    fn room(&self) -> &CapacityIndex {
        self.room()
    }

    fn driver(&self, name: &Name) -> Option<&Arc<CsiDriver>> {
        self.driver(name)
    }

    fn csi_node(&self, node: &Name) -> Option<&Arc<CsiNode>> {
        self.csi_node(node)
    }

    fn attachments(&self, node: &Name) -> impl Iterator<Item = &Arc<Attachment>> {
        self.attachments_on(node)
    }

    fn users_on(&self, node: &Name) -> impl Iterator<Item = User<'_>> {
        self.tenants().of(node).filter_map(|key| self.pod(key)).map(|pod| User::of(pod))
    }

    fn is_used(&self, claim: &ClaimKey, besides: &PodKey) -> bool {
        other_users(self, claim, besides).next().is_some()
    }

    fn has_pod(&self, pod: &PodKey, uid: &Name) -> bool {
        self.pod(pod).is_some_and(|known| known.meta.uid == *uid)
    }
}

/// The pods because of which a claim counts as used by others than this one ([`View::is_used`]).
pub fn other_users<'a>(known: &'a Cache, claim: &ClaimKey, besides: &'a PodKey) -> impl Iterator<Item = &'a Arc<Pod>> {
    let is_nominated = |pod: &Pod| !pod.scheduling.nominated.is_empty();
    let own = known.pod(besides);
    let comes_before = move |other: &Pod| own.is_none_or(|own| !is_nominated(own) || other.turn() < own.turn());
    let others = known.pods_using(claim).filter(move |pod| pod.key() != *besides && !pod.is_over());
    others.filter(move |pod| !pod.node.is_empty() || is_nominated(pod) && comes_before(pod))
}
