//! Updating the indices when the visible state of an object changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_model::{
    Attachment, AttributesClass, Capacity, Claim, ClaimKey, Class, CsiDriver, CsiNode, Kind, Name, Node, ObjectKey,
    Pod, PodKey, Record, Volume,
};

use crate::node_pods::PodState;
use crate::object_store::Stored;
use crate::{Cache, ClaimGroup, TopologyIndex, VolumeGroup};

/// How the indices follow objects of a kind.
pub(super) trait Indexed: Stored {
    /// Called with the visible state before and after a change.
    fn reindex(_cache: &mut Cache, _key: &Self::Key, _before: Option<&Arc<Self>>, _after: Option<&Arc<Self>>) {}
}

impl Indexed for AttributesClass {}
impl Indexed for Node {}
impl Indexed for CsiNode {}
impl Indexed for CsiDriver {}
impl Indexed for Record {}

impl Indexed for Claim {
    fn reindex(cache: &mut Cache, key: &ClaimKey, before: Option<&Arc<Claim>>, after: Option<&Arc<Claim>>) {
        if let Some(before) = before {
            cache.claims_needing_volume.remove(before);
            cache.unmatched_claims.remove(before);
            if let Some(volume) = &before.volume {
                cache.claims_by_volume.remove(volume, key);
            }
            for class in before.attributes_classes() {
                cache.attributes_class_users.remove(class, &key.clone().into());
            }
        }
        if let Some(after) = after {
            if after.needs_volume() {
                cache.claims_needing_volume.insert(after);
            }
            if let Some(volume) = &after.volume {
                cache.claims_by_volume.insert(volume.clone(), key.clone());
            }
            for class in after.attributes_classes() {
                cache.attributes_class_users.insert(class.clone(), key.clone().into());
            }
        }
        cache.claim_counts.update(before.map(|claim| ClaimGroup::of(claim)), after.map(|claim| ClaimGroup::of(claim)));
        cache.refresh_unmatched(key);
        cache.refresh_pods_using(key);
        for claim in before.into_iter().chain(after) {
            if let Some(volume) = &claim.volume {
                cache.refresh_free(volume);
            }
        }
    }
}

impl Indexed for Volume {
    fn reindex(cache: &mut Cache, name: &Name, before: Option<&Arc<Volume>>, after: Option<&Arc<Volume>>) {
        if let Some(before) = before.filter(|before| before.is_free()) {
            cache.free_volumes.remove(before);
            if TopologyIndex::includes(before) {
                cache.topology_index.remove(before);
            }
        }
        cache.refresh_free(name);
        let group = |volume: &Arc<Volume>| VolumeGroup::of(volume);
        cache.volume_counts.update(before.map(group), after.map(group));
        if let Some(class) = before.and_then(|volume| volume.attributes_class.as_ref()) {
            cache.attributes_class_users.remove(class, &ObjectKey::volume(name.clone()));
        }
        if let Some(class) = after.and_then(|volume| volume.attributes_class.as_ref()) {
            cache.attributes_class_users.insert(class.clone(), ObjectKey::volume(name.clone()));
        }
        let claim_of = |volume: &Arc<Volume>| volume.claim_ref.as_ref().map(|claim| claim.key.clone());
        let (old, new) = (before.and_then(claim_of), after.and_then(claim_of));
        if let Some(old) = &old {
            cache.volumes_by_claim.remove(old, name);
        }
        if let Some(new) = &new {
            cache.volumes_by_claim.insert(new.clone(), name.clone());
        }
        for key in old.iter().chain(&new) {
            cache.refresh_unmatched(key);
            cache.refresh_pods_using(key);
        }
    }
}

impl Indexed for Pod {
    fn reindex(cache: &mut Cache, key: &PodKey, before: Option<&Arc<Pod>>, after: Option<&Arc<Pod>>) {
        for claim in before.into_iter().flat_map(|pod| pod.claim_keys()) {
            cache.pods_by_claim.remove(&claim, key);
        }
        for claim in after.into_iter().flat_map(|pod| pod.claim_keys()) {
            cache.pods_by_claim.insert(claim, key.clone());
        }
        cache.refresh_pod(key);
    }
}

impl Indexed for Class {
    fn reindex(cache: &mut Cache, _: &Name, before: Option<&Arc<Class>>, after: Option<&Arc<Class>>) {
        let rank = |class: &Class| (std::cmp::Reverse(class.created.clone()), class.meta.name.clone());
        if let Some(before) = before {
            cache.default_classes.remove(&rank(before));
        }
        if let Some(after) = after.filter(|after| after.is_default()) {
            cache.default_classes.insert(rank(after));
        }
    }
}

impl Indexed for Capacity {
    fn reindex(cache: &mut Cache, _: &Self::Key, before: Option<&Arc<Capacity>>, after: Option<&Arc<Capacity>>) {
        if let Some(before) = before {
            cache.capacity_index.remove(before);
        }
        if let Some(after) = after {
            cache.capacity_index.insert(after);
        }
    }
}

impl Indexed for Attachment {
    fn reindex(cache: &mut Cache, name: &Name, before: Option<&Arc<Attachment>>, after: Option<&Arc<Attachment>>) {
        if let Some(before) = before {
            cache.attachments_by_node.remove(&before.node, name);
        }
        if let Some(after) = after {
            cache.attachments_by_node.insert(after.node.clone(), name.clone());
        }
    }
}

impl Cache {
    /// Indexes the pods again that use a claim.
    fn refresh_pods_using(&mut self, claim: &ClaimKey) {
        let pods: Vec<PodKey> = self.pods_by_claim.get(claim).cloned().collect();
        for pod in pods {
            self.refresh_pod(&pod);
        }
    }

    fn refresh_pod(&mut self, key: &PodKey) {
        let pod = self.pods.get(key).cloned();
        let waiting = pod.as_ref().filter(|pod| pod.node.is_empty());
        let planned_node = waiting.and_then(|pod| (self.policy.planned_node)(self, pod));
        let unbound_classes = waiting.map(|pod| self.unbound_classes(pod)).unwrap_or_default();
        let lacks = |pod: &Arc<Pod>| pod.ephemeral().any(|(_, volume)| self.claim(&pod.claim_key(volume)).is_none());
        let lacks_ephemeral_claim = waiting.is_some_and(lacks);
        let is_deferred = !self.deferred.is_empty() && self.deferred.contains(&key.clone().into());
        let state =
            pod.as_ref().map(|pod| PodState { pod, planned_node, unbound_classes, lacks_ephemeral_claim, is_deferred });
        self.node_pods.update(key, state);
    }

    /// The classes of a pod's unbound claims; each once.
    fn unbound_classes(&self, pod: &Pod) -> Box<[Name]> {
        let claims =
            pod.claim_keys().filter_map(|key| self.claims.get(&key)).filter(|claim| !claim.is_bind_completed());
        let classes: BTreeSet<&Name> = claims.map(|claim| claim.class()).collect();
        classes.into_iter().cloned().collect()
    }

    /// A volume counts as free while no claim requests it by name. It is in the topology index,
    /// too, once its phase is Available.
    fn refresh_free(&mut self, name: &Name) {
        let Some(volume) = self.volumes.get(name).filter(|volume| volume.is_free()).cloned() else { return };
        let is_requested_by_name = self.is_requested_by_name(&volume);
        if is_requested_by_name {
            self.free_volumes.remove(&volume);
        } else {
            self.free_volumes.insert(&volume);
        }
        match TopologyIndex::includes(&volume) {
            true if is_requested_by_name => self.topology_index.remove(&volume),
            true => self.topology_index.insert(&volume),
            false => {}
        }
    }

    /// Indexes a claim or pod again that may receive hand-offs.
    pub(super) fn refresh_receiver(&mut self, key: &ObjectKey) {
        match key.kind {
            Kind::Claim => self.refresh_unmatched(&key.claim_key()),
            Kind::Pod => self.refresh_pod(&key.pod_key()),
            Kind::Volume
            | Kind::Class
            | Kind::AttributesClass
            | Kind::Node
            | Kind::CsiNode
            | Kind::CsiDriver
            | Kind::Capacity
            | Kind::Attachment
            | Kind::Record => {}
        }
    }

    /// A claim is unmatched while it needs a volume, no suitable one is reserved for it, no write
    /// of it is in flight, and it is not deferred.
    fn refresh_unmatched(&mut self, key: &ClaimKey) {
        let Some(claim) = self.claims.get(key).cloned() else { return };
        let is_served = || self.volumes_of(key).any(|volume| (self.policy.is_served_by)(&claim, volume));
        let is_deferred = || !self.deferred.is_empty() && self.deferred.contains(&key.clone().into());
        if claim.needs_volume() && !self.claims.is_assumed(key) && !is_deferred() && !is_served() {
            self.unmatched_claims.insert(&claim);
        } else {
            self.unmatched_claims.remove(&claim);
        }
    }
}
