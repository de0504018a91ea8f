//! Objects of one kind: as last seen, and as our writes in flight will change them.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bindery_model::hash::digest_unordered;
use bindery_model::{ClaimKey, Kind, Meta, Name, Object, ObjectKey, PodKey};
use rustc_hash::FxHashMap;

use crate::object_map::{Entries, ObjectMap};

/// The key by which objects of one kind are stored.
pub(crate) trait StoreKey: Hash + Ord + Clone {
    fn new(namespace: &Name, name: &Name) -> Self;
    fn object_key(&self, kind: Kind) -> ObjectKey;
}

impl StoreKey for Name {
    fn new(_: &Name, name: &Name) -> Name {
        name.clone()
    }

    fn object_key(&self, kind: Kind) -> ObjectKey {
        ObjectKey::cluster(kind, self.clone())
    }
}

impl StoreKey for (Name, Name) {
    fn new(namespace: &Name, name: &Name) -> (Name, Name) {
        (namespace.clone(), name.clone())
    }

    fn object_key(&self, kind: Kind) -> ObjectKey {
        ObjectKey { kind, namespace: self.0.clone(), name: self.1.clone() }
    }
}

impl StoreKey for ClaimKey {
    fn new(namespace: &Name, name: &Name) -> ClaimKey {
        ClaimKey { namespace: namespace.clone(), name: name.clone() }
    }

    fn object_key(&self, _: Kind) -> ObjectKey {
        self.clone().into()
    }
}

impl StoreKey for PodKey {
    fn new(namespace: &Name, name: &Name) -> PodKey {
        PodKey { namespace: namespace.clone(), name: name.clone() }
    }

    fn object_key(&self, _: Kind) -> ObjectKey {
        self.clone().into()
    }
}

/// A type of object that the cache stores.
pub(crate) trait Stored: PartialEq + Debug + Sized {
    type Key: StoreKey;
    fn meta(&self) -> &Meta;
    fn wrap(object: Arc<Self>) -> Object;

    fn store_key(&self) -> Self::Key {
        Self::Key::new(&self.meta().namespace, &self.meta().name)
    }
}

/// How an object changed: `before` and `after` differ in something that rules read.
pub(crate) struct Update<T> {
    pub before: Option<Arc<T>>,
    pub after: Option<Arc<T>>,
}

/// Where a state of an object was received from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A watch: ordered, and complete up to its version.
    Watch,
    /// A list that is no older than the watch: complete.
    List,
    /// The answer to a write or a live read: may be ahead of the watch, or behind it.
    Answer,
}

#[derive(Debug, Clone)]
pub(crate) struct ObjectStore<T: Stored> {
    /// What rules see: the assumed state of an object if it has one, else the last seen state.
    visible: ObjectMap<T::Key, Arc<T>>,
    /// The last seen states of objects with an assumed state: one entry per write in flight.
    seen: FxHashMap<T::Key, Option<Arc<T>>>,
    /// The version up to which the watch is complete.
    watched: u64,
}

impl<T: Stored> Default for ObjectStore<T> {
    fn default() -> Self {
        ObjectStore { visible: ObjectMap::default(), seen: FxHashMap::default(), watched: 0 }
    }
}

impl<T: Stored> ObjectStore<T> {
    pub fn get(&self, key: &T::Key) -> Option<&Arc<T>> {
        self.visible.get(key)
    }

    pub fn len(&self) -> usize {
        self.visible.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&T::Key, &Arc<T>)> {
        self.visible.iter()
    }

    /// The keys after one of them, or all, in order.
    pub fn keys_after(&self, after: Option<&T::Key>) -> impl Iterator<Item = &T::Key> {
        self.visible.keys_after(after)
    }

    /// What rules see, as it is now.
    pub fn entries(&self) -> Entries<T::Key, Arc<T>> {
        self.visible.entries()
    }

    pub fn is_assumed(&self, key: &T::Key) -> bool {
        self.seen.contains_key(key)
    }

    pub fn watched(&self) -> u64 {
        self.watched
    }

    /// Adds the objects to a digest: by key, UID and version, and assumed ones by their content.
    pub fn digest(&self, state: &mut impl Hasher) {
        let visible = self.visible.iter().map(|(key, object)| {
            let assumed = self.is_assumed(key).then(|| format!("{object:?}"));
            (key, &object.meta().uid, object.meta().version, assumed)
        });
        digest_unordered(visible, state);
        let seen = self.seen.iter();
        digest_unordered(seen.map(|(key, seen)| (key, seen.as_ref().map(|seen| seen.meta().version))), state);
        self.watched.hash(state);
    }

    /// Records that the watch is complete up to a version.
    pub fn watched_up_to(&mut self, version: u64) {
        self.watched = self.watched.max(version);
    }

    /// Takes what rules see as the last seen state, whatever was watched before.
    pub fn forget_history(&mut self) {
        self.seen.clear();
        self.watched = 0;
    }

    fn last_seen(&self, key: &T::Key) -> Option<&Arc<T>> {
        match self.seen.get(key) {
            Some(seen) => seen.as_ref(),
            None => self.visible.get(key),
        }
    }

    /// Whether a state is newer than the known one, or of an object that the watch has not reported
    /// yet. A late answer must not resurrect an object that the watch already reported as deleted.
    fn is_new(&self, key: &T::Key, object: &T, origin: Origin) -> bool {
        let version = object.meta().version;
        match self.last_seen(key) {
            // Version 0 could not be parsed, so it does not order anything.
            _ if version == 0 => true,
            Some(known) => version > known.meta().version,
            None => origin == Origin::List || version > self.watched,
        }
    }

    /// Stores a state of an object. Returns the change, if it is newer and differs for rules.
    pub fn observe(&mut self, key: T::Key, object: Arc<T>, origin: Origin) -> Option<Update<T>> {
        let is_new = self.is_new(&key, &object, origin);
        if origin == Origin::Watch {
            self.watched_up_to(object.meta().version);
        }
        if !is_new {
            return None;
        }
        let before = self.replace_seen(key, Some(object.clone()));
        let differs = before.as_ref().is_none_or(|before| **before != *object);
        differs.then_some(Update { before, after: Some(object) })
    }

    /// The version of an object that was last seen.
    pub fn seen_version(&self, key: &T::Key) -> Option<u64> {
        self.last_seen(key).map(|seen| seen.meta().version)
    }

    /// Removes an object that was deleted at a version, unless a later state of it was seen.
    pub fn remove(&mut self, key: &T::Key, version: u64) -> Option<Update<T>> {
        let known = self.last_seen(key)?;
        if version != 0 && version < known.meta().version {
            return None;
        }
        let before = self.replace_seen(key.clone(), None);
        Some(Update { before, after: None })
    }

    /// Replaces the last seen state, beneath the assumed state if there is one. Returns the old
    /// one.
    fn replace_seen(&mut self, key: T::Key, state: Option<Arc<T>>) -> Option<Arc<T>> {
        if let Some(seen) = self.seen.get_mut(&key) {
            return std::mem::replace(seen, state);
        }
        match state {
            Some(object) => self.visible.insert(key, object),
            None => self.visible.remove(&key),
        }
    }

    /// Shows an object as one of our writes will change it.
    pub fn assume(&mut self, key: T::Key, object: Arc<T>) {
        let seen = self.visible.insert(key.clone(), object);
        self.seen.entry(key).or_insert(seen);
    }

    /// Shows the last seen state of an object again; `false` when none was assumed.
    pub fn unassume(&mut self, key: &T::Key) -> bool {
        match self.seen.remove(key) {
            Some(Some(seen)) => self.visible.insert(key.clone(), seen).is_some(),
            Some(None) => self.visible.remove(key).is_some(),
            None => false,
        }
    }
}
