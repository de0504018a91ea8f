//! Objects of one kind: as they were seen, and as our unanswered writes will make them.

use std::hash::Hash;
use std::sync::Arc;

use bindery_model::{Attachment, AttributesClass, Capacity, Claim, Class, CsiDriver, CsiNode, Meta, Node, Pod, Volume};
use rustc_hash::FxHashMap;

/// An object that a shelf can hold: all that matters here is who it is.
pub(crate) trait Shelved: PartialEq {
    fn meta(&self) -> &Meta;
}

macro_rules! shelved {
    ($($kind:ty),*) => { $(impl Shelved for $kind { fn meta(&self) -> &Meta { &self.meta } })* };
}
shelved!(Claim, Volume, Class, AttributesClass, Pod, Node, CsiNode, CsiDriver, Capacity, Attachment);

/// What became of an object that was seen: `before` and `after` differ in something that rules read.
pub(crate) struct Seen<T> {
    pub before: Option<Arc<T>>,
    pub after: Option<Arc<T>>,
}

/// Where word of an object came from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A watch: in order, and complete up to its version.
    Watch,
    /// A list that is no older than the watch: it shows all that there is.
    List,
    /// The answer to a write or a live read: may be ahead of the watch, or behind it.
    Answer,
}

#[derive(Debug)]
pub(crate) struct ObjectStore<K, T> {
    /// What rules are shown: the overlay where there is one, else what was seen.
    shown: FxHashMap<K, Arc<T>>,
    /// What was seen of objects that have an overlay. Small: one entry for each write in flight.
    beneath: FxHashMap<K, Option<Arc<T>>>,
    /// Everything up to this version was told by the watch.
    watched: u64,
}

impl<K, T> Default for ObjectStore<K, T> {
    fn default() -> Self {
        ObjectStore { shown: FxHashMap::default(), beneath: FxHashMap::default(), watched: 0 }
    }
}

impl<K: Hash + Eq + Clone, T: Shelved> ObjectStore<K, T> {
    pub fn get(&self, key: &K) -> Option<&Arc<T>> {
        self.shown.get(key)
    }

    pub fn len(&self) -> usize {
        self.shown.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &Arc<T>)> {
        self.shown.iter()
    }

    pub fn is_assumed(&self, key: &K) -> bool {
        self.beneath.contains_key(key)
    }

    pub fn watched(&self) -> u64 {
        self.watched
    }

    /// Notes that the watch is complete up to a version.
    pub fn watched_up_to(&mut self, version: u64) {
        self.watched = self.watched.max(version);
    }

    fn seen(&self, key: &K) -> Option<&Arc<T>> {
        match self.beneath.get(key) {
            Some(seen) => seen.as_ref(),
            None => self.shown.get(key),
        }
    }

    /// Whether an object is news: a later state than the one known, or an object that the watch has yet to tell of.
    /// A late answer must not bring back what the watch has already shown to be gone.
    fn is_new(&self, key: &K, object: &T, origin: Origin) -> bool {
        let version = object.meta().version;
        match self.seen(key) {
            // A version that could not be read is 0, and orders nothing: take the object as it comes.
            _ if version == 0 => true,
            Some(known) => version > known.meta().version,
            None => origin == Origin::List || version > self.watched,
        }
    }

    /// Takes in an object. Says what changed, if it is news and rules could tell.
    pub fn observe(&mut self, key: K, object: Arc<T>, origin: Origin) -> Option<Seen<T>> {
        let is_new = self.is_new(&key, &object, origin);
        if origin == Origin::Watch {
            self.watched_up_to(object.meta().version);
        }
        if !is_new {
            return None;
        }
        let before = self.place(key, Some(object.clone()));
        let differs = before.as_ref().is_none_or(|before| **before != *object);
        differs.then_some(Seen { before, after: Some(object) })
    }

    /// The version of an object that was last seen, if it is known.
    pub fn seen_version(&self, key: &K) -> Option<u64> {
        self.seen(key).map(|seen| seen.meta().version)
    }

    /// Takes out an object that was seen to be gone at a version, unless it was seen later.
    pub fn remove(&mut self, key: &K, version: u64) -> Option<Seen<T>> {
        let known = self.seen(key)?;
        if version != 0 && version < known.meta().version {
            return None;
        }
        let before = self.place(key.clone(), None);
        Some(Seen { before, after: None })
    }

    /// Puts what was seen in its place, under the overlay if there is one. Returns what was seen before.
    fn place(&mut self, key: K, seen: Option<Arc<T>>) -> Option<Arc<T>> {
        if let Some(beneath) = self.beneath.get_mut(&key) {
            return std::mem::replace(beneath, seen);
        }
        match seen {
            Some(object) => self.shown.insert(key, object),
            None => self.shown.remove(&key),
        }
    }

    /// Shows an object as a write of ours will make it.
    pub fn assume(&mut self, key: K, object: Arc<T>) {
        let shown = self.shown.insert(key.clone(), object);
        self.beneath.entry(key).or_insert(shown);
    }

    /// Shows an object as it was seen again; `false` when it was never shown otherwise.
    pub fn settle(&mut self, key: &K) -> bool {
        match self.beneath.remove(key) {
            Some(Some(seen)) => self.shown.insert(key.clone(), seen).is_some(),
            Some(None) => self.shown.remove(key).is_some(),
            None => false,
        }
    }
}
