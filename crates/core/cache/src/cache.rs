//! The mirror itself: shelves of objects, and the indices over them.

mod keep;

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_model::{
    Attachment, AttributesClass, Capacity, Claim, ClaimKey, Class, CsiDriver, CsiNode, Kind, Name, Node, Object,
    ObjectKey, Pod, PodKey, Volume, satisfies,
};

use crate::indices::{Looking, PodsByClaim, Under};
use crate::object_store::{ObjectStore, Origin, Seen, Shelved};
use crate::{CapacityIndex, Demand, NodePods, Pool, TopologyIndex};

/// A change that rules could tell: the object before and after it. At least one of the two is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The object before; `None` when it is new.
    pub before: Option<Object>,
    /// The object after; `None` when it is gone.
    pub after: Option<Object>,
}

impl Change {
    fn of<T>(seen: Seen<T>, wrap: fn(Arc<T>) -> Object) -> Change {
        Change { before: seen.before.map(wrap), after: seen.after.map(wrap) }
    }

    /// Which object changed.
    pub fn key(&self) -> ObjectKey {
        let object = self.after.as_ref().or(self.before.as_ref());
        object.expect("a change has an object before or after it").key()
    }
}

/// What is known of the cluster.
#[derive(Debug, Default)]
pub struct Cache {
    claims: ObjectStore<ClaimKey, Claim>,
    volumes: ObjectStore<Name, Volume>,
    classes: ObjectStore<Name, Class>,
    attributes_classes: ObjectStore<Name, AttributesClass>,
    pods: ObjectStore<PodKey, Pod>,
    nodes: ObjectStore<Name, Node>,
    csi_nodes: ObjectStore<Name, CsiNode>,
    drivers: ObjectStore<Name, CsiDriver>,
    capacities: ObjectStore<ObjectKey, Capacity>,
    attachments: ObjectStore<Name, Attachment>,

    volumes_by_claim: Under<ClaimKey, Name>,
    claims_by_volume: Under<Name, ClaimKey>,
    pods_by_claim: PodsByClaim,
    attachments_by_node: Under<Name, Name>,
    attributes_users: Under<Name, ObjectKey>,
    tenants: NodePods,
    looking: Looking,
    /// Objects that could not be understood. There should be none.
    flawed: BTreeSet<ObjectKey>,
    /// Default classes: the newest first, then the first by name.
    defaults: BTreeSet<(std::cmp::Reverse<Name>, Name)>,
    pool: Pool,
    reach: TopologyIndex,
    room: CapacityIndex,
    demand: Demand,
}

/// Does the same with the shelf of a kind, whichever it is: `$of` is the mirror, borrowed.
macro_rules! with_shelf {
    ($kind:expr, ($($of:tt)+), $shelf:ident => $result:expr) => {
        match $kind {
            Kind::Claim => { let $shelf = $($of)+.claims; $result }
            Kind::Volume => { let $shelf = $($of)+.volumes; $result }
            Kind::Class => { let $shelf = $($of)+.classes; $result }
            Kind::AttributesClass => { let $shelf = $($of)+.attributes_classes; $result }
            Kind::Pod => { let $shelf = $($of)+.pods; $result }
            Kind::Node => { let $shelf = $($of)+.nodes; $result }
            Kind::CsiNode => { let $shelf = $($of)+.csi_nodes; $result }
            Kind::CsiDriver => { let $shelf = $($of)+.drivers; $result }
            Kind::Capacity => { let $shelf = $($of)+.capacities; $result }
            Kind::Attachment => { let $shelf = $($of)+.attachments; $result }
        }
    };
}

// === What rules ask ===

impl Cache {
    /// A claim.
    pub fn claim(&self, key: &ClaimKey) -> Option<&Arc<Claim>> {
        self.claims.get(key)
    }

    /// A volume.
    pub fn volume(&self, name: &Name) -> Option<&Arc<Volume>> {
        self.volumes.get(name)
    }

    /// A class.
    pub fn class(&self, name: &Name) -> Option<&Arc<Class>> {
        self.classes.get(name)
    }

    /// An attributes class.
    pub fn attributes_class(&self, name: &Name) -> Option<&Arc<AttributesClass>> {
        self.attributes_classes.get(name)
    }

    /// A pod.
    pub fn pod(&self, key: &PodKey) -> Option<&Arc<Pod>> {
        self.pods.get(key)
    }

    /// A node.
    pub fn node(&self, name: &Name) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }

    /// All nodes, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.iter().map(|(_, node)| node)
    }

    /// What CSI drivers can do on a node.
    pub fn csi_node(&self, node: &Name) -> Option<&Arc<CsiNode>> {
        self.csi_nodes.get(node)
    }

    /// A CSI driver.
    pub fn driver(&self, name: &Name) -> Option<&Arc<CsiDriver>> {
        self.drivers.get(name)
    }

    /// What is attached to a node, or is to be; by name.
    pub fn attachments_on(&self, node: &Name) -> impl Iterator<Item = &Arc<Attachment>> {
        self.attachments_by_node.get(node).iter().filter_map(|name| self.attachments.get(name))
    }

    /// Pods that were given a node, or that it is meant for, and have not ended; by key.
    pub fn pods_on(&self, node: &Name) -> impl Iterator<Item = &Arc<Pod>> {
        self.tenants.of(node).filter_map(|key| self.pods.get(key))
    }

    /// The class that claims get that say nothing of a class: the newest of the default ones, then the first by name.
    pub fn default_class(&self) -> Option<&Arc<Class>> {
        self.defaults.iter().find_map(|(_, name)| self.classes.get(name))
    }

    /// Volumes that belong to a claim of that name, or are reserved for one; by name.
    pub fn volumes_of(&self, claim: &ClaimKey) -> impl Iterator<Item = &Arc<Volume>> {
        self.volumes_by_claim.get(claim).iter().filter_map(|name| self.volumes.get(name))
    }

    /// Claims that name a volume; by key.
    pub fn claims_naming(&self, volume: &Name) -> impl Iterator<Item = &Arc<Claim>> {
        self.claims_by_volume.get(volume).iter().filter_map(|key| self.claims.get(key))
    }

    /// Pods that use a claim of that name; by name.
    pub fn pods_using(&self, claim: &ClaimKey) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods_by_claim.get(claim).iter().filter_map(|key| self.pods.get(key))
    }

    /// Which pods are where, and which wait.
    pub fn tenants(&self) -> &NodePods {
        &self.tenants
    }

    /// Claims and volumes that have to do with an attributes class; by key.
    pub fn attributes_users(&self, class: &Name) -> &[ObjectKey] {
        self.attributes_users.get(class)
    }

    /// Objects of a kind that could not be understood, in a namespace; by key.
    pub fn flawed(&self, kind: Kind, namespace: &Name) -> impl Iterator<Item = &ObjectKey> {
        self.flawed.iter().filter(move |key| key.kind == kind && key.namespace == *namespace)
    }

    /// Objects of a kind that could not be understood, wherever they are; by key.
    pub fn flawed_anywhere(&self, kind: Kind) -> impl Iterator<Item = &ObjectKey> {
        self.flawed.iter().filter(move |key| key.kind == kind)
    }

    /// Claims that look for any volume and say this of their class (`None`: nothing); by key.
    pub fn looking(&self, class: Option<&Name>) -> impl Iterator<Item = &ClaimKey> {
        self.looking.get(class)
    }

    /// The volumes that any fitting claim may have.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The volumes of the pool that are marked free, by the nodes that can reach them.
    pub fn reach(&self) -> &TopologyIndex {
        &self.reach
    }

    /// The room for new volumes, by the nodes that can reach it.
    pub fn room(&self) -> &CapacityIndex {
        &self.room
    }

    /// The claims that look for a volume and have none in sight.
    pub fn demand(&self) -> &Demand {
        &self.demand
    }

    /// Whether a claim wants a volume by name and can have it: it is not for others then, though nothing is written on it yet.
    pub fn is_requested_by_name(&self, volume: &Volume) -> bool {
        let wants = |claim: &Arc<Claim>| {
            claim.flaw.is_none() && (claim.is_bind_completed() || satisfies(claim, volume).is_ok())
        };
        self.claims_naming(volume.name()).any(wants)
    }

    /// Whether a claim is shown as a write of ours will make it, and not as it was seen.
    pub fn is_claim_assumed(&self, key: &ClaimKey) -> bool {
        self.claims.is_assumed(key)
    }

    /// All keys of a kind, in no order.
    pub fn keys(&self, kind: Kind) -> Vec<ObjectKey> {
        match kind {
            Kind::Claim => self.claims.iter().map(|(key, _)| key.clone().into()).collect(),
            Kind::Volume => named(kind, &self.volumes),
            Kind::Class => named(kind, &self.classes),
            Kind::AttributesClass => named(kind, &self.attributes_classes),
            Kind::Pod => self.pods.iter().map(|(key, _)| key.clone().into()).collect(),
            Kind::Node => named(kind, &self.nodes),
            Kind::CsiNode => named(kind, &self.csi_nodes),
            Kind::CsiDriver => named(kind, &self.drivers),
            Kind::Capacity => self.capacities.iter().map(|(key, _)| key.clone()).collect(),
            Kind::Attachment => named(kind, &self.attachments),
        }
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        with_shelf!(kind, (&self), shelf => shelf.len())
    }

    /// An object of any kind, as rules are shown it.
    pub fn object(&self, key: &ObjectKey) -> Option<Object> {
        Some(match key.kind {
            Kind::Claim => Object::Claim(self.claims.get(&key.claim_key())?.clone()),
            Kind::Volume => Object::Volume(self.volumes.get(&key.name)?.clone()),
            Kind::Class => Object::Class(self.classes.get(&key.name)?.clone()),
            Kind::AttributesClass => Object::AttributesClass(self.attributes_classes.get(&key.name)?.clone()),
            Kind::Pod => Object::Pod(self.pods.get(&key.pod_key())?.clone()),
            Kind::Node => Object::Node(self.nodes.get(&key.name)?.clone()),
            Kind::CsiNode => Object::CsiNode(self.csi_nodes.get(&key.name)?.clone()),
            Kind::CsiDriver => Object::CsiDriver(self.drivers.get(&key.name)?.clone()),
            Kind::Capacity => Object::Capacity(self.capacities.get(key)?.clone()),
            Kind::Attachment => Object::Attachment(self.attachments.get(&key.name)?.clone()),
        })
    }
}

// === What the engine tells ===

impl Cache {
    /// Takes in what a watch delivered. Says what changed, if it is news and rules could tell.
    pub fn watched(&mut self, object: Object) -> Option<Change> {
        self.observe(object, Origin::Watch)
    }

    /// Takes in what an answer carried. It may be ahead of the watch, and never undoes it.
    pub fn answered(&mut self, object: Object) -> Option<Change> {
        self.observe(object, Origin::Answer)
    }

    fn observe(&mut self, object: Object, origin: Origin) -> Option<Change> {
        let change = self.take_in(object, origin);
        self.note_flaw(change.as_ref());
        change
    }

    /// Nearly nothing ever has a flaw, and then this costs nothing.
    fn note_flaw(&mut self, change: Option<&Change>) {
        let Some(change) = change else { return };
        if change.after.as_ref().is_some_and(|after| after.flaw().is_some()) {
            self.flawed.insert(change.key());
        } else if !self.flawed.is_empty() {
            self.flawed.remove(&change.key());
        }
    }

    fn take_in(&mut self, object: Object, origin: Origin) -> Option<Change> {
        match object {
            Object::Claim(claim) => {
                let key = claim.key();
                let before = self.claims.get(&key).cloned();
                let seen = self.claims.observe(key.clone(), claim, origin);
                self.claim_moved(&key, before);
                Some(Change::of(seen?, Object::Claim))
            }
            Object::Volume(volume) => {
                let name = volume.name().clone();
                let before = self.volumes.get(&name).cloned();
                let seen = self.volumes.observe(name.clone(), volume, origin);
                self.volume_moved(&name, before);
                Some(Change::of(seen?, Object::Volume))
            }
            Object::Class(class) => {
                let seen = self.classes.observe(class.meta.name.clone(), class, origin)?;
                self.class_moved(&seen);
                Some(Change::of(seen, Object::Class))
            }
            Object::AttributesClass(class) => {
                let seen = self.attributes_classes.observe(class.meta.name.clone(), class, origin)?;
                Some(Change::of(seen, Object::AttributesClass))
            }
            Object::Pod(pod) => {
                let key = pod.key();
                let before = self.pods.get(&key).cloned();
                let seen = self.pods.observe(key.clone(), pod, origin);
                self.pod_moved(&key, before);
                Some(Change::of(seen?, Object::Pod))
            }
            Object::Node(node) => {
                let seen = self.nodes.observe(node.meta.name.clone(), node, origin)?;
                Some(Change::of(seen, Object::Node))
            }
            Object::CsiNode(node) => {
                let seen = self.csi_nodes.observe(node.meta.name.clone(), node, origin)?;
                Some(Change::of(seen, Object::CsiNode))
            }
            Object::CsiDriver(driver) => {
                let seen = self.drivers.observe(driver.meta.name.clone(), driver, origin)?;
                Some(Change::of(seen, Object::CsiDriver))
            }
            Object::Capacity(capacity) => {
                let key = Object::Capacity(capacity.clone()).key();
                let seen = self.capacities.observe(key, capacity, origin)?;
                self.capacity_moved(&seen);
                Some(Change::of(seen, Object::Capacity))
            }
            Object::Attachment(attachment) => {
                let seen = self.attachments.observe(attachment.meta.name.clone(), attachment, origin)?;
                self.attachment_moved(&seen);
                Some(Change::of(seen, Object::Attachment))
            }
        }
    }

    /// Takes in that a watch saw an object go, at a version.
    pub fn watched_gone(&mut self, key: &ObjectKey, version: u64) -> Option<Change> {
        self.watched_up_to(key.kind, version);
        self.gone(key, version)
    }

    /// Takes in that a live read found no such object. `asked_at` is the version that was known when the read was sent: what
    /// was seen since then is another object, or a later state, of which the read knew nothing.
    pub fn answered_gone(&mut self, key: &ObjectKey, asked_at: Option<u64>) -> Option<Change> {
        self.gone(key, asked_at?)
    }

    fn gone(&mut self, key: &ObjectKey, version: u64) -> Option<Change> {
        let change = self.take_out(key, version);
        self.note_flaw(change.as_ref());
        change
    }

    fn take_out(&mut self, key: &ObjectKey, version: u64) -> Option<Change> {
        match key.kind {
            Kind::Claim => {
                let key = key.claim_key();
                let before = self.claims.get(&key).cloned();
                let seen = self.claims.remove(&key, version);
                self.claim_moved(&key, before);
                Some(Change::of(seen?, Object::Claim))
            }
            Kind::Volume => {
                let before = self.volumes.get(&key.name).cloned();
                let seen = self.volumes.remove(&key.name, version);
                self.volume_moved(&key.name, before);
                Some(Change::of(seen?, Object::Volume))
            }
            Kind::Class => {
                let seen = self.classes.remove(&key.name, version)?;
                self.class_moved(&seen);
                Some(Change::of(seen, Object::Class))
            }
            Kind::AttributesClass => {
                let seen = self.attributes_classes.remove(&key.name, version)?;
                Some(Change::of(seen, Object::AttributesClass))
            }
            Kind::Pod => {
                let key = key.pod_key();
                let before = self.pods.get(&key).cloned();
                let seen = self.pods.remove(&key, version);
                self.pod_moved(&key, before);
                Some(Change::of(seen?, Object::Pod))
            }
            Kind::Node => Some(Change::of(self.nodes.remove(&key.name, version)?, Object::Node)),
            Kind::CsiNode => Some(Change::of(self.csi_nodes.remove(&key.name, version)?, Object::CsiNode)),
            Kind::CsiDriver => Some(Change::of(self.drivers.remove(&key.name, version)?, Object::CsiDriver)),
            Kind::Capacity => {
                let seen = self.capacities.remove(key, version)?;
                self.capacity_moved(&seen);
                Some(Change::of(seen, Object::Capacity))
            }
            Kind::Attachment => {
                let seen = self.attachments.remove(&key.name, version)?;
                self.attachment_moved(&seen);
                Some(Change::of(seen, Object::Attachment))
            }
        }
    }

    /// Takes in a whole list of a kind, as it was at a version. What the list lacks is gone, unless we know it from later.
    /// A list that is older than what the watch told takes nothing away and brings nothing back.
    pub fn listed(&mut self, kind: Kind, version: u64, objects: Vec<Object>) -> Vec<Change> {
        let is_stale = version < self.watched_version(kind);
        let origin = if is_stale { Origin::Answer } else { Origin::List };
        let listed: BTreeSet<ObjectKey> = objects.iter().map(Object::key).collect();
        let mut changes: Vec<Change> = objects.into_iter().filter_map(|object| self.observe(object, origin)).collect();
        if !is_stale {
            let mut missing = self.keys(kind);
            missing.retain(|key| !listed.contains(key));
            missing.sort();
            changes.extend(missing.iter().filter_map(|key| self.gone(key, version)));
            self.watched_up_to(kind, version);
        }
        changes
    }

    /// Notes that the watch of a kind is complete up to a version.
    pub fn watched_up_to(&mut self, kind: Kind, version: u64) {
        with_shelf!(kind, (&mut self), shelf => shelf.watched_up_to(version));
    }

    /// The version of an object that was last seen, if it is known.
    pub fn seen_version(&self, key: &ObjectKey) -> Option<u64> {
        match key.kind {
            Kind::Claim => self.claims.seen_version(&key.claim_key()),
            Kind::Volume => self.volumes.seen_version(&key.name),
            Kind::Class => self.classes.seen_version(&key.name),
            Kind::AttributesClass => self.attributes_classes.seen_version(&key.name),
            Kind::Pod => self.pods.seen_version(&key.pod_key()),
            Kind::Node => self.nodes.seen_version(&key.name),
            Kind::CsiNode => self.csi_nodes.seen_version(&key.name),
            Kind::CsiDriver => self.drivers.seen_version(&key.name),
            Kind::Capacity => self.capacities.seen_version(key),
            Kind::Attachment => self.attachments.seen_version(&key.name),
        }
    }

    /// Up to which version the watch of a kind is complete.
    pub fn watched_version(&self, kind: Kind) -> u64 {
        with_shelf!(kind, (&self), shelf => shelf.watched())
    }

    /// Shows a claim as a write of ours will make it, until [`Cache::settle`].
    pub fn assume_claim(&mut self, claim: Arc<Claim>) {
        let key = claim.key();
        let before = self.claims.get(&key).cloned();
        self.claims.assume(key.clone(), claim);
        self.claim_moved(&key, before);
    }

    /// Shows a volume as a write of ours will make it, until [`Cache::settle`].
    pub fn assume_volume(&mut self, volume: Arc<Volume>) {
        let name = volume.name().clone();
        let before = self.volumes.get(&name).cloned();
        self.volumes.assume(name.clone(), volume);
        self.volume_moved(&name, before);
    }

    /// Shows a pod as a write of ours will make it, until [`Cache::settle`].
    pub fn assume_pod(&mut self, pod: Arc<Pod>) {
        let key = pod.key();
        let before = self.pods.get(&key).cloned();
        self.pods.assume(key.clone(), pod);
        self.pod_moved(&key, before);
    }

    /// Shows an object as it was last seen again. Says what it was assumed to be and what it is, if it was assumed at all;
    /// the two may be equal.
    pub fn settle(&mut self, key: &ObjectKey) -> Option<Change> {
        match key.kind {
            Kind::Claim => {
                let key = key.claim_key();
                let before = self.claims.get(&key).cloned();
                self.claims.settle(&key).then_some(())?;
                // Having had a write in flight kept it out of the demand, whatever it looks like now.
                self.refresh_demand(&key);
                self.claim_moved(&key, before.clone());
                Some(Change {
                    before: before.map(Object::Claim),
                    after: self.claims.get(&key).cloned().map(Object::Claim),
                })
            }
            Kind::Volume => {
                let before = self.volumes.get(&key.name).cloned();
                self.volumes.settle(&key.name).then_some(())?;
                self.volume_moved(&key.name, before.clone());
                let after = self.volumes.get(&key.name).cloned();
                Some(Change { before: before.map(Object::Volume), after: after.map(Object::Volume) })
            }
            Kind::Pod => {
                let key = key.pod_key();
                let before = self.pods.get(&key).cloned();
                self.pods.settle(&key).then_some(())?;
                self.pod_moved(&key, before.clone());
                let after = self.pods.get(&key).cloned();
                Some(Change { before: before.map(Object::Pod), after: after.map(Object::Pod) })
            }
            // The rest is never assumed.
            Kind::Class
            | Kind::AttributesClass
            | Kind::Node
            | Kind::CsiNode
            | Kind::CsiDriver
            | Kind::Capacity
            | Kind::Attachment => None,
        }
    }
}

/// The keys of objects that have no namespace.
fn named<T: Shelved>(kind: Kind, shelf: &ObjectStore<Name, T>) -> Vec<ObjectKey> {
    shelf.iter().map(|(name, _)| ObjectKey::cluster(kind, name.clone())).collect()
}
