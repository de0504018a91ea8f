//! Keeping the indices current with every change of what is shown.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_model::{
    Annotation, Attachment, Capacity, Claim, ClaimKey, Class, Name, ObjectKey, Pod, PodKey, Request, Volume, points_to,
    reserved_mismatch,
};

use crate::node_pods::Standing;
use crate::object_store::Seen;
use crate::{Cache, TopologyIndex};

impl Cache {
    /// Brings the indices up to date after what is shown of a claim may have changed.
    pub(super) fn claim_moved(&mut self, key: &ClaimKey, before: Option<Arc<Claim>>) {
        let after = self.claims.get(key).cloned();
        if is_same(&before, &after) {
            return;
        }
        if let Some(before) = &before {
            self.looking.remove(before);
            self.demand.remove(before);
            if let Some(volume) = &before.volume {
                self.claims_by_volume.remove(volume, key);
            }
            for class in before.attributes_classes() {
                self.attributes_users.remove(class, &key.clone().into());
            }
        }
        if let Some(after) = &after {
            if after.is_looking() {
                self.looking.insert(after);
            }
            if let Some(volume) = &after.volume {
                self.claims_by_volume.insert(volume.clone(), key.clone());
            }
            for class in after.attributes_classes() {
                self.attributes_users.insert(class.clone(), key.clone().into());
            }
        }
        self.refresh_demand(key);
        self.refresh_users(key);
        for claim in before.iter().chain(&after) {
            if let Some(volume) = &claim.volume {
                self.refresh_pool(volume);
            }
        }
    }

    /// Brings the indices up to date after what is shown of a volume may have changed.
    pub(super) fn volume_moved(&mut self, name: &Name, before: Option<Arc<Volume>>) {
        let after = self.volumes.get(name).cloned();
        if is_same(&before, &after) {
            return;
        }
        let reserved = |volume: &Option<Arc<Volume>>| {
            volume.as_ref().and_then(|volume| volume.claim_ref.as_ref()).map(|claim| claim.key.clone())
        };
        if let Some(before) = before.as_ref().filter(|before| before.is_free()) {
            self.pool.remove(before);
            if TopologyIndex::takes(before) {
                self.reach.remove(before);
            }
        }
        self.refresh_pool(name);
        if let Some(class) = before.as_ref().and_then(|volume| volume.attributes_class.as_ref()) {
            self.attributes_users.remove(class, &ObjectKey::volume(name.clone()));
        }
        if let Some(class) = after.as_ref().and_then(|volume| volume.attributes_class.as_ref()) {
            self.attributes_users.insert(class.clone(), ObjectKey::volume(name.clone()));
        }
        let (old, new) = (reserved(&before), reserved(&after));
        if let Some(old) = &old {
            self.volumes_by_claim.remove(old, name);
        }
        if let Some(new) = &new {
            self.volumes_by_claim.insert(new.clone(), name.clone());
        }
        for key in old.iter().chain(&new) {
            self.refresh_demand(key);
            self.refresh_users(key);
        }
    }

    /// Brings the indices up to date after what is shown of a pod may have changed.
    pub(super) fn pod_moved(&mut self, key: &PodKey, before: Option<Arc<Pod>>) {
        let after = self.pods.get(key).cloned();
        if is_same(&before, &after) {
            return;
        }
        self.pods_by_claim.moved(before.as_deref(), after.as_deref());
        self.refresh_tenant(key);
    }

    /// Notes anew where the pods are, or are meant to be, that use a claim.
    fn refresh_users(&mut self, claim: &ClaimKey) {
        for pod in self.pods_by_claim.get(claim).to_vec() {
            self.refresh_tenant(&pod);
        }
    }

    fn refresh_tenant(&mut self, key: &PodKey) {
        let pod = self.pods.get(key).cloned();
        let waiting = pod.as_ref().filter(|pod| pod.node.is_empty());
        let meant = waiting.and_then(|pod| self.meant_for(pod));
        let classes = waiting.map(|pod| self.classes_of(pod)).unwrap_or_default();
        self.tenants.note(key, pod.as_ref().map(|pod| Standing { pod, meant, classes }));
    }

    /// The classes of a pod's claims that are not bound; each once.
    fn classes_of(&self, pod: &Pod) -> Box<[Name]> {
        let claims =
            pod.claim_keys().filter_map(|key| self.claims.get(&key)).filter(|claim| !claim.is_bind_completed());
        let classes: BTreeSet<&Name> = claims.map(|claim| claim.class()).collect();
        classes.into_iter().cloned().collect()
    }

    /// The node that is meant for a pod which has none: it says so itself, or a volume is made or reserved for it there. What a
    /// user keeps for a claim says nothing: nobody has looked yet whether the pod can be there.
    fn meant_for(&self, pod: &Pod) -> Option<Name> {
        if !pod.scheduling.nominated.is_empty() {
            return Some(pod.scheduling.nominated.clone());
        }
        let unbound = pod.claim_keys().filter_map(|key| self.claims.get(&key));
        unbound.filter(|claim| !claim.is_bind_completed()).find_map(|claim| {
            let selected = claim.annotations.get(Annotation::SelectedNode).filter(|node| !node.is_empty());
            let reserved = || {
                let marked = |volume: &&Arc<Volume>| volume.annotations.has(Annotation::BoundByController);
                let mut volumes = self.volumes_of_claim(claim).filter(marked);
                volumes.find_map(|volume| volume.nodes.as_ref()?.host().cloned())
            };
            selected.cloned().or_else(reserved)
        })
    }

    fn volumes_of_claim<'a>(&'a self, claim: &'a Claim) -> impl Iterator<Item = &'a Arc<Volume>> {
        let names = self.volumes_by_claim.get(&claim.key()).to_vec();
        names.into_iter().filter_map(|name| self.volumes.get(&name)).filter(|volume| points_to(volume, claim))
    }

    pub(super) fn class_moved(&mut self, seen: &Seen<Class>) {
        let rank = |class: &Class| (std::cmp::Reverse(class.created.clone()), class.meta.name.clone());
        if let Some(before) = &seen.before {
            self.defaults.remove(&rank(before));
        }
        if let Some(after) = seen.after.as_ref().filter(|after| after.is_default()) {
            self.defaults.insert(rank(after));
        }
    }

    pub(super) fn capacity_moved(&mut self, seen: &Seen<Capacity>) {
        if let Some(before) = &seen.before {
            self.room.remove(before);
        }
        if let Some(after) = &seen.after {
            self.room.insert(after);
        }
    }

    pub(super) fn attachment_moved(&mut self, seen: &Seen<Attachment>) {
        if let Some(before) = &seen.before {
            self.attachments_by_node.remove(&before.node, &before.meta.name);
        }
        if let Some(after) = &seen.after {
            self.attachments_by_node.insert(after.node.clone(), after.meta.name.clone());
        }
    }

    /// A volume is in the pool while it is free and no claim wants it by name; among those that nodes reach when it is marked so.
    fn refresh_pool(&mut self, name: &Name) {
        let Some(volume) = self.volumes.get(name).filter(|volume| volume.is_free()).cloned() else { return };
        let is_requested_by_name = self.is_requested_by_name(&volume);
        if is_requested_by_name {
            self.pool.remove(&volume);
        } else {
            self.pool.insert(&volume);
        }
        match TopologyIndex::takes(&volume) {
            true if is_requested_by_name => self.reach.remove(&volume),
            true => self.reach.insert(&volume),
            false => {}
        }
    }

    /// A claim is in the demand while it looks for a volume, none is reserved for it that can serve it, and no write of it is
    /// in flight.
    pub(super) fn refresh_demand(&mut self, key: &ClaimKey) {
        let Some(claim) = self.claims.get(key).cloned() else { return };
        let request = Request::of(&claim, false);
        let serves = |volume: &Arc<Volume>| {
            let fits = |request: &Request<'_>| reserved_mismatch(request, volume).is_none();
            points_to(volume, &claim) && request.as_ref().is_ok_and(fits)
        };
        let is_served = || self.volumes_of(key).any(serves);
        if claim.is_looking() && !self.claims.is_assumed(key) && !is_served() {
            self.demand.insert(&claim);
        } else {
            self.demand.remove(&claim);
        }
    }
}

fn is_same<T>(before: &Option<Arc<T>>, after: &Option<Arc<T>>) -> bool {
    match (before, after) {
        (None, None) => true,
        (Some(before), Some(after)) => Arc::ptr_eq(before, after),
        (None, Some(_)) | (Some(_), None) => false,
    }
}
