//! The cache: a store for each kind, and the indices over them.

mod reindex;

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_model::{
    Attachment, AttributesClass, Capacity, Claim, ClaimKey, Class, CsiDriver, CsiNode, Kind, Meta, Name, Node, Object,
    ObjectKey, Pod, PodKey, Record, Volume, for_each_kind,
};
use rustc_hash::FxHashSet;

use self::reindex::Indexed;
use crate::indices::{ClaimsByClass, MultiMap};
use crate::object_store::{ObjectStore, Origin, StoreKey, Stored, Update};
use crate::snapshot::Contents;
use crate::{
    CapacityIndex, ClaimGroup, Counts, FreeVolumes, IndexPolicy, NodePods, TopologyIndex, UnmatchedClaims, VolumeGroup,
};

/// A change that rules can see: the object before and after it. At least one of them is present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The object before; `None` when it is new.
    pub before: Option<Object>,
    /// The object after; `None` when it was deleted.
    pub after: Option<Object>,
}

impl Change {
    fn of<T: Stored>(before: Option<Arc<T>>, after: Option<Arc<T>>) -> Change {
        Change { before: before.map(T::wrap), after: after.map(T::wrap) }
    }

    /// The key of the object that changed.
    pub fn key(&self) -> ObjectKey {
        let object = self.after.as_ref().or(self.before.as_ref());
        object.expect("a change has an object before or after it").key()
    }
}

/// The cached state of the cluster.
#[derive(Debug, Clone)]
pub struct Cache {
    policy: IndexPolicy,

    claims: ObjectStore<Claim>,
    volumes: ObjectStore<Volume>,
    classes: ObjectStore<Class>,
    attributes_classes: ObjectStore<AttributesClass>,
    pods: ObjectStore<Pod>,
    nodes: ObjectStore<Node>,
    csi_nodes: ObjectStore<CsiNode>,
    drivers: ObjectStore<CsiDriver>,
    capacities: ObjectStore<Capacity>,
    attachments: ObjectStore<Attachment>,
    records: ObjectStore<Record>,

    volumes_by_claim: MultiMap<ClaimKey, Name>,
    claims_by_volume: MultiMap<Name, ClaimKey>,
    pods_by_claim: MultiMap<ClaimKey, PodKey>,
    attachments_by_node: MultiMap<Name, Name>,
    attributes_class_users: MultiMap<Name, ObjectKey>,
    node_pods: NodePods,
    claims_needing_volume: ClaimsByClass,
    volume_counts: Counts<VolumeGroup>,
    claim_counts: Counts<ClaimGroup>,
    /// Objects with a field that could not be parsed. Usually empty.
    malformed: BTreeSet<ObjectKey>,
    /// Default classes: the newest first, then by name.
    default_classes: BTreeSet<(std::cmp::Reverse<Name>, Name)>,
    free_volumes: FreeVolumes,
    topology_index: TopologyIndex,
    capacity_index: CapacityIndex,
    unmatched_claims: UnmatchedClaims,
    /// Claims and pods that are decided about later anyway.
    deferred: FxHashSet<ObjectKey>,
}

/// The store of each type.
trait InCache: Indexed {
    fn store(cache: &Cache) -> &ObjectStore<Self>;
    fn store_mut(cache: &mut Cache) -> &mut ObjectStore<Self>;
}

macro_rules! stores {
    ($($kind:ident => $store:ident: $key:ty;)+) => { $(
        impl Stored for $kind {
            type Key = $key;

            fn meta(&self) -> &Meta {
                &self.meta
            }

            fn wrap(object: Arc<$kind>) -> Object {
                Object::$kind(object)
            }
        }

        impl InCache for $kind {
            fn store(cache: &Cache) -> &ObjectStore<$kind> {
                &cache.$store
            }

            fn store_mut(cache: &mut Cache) -> &mut ObjectStore<$kind> {
                &mut cache.$store
            }
        }
    )+ };
}
stores! {
    Claim => claims: ClaimKey;
    Volume => volumes: Name;
    Class => classes: Name;
    AttributesClass => attributes_classes: Name;
    Pod => pods: PodKey;
    Node => nodes: Name;
    CsiNode => csi_nodes: Name;
    CsiDriver => drivers: Name;
    Capacity => capacities: (Name, Name);
    Attachment => attachments: Name;
    Record => records: Name;
}

/// Calls the function for the type of a kind or of an object.
macro_rules! dispatch {
    ($($kind:ident, $name:literal, $root:literal, $plural:literal, $scope:ident;)+) => {
        impl Cache {
            fn observe_any(&mut self, object: Object, origin: Origin) -> Option<Change> {
                match object {
                    $(Object::$kind(object) => self.observe_object(object, origin),)+
                }
            }

            fn remove_any(&mut self, key: &ObjectKey, version: u64) -> Option<Change> {
                match key.kind {
                    $(Kind::$kind => self.remove_object::<$kind>(key, version),)+
                }
            }

            fn unassume_any(&mut self, key: &ObjectKey) -> Option<Change> {
                match key.kind {
                    $(Kind::$kind => self.unassume_object::<$kind>(key),)+
                }
            }

            /// All keys of a kind, in no order.
            pub fn keys(&self, kind: Kind) -> Vec<ObjectKey> {
                match kind {
                    $(Kind::$kind => $kind::store(self).iter().map(|(key, _)| key.object_key(kind)).collect(),)+
                }
            }

            /// At most this many keys of a kind, in order: the first ones, or those after a key.
            pub fn keys_after(&self, kind: Kind, after: Option<&ObjectKey>, keys_max: usize) -> Vec<ObjectKey> {
                match kind {
                    $(Kind::$kind => {
                        let after = after.map(store_key::<$kind>);
                        let keys = $kind::store(self).keys_after(after.as_ref()).take(keys_max);
                        keys.map(|key| key.object_key(kind)).collect()
                    })+
                }
            }

            /// What creates the objects of a kind as they are now.
            pub(crate) fn contents(&self, kind: Kind) -> Contents {
                match kind {
                    $(Kind::$kind => {
                        let entries = $kind::store(self).entries();
                        Box::new(move || entries.iter().map(|(_, object)| Object::$kind(object.clone())).collect())
                    })+
                }
            }

            /// A copy whose objects can be changed at will: pending writes count as done, and no
            /// version is too old to be stored.
            pub fn draft(&self) -> Cache {
                let mut draft = self.clone();
                $($kind::store_mut(&mut draft).forget_history();)+
                draft
            }

            /// The number of objects of a kind.
            pub fn count(&self, kind: Kind) -> usize {
                match kind {
                    $(Kind::$kind => $kind::store(self).len(),)+
                }
            }

            /// The visible state of an object of any kind.
            pub fn object(&self, key: &ObjectKey) -> Option<Object> {
                match key.kind {
                    $(Kind::$kind => $kind::store(self).get(&store_key::<$kind>(key)).cloned().map(Object::$kind),)+
                }
            }

            /// The version of an object that was last seen.
            pub fn seen_version(&self, key: &ObjectKey) -> Option<u64> {
                match key.kind {
                    $(Kind::$kind => $kind::store(self).seen_version(&store_key::<$kind>(key)),)+
                }
            }

            /// The version up to which the watch of a kind is complete.
            pub fn watched_version(&self, kind: Kind) -> u64 {
                match kind {
                    $(Kind::$kind => $kind::store(self).watched(),)+
                }
            }

            /// Adds the state of the cache to a digest. Objects are identified by key, UID and
            /// version, so no two states of an object may have the same version.
            pub fn digest(&self, state: &mut impl std::hash::Hasher) {
                $($kind::store(self).digest(state);)+
                bindery_model::hash::digest_unordered(&self.deferred, state);
            }

            /// Records that the watch of a kind is complete up to a version.
            pub fn watched_up_to(&mut self, kind: Kind, version: u64) {
                match kind {
                    $(Kind::$kind => $kind::store_mut(self).watched_up_to(version),)+
                }
            }
        }
    };
}
for_each_kind!(dispatch);

fn store_key<T: Stored>(key: &ObjectKey) -> T::Key {
    T::Key::new(&key.namespace, &key.name)
}

// === What rules read ===

impl Cache {
    /// An empty cache with a policy for its indices.
    pub fn new(policy: IndexPolicy) -> Cache {
        Cache {
            policy,
            claims: ObjectStore::default(),
            volumes: ObjectStore::default(),
            classes: ObjectStore::default(),
            attributes_classes: ObjectStore::default(),
            pods: ObjectStore::default(),
            nodes: ObjectStore::default(),
            csi_nodes: ObjectStore::default(),
            drivers: ObjectStore::default(),
            capacities: ObjectStore::default(),
            attachments: ObjectStore::default(),
            records: ObjectStore::default(),
            volumes_by_claim: MultiMap::default(),
            claims_by_volume: MultiMap::default(),
            pods_by_claim: MultiMap::default(),
            attachments_by_node: MultiMap::default(),
            attributes_class_users: MultiMap::default(),
            node_pods: NodePods::default(),
            claims_needing_volume: ClaimsByClass::default(),
            volume_counts: Counts::default(),
            claim_counts: Counts::default(),
            malformed: BTreeSet::default(),
            default_classes: BTreeSet::default(),
            free_volumes: FreeVolumes::default(),
            topology_index: TopologyIndex::default(),
            capacity_index: CapacityIndex::default(),
            unmatched_claims: UnmatchedClaims::default(),
            deferred: FxHashSet::default(),
        }
    }

    /// Its policy.
    pub fn policy(&self) -> IndexPolicy {
        self.policy
    }

    /// A claim.
    pub fn claim(&self, key: &ClaimKey) -> Option<&Arc<Claim>> {
        self.claims.get(key)
    }

    /// A volume.
    pub fn volume(&self, name: &Name) -> Option<&Arc<Volume>> {
        self.volumes.get(name)
    }

    /// A StorageClass.
    pub fn class(&self, name: &Name) -> Option<&Arc<Class>> {
        self.classes.get(name)
    }

    /// A VolumeAttributesClass.
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

    /// The CSINode of a node.
    pub fn csi_node(&self, node: &Name) -> Option<&Arc<CsiNode>> {
        self.csi_nodes.get(node)
    }

    /// A CSIDriver.
    pub fn driver(&self, name: &Name) -> Option<&Arc<CsiDriver>> {
        self.drivers.get(name)
    }

    /// The provisioning record for the claim with this UID.
    pub fn record(&self, claim_uid: &Name) -> Option<&Arc<Record>> {
        self.records.get(claim_uid)
    }

    /// The VolumeAttachments of a node; by name.
    pub fn attachments_on(&self, node: &Name) -> impl Iterator<Item = &Arc<Attachment>> {
        self.attachments_by_node.get(node).filter_map(|name| self.attachments.get(name))
    }

    /// The unfinished pods on a node and those planned for it; by key.
    pub fn pods_on(&self, node: &Name) -> impl Iterator<Item = &Arc<Pod>> {
        self.node_pods.on(node).filter_map(|key| self.pods.get(key))
    }

    /// The class of claims that specify none: the newest default class, then the first by name.
    pub fn default_class(&self) -> Option<&Arc<Class>> {
        self.default_classes.iter().find_map(|(_, name)| self.classes.get(name))
    }

    /// The volumes whose `spec.claimRef` has a claim's namespace and name; by name.
    pub fn volumes_of(&self, claim: &ClaimKey) -> impl Iterator<Item = &Arc<Volume>> {
        self.volumes_by_claim.get(claim).filter_map(|name| self.volumes.get(name))
    }

    /// The claims whose `spec.volumeName` is a volume; by key.
    pub fn claims_naming(&self, volume: &Name) -> impl Iterator<Item = &Arc<Claim>> {
        self.claims_by_volume.get(volume).filter_map(|key| self.claims.get(key))
    }

    /// The pods that use a claim; by name.
    pub fn pods_using(&self, claim: &ClaimKey) -> impl Iterator<Item = &Arc<Pod>> {
        self.pods_by_claim.get(claim).filter_map(|key| self.pods.get(key))
    }

    /// Pods by node, and pods that wait for a node.
    pub fn node_pods(&self) -> &NodePods {
        &self.node_pods
    }

    /// Claims and volumes that refer to a VolumeAttributesClass; by key.
    pub fn attributes_class_users(&self, class: &Name) -> impl Iterator<Item = &ObjectKey> {
        self.attributes_class_users.get(class)
    }

    /// The number of claims and volumes that refer to a VolumeAttributesClass.
    pub fn attributes_class_user_count(&self, class: &Name) -> usize {
        self.attributes_class_users.count(class)
    }

    /// Objects of a kind in a namespace with a field that could not be parsed; by key.
    pub fn malformed(&self, kind: Kind, namespace: &Name) -> impl Iterator<Item = &ObjectKey> {
        self.malformed.iter().filter(move |key| key.kind == kind && key.namespace == *namespace)
    }

    /// Objects of a kind in all namespaces with a field that could not be parsed; by key.
    pub fn malformed_anywhere(&self, kind: Kind) -> impl Iterator<Item = &ObjectKey> + Clone {
        self.malformed.iter().filter(move |key| key.kind == kind)
    }

    /// Claims of a class that need a volume; `None` for claims that specify no class. By key.
    pub fn claims_needing_volume(&self, class: Option<&Name>) -> impl Iterator<Item = &ClaimKey> {
        self.claims_needing_volume.get(class)
    }

    /// The number of volumes by what metrics distinguish.
    pub fn volume_counts(&self) -> &Counts<VolumeGroup> {
        &self.volume_counts
    }

    /// The number of claims by what metrics distinguish.
    pub fn claim_counts(&self) -> &Counts<ClaimGroup> {
        &self.claim_counts
    }

    /// The volumes that any matching claim may get.
    pub fn free_volumes(&self) -> &FreeVolumes {
        &self.free_volumes
    }

    /// The free volumes whose phase is Available, by the nodes that can reach them.
    pub fn topology_index(&self) -> &TopologyIndex {
        &self.topology_index
    }

    /// The capacity for new volumes, by the nodes that can reach it.
    pub fn capacity_index(&self) -> &CapacityIndex {
        &self.capacity_index
    }

    /// The claims that need a volume and have no suitable one reserved.
    pub fn unmatched_claims(&self) -> &UnmatchedClaims {
        &self.unmatched_claims
    }

    /// Whether a claim names a volume and may have it, so that it is not free for others.
    pub fn is_requested_by_name(&self, volume: &Volume) -> bool {
        self.claims_naming(volume.name()).any(|claim| (self.policy.is_requested_by_name)(claim, volume))
    }

    /// Whether the visible state of a claim is the expected result of a write in flight.
    pub fn is_claim_assumed(&self, key: &ClaimKey) -> bool {
        self.claims.is_assumed(key)
    }
}

// === What the engine reports ===

impl Cache {
    /// Stores an object from a watch. Returns the change, if it is newer and rules can see it.
    pub fn watched(&mut self, object: Object) -> Option<Change> {
        self.observe(object, Origin::Watch)
    }

    /// Stores an object from an answer. It may be ahead of the watch, but never reverts it.
    pub fn answered(&mut self, object: Object) -> Option<Change> {
        self.observe(object, Origin::Answer)
    }

    pub(crate) fn observe(&mut self, object: Object, origin: Origin) -> Option<Change> {
        let change = self.observe_any(object, origin);
        self.refresh_malformed(change.as_ref());
        change
    }

    fn refresh_malformed(&mut self, change: Option<&Change>) {
        let Some(change) = change else { return };
        if change.after.as_ref().is_some_and(|after| after.field_error().is_some()) {
            self.malformed.insert(change.key());
        } else if !self.malformed.is_empty() {
            self.malformed.remove(&change.key());
        }
    }

    fn observe_object<T: InCache>(&mut self, object: Arc<T>, origin: Origin) -> Option<Change> {
        let key = object.store_key();
        self.update::<T>(&key, |store| store.observe(key.clone(), object, origin))
    }

    fn remove_object<T: InCache>(&mut self, key: &ObjectKey, version: u64) -> Option<Change> {
        let key = store_key::<T>(key);
        self.update::<T>(&key, |store| store.remove(&key, version))
    }

    /// Changes a store, and updates the indices if the visible state of the object has changed.
    fn update<T: InCache>(
        &mut self,
        key: &T::Key,
        change: impl FnOnce(&mut ObjectStore<T>) -> Option<Update<T>>,
    ) -> Option<Change> {
        let before = T::store(self).get(key).cloned();
        let update = change(T::store_mut(self));
        let after = T::store(self).get(key).cloned();
        if !is_same(before.as_ref(), after.as_ref()) {
            T::reindex(self, key, before.as_ref(), after.as_ref());
        }
        update.map(|update| Change::of(update.before, update.after))
    }

    /// Removes an object that a watch reported as deleted at a version.
    pub fn watched_deleted(&mut self, key: &ObjectKey, version: u64) -> Option<Change> {
        self.watched_up_to(key.kind, version);
        self.deleted(key, version)
    }

    /// Removes an object that a live read did not find. `asked_at` is the version that was known
    /// when the read was sent: a state that was seen since is newer than the read.
    pub fn answered_not_found(&mut self, key: &ObjectKey, asked_at: Option<u64>) -> Option<Change> {
        self.deleted(key, asked_at?)
    }

    pub(crate) fn deleted(&mut self, key: &ObjectKey, version: u64) -> Option<Change> {
        let change = self.remove_any(key, version);
        self.refresh_malformed(change.as_ref());
        change
    }

    /// Shows a claim as one of our writes will change it, until [`Cache::unassume`].
    pub fn assume_claim(&mut self, claim: Arc<Claim>) {
        self.assume(claim);
    }

    /// Shows a volume as one of our writes will change it, until [`Cache::unassume`].
    pub fn assume_volume(&mut self, volume: Arc<Volume>) {
        self.assume(volume);
    }

    /// Shows a pod as one of our writes will change it, until [`Cache::unassume`].
    pub fn assume_pod(&mut self, pod: Arc<Pod>) {
        self.assume(pod);
    }

    /// Shows a record as one of our writes will change it, until [`Cache::unassume`].
    pub fn assume_record(&mut self, record: Arc<Record>) {
        self.assume(record);
    }

    fn assume<T: InCache>(&mut self, object: Arc<T>) {
        let key = object.store_key();
        self.update::<T>(&key, |store| {
            store.assume(key.clone(), object);
            None
        });
    }

    /// Notes that a claim or pod is backed off or waits, so that nothing is handed to it: it sees
    /// every change when it is decided about.
    pub fn defer(&mut self, key: &ObjectKey) {
        if self.deferred.insert(key.clone()) {
            self.refresh_receiver(key);
        }
    }

    /// Ends [`Cache::defer`].
    pub fn resume(&mut self, key: &ObjectKey) {
        if self.deferred.remove(key) {
            self.refresh_receiver(key);
        }
    }

    /// Ends [`Cache::defer`] for all keys.
    pub fn resume_all(&mut self) {
        for key in std::mem::take(&mut self.deferred) {
            self.refresh_receiver(&key);
        }
    }

    /// Shows the last seen state of an object again. Returns the assumed and the seen state, which
    /// may be equal; `None` when nothing was assumed.
    pub fn unassume(&mut self, key: &ObjectKey) -> Option<Change> {
        self.unassume_any(key)
    }

    fn unassume_object<T: InCache>(&mut self, key: &ObjectKey) -> Option<Change> {
        let key = store_key::<T>(key);
        let before = T::store(self).get(&key).cloned();
        T::store_mut(self).unassume(&key).then_some(())?;
        let after = T::store(self).get(&key).cloned();
        // Even if both states are the same: a claim with a write in flight is not indexed as
        // unmatched.
        T::reindex(self, &key, before.as_ref(), after.as_ref());
        Some(Change::of(before, after))
    }
}

fn is_same<T>(before: Option<&Arc<T>>, after: Option<&Arc<T>>) -> bool {
    match (before, after) {
        (None, None) => true,
        (Some(before), Some(after)) => Arc::ptr_eq(before, after),
        (None, Some(_)) | (Some(_), None) => false,
    }
}
