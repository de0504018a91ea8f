//! The store: all objects as encoded bytes, one global revision, and a window of history.
//!
//! What was written is kept as it is served. Replaced versions live on in history alone, and share their bytes with whoever still reads them.

mod encoding;
mod window;

pub use encoding::{encode, encode_draft, item, with_revision};

use crate::api::Settings;
use bytes::Bytes;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use window::Window;

/// Objects by space (the plural under which they are stored) and key.
#[derive(Debug)]
pub struct Store {
    settings: Settings,
    revision: u64,
    /// The revision that it began with: whatever was before is nobody's to know.
    began: u64,
    spaces: BTreeMap<&'static str, Space>,
    replaced_bytes: usize,
    records: Vec<Record>,
}

#[derive(Debug, Default)]
struct Space {
    objects: BTreeMap<Arc<str>, Arc<Stored>>,
    window: Window,
}

/// One object, as stored: its bytes, and the little of it that is asked for without decoding them.
#[derive(Debug)]
pub struct Stored {
    /// The revision of its last change: its `resourceVersion`.
    pub revision: u64,
    /// `{"kind":…,"apiVersion":…,"metadata":{"resourceVersion":"…",…` in this order, ready to be served.
    pub bytes: Bytes,
    /// Its UID.
    pub uid: Box<str>,
    /// Its labels, by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The UIDs of its owners.
    pub owners: Box<[Box<str>]>,
    /// Whether its next update is kept even if it changes nothing.
    pub is_draft: bool,
}

/// One change, as history keeps it.
#[derive(Debug, Clone)]
pub struct Change {
    /// When it was made.
    pub revision: u64,
    /// `namespace/name`, or `name`.
    pub key: Arc<str>,
    /// What it was before; none if it was made.
    pub before: Option<Arc<Stored>>,
    /// What it is now; for a deletion what it was last, with the revision of the deletion.
    pub after: Arc<Stored>,
    /// Whether it is gone.
    pub deleted: bool,
}

/// One change, as it is to be persisted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When it was made: records of one commit, and of several, are in this order.
    pub revision: u64,
    /// Where it is stored: the plural of its kind.
    pub space: &'static str,
    /// `namespace/name`, or `name`.
    pub key: Arc<str>,
    /// The object; none if it is gone.
    pub value: Option<Bytes>,
}

/// The revision asked for is no longer held; the oldest that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooOld(pub u64);

impl Store {
    /// An empty store at a revision.
    pub fn new(settings: Settings, revision: u64) -> Self {
        Self { settings, revision, began: revision, spaces: BTreeMap::new(), replaced_bytes: 0, records: Vec::new() }
    }

    /// How it was set up.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Takes in an object that was persisted. Only before anything else is done.
    pub fn restore(&mut self, space: &'static str, key: Arc<str>, object: Arc<Stored>) {
        let revision = self.revision;
        let space = self.spaces.entry(space).or_insert_with(|| Space::at(revision));
        space.objects.insert(key, object);
    }

    /// An object as it is now.
    pub fn get(&self, space: &str, key: &str) -> Option<&Arc<Stored>> {
        self.spaces.get(space)?.objects.get(key)
    }

    /// How many objects there are.
    pub fn count(&self, space: &str) -> usize {
        self.spaces.get(space).map_or(0, |space| space.objects.len())
    }

    /// Puts an object in place of what is there. The object's own revision must be the next.
    pub fn put(&mut self, space: &'static str, key: &str, object: Stored, now: Timestamp) -> Arc<Stored> {
        assert_eq!(object.revision, self.revision + 1, "revisions are given out one by one");
        let object = Arc::new(object);
        // Who has waited for the first object of a kind since the beginning has missed nothing.
        let began = self.began;
        let room = self.spaces.entry(space).or_insert_with(|| Space::at(began));
        let key = match room.objects.get_key_value(key) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::from(key),
        };
        let before = room.objects.insert(Arc::clone(&key), Arc::clone(&object));
        let value = Some(object.bytes.clone());
        self.log(
            space,
            Change { revision: object.revision, key, before, after: Arc::clone(&object), deleted: false },
            value,
            now,
        );
        object
    }

    /// Takes an object away. `last` is what it was last, with the next revision.
    pub fn remove(&mut self, space: &'static str, key: &str, last: Stored, now: Timestamp) -> Arc<Stored> {
        assert_eq!(last.revision, self.revision + 1, "revisions are given out one by one");
        let last = Arc::new(last);
        let room = self.spaces.get_mut(space).expect("what is removed is there");
        let (key, before) = room.objects.remove_entry(key).expect("what is removed is there");
        let change =
            Change { revision: last.revision, key, before: Some(before), after: Arc::clone(&last), deleted: true };
        self.log(space, change, None, now);
        last
    }

    fn log(&mut self, space: &'static str, change: Change, value: Option<Bytes>, now: Timestamp) {
        self.revision = change.revision;
        if self.settings.journal {
            self.records.push(Record { revision: change.revision, space, key: Arc::clone(&change.key), value });
        }
        let room = self.spaces.get_mut(space).expect("something was just done there");
        self.replaced_bytes += room.window.push(change, now);
        while room.window.len() > self.settings.history_changes {
            self.replaced_bytes -= room.window.drop_oldest();
        }
        while self.replaced_bytes > self.settings.history_bytes {
            // Memory is bounded for all kinds together, so the kind with the most of it gives way.
            let Some(largest) = self.spaces.values_mut().max_by_key(|space| space.window.bytes()) else { break };
            self.replaced_bytes -= largest.window.drop_oldest();
        }
    }

    /// Lets go of history that is older than it has to be. Answers when there will be some again.
    pub fn compact(&mut self, now: Timestamp) -> Option<Timestamp> {
        let kept = jiff::SignedDuration::from_secs(i64::from(self.settings.history_seconds));
        let mut due: Option<Timestamp> = None;
        for space in self.spaces.values_mut() {
            while space.window.oldest_at().is_some_and(|at| at + kept <= now) {
                self.replaced_bytes -= space.window.drop_oldest();
            }
            if let Some(at) = space.window.oldest_at() {
                due = Some(due.map_or(at + kept, |due| due.min(at + kept)));
            }
        }
        due
    }

    /// Changes of a kind after a revision, and not after `until`, at most `limit` of them.
    pub fn changes_after(&self, space: &str, after: u64, until: u64, limit: usize) -> Result<Vec<Change>, TooOld> {
        match self.spaces.get(space) {
            Some(space) => space.window.after(after, until, limit),
            None if after < self.began => Err(TooOld(self.began)),
            None => Ok(Vec::new()),
        }
    }

    /// Objects whose key begins with `prefix` and is not before `start`, in order of their keys, as they were at a revision (now, if none).
    pub fn list<'a>(
        &'a self,
        space: &str,
        prefix: &'a str,
        start: &str,
        at: Option<u64>,
    ) -> Result<Listing<'a>, TooOld> {
        let Some(space) = self.spaces.get(space) else {
            let is_known = at.is_none_or(|at| at >= self.began);
            return if is_known { Ok(Box::new(std::iter::empty())) } else { Err(TooOld(self.began)) };
        };
        let from = if start > prefix { start } else { prefix };
        let current = space
            .objects
            .range::<str, _>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix));
        let current = current.map(|(key, object)| (Arc::clone(key), Arc::clone(object)));
        let Some(at) = at.filter(|at| *at < self.revision) else { return Ok(Box::new(current)) };
        let replaced = space.window.replaced_since(at)?;
        let mut then: BTreeMap<Arc<str>, Arc<Stored>> = current.collect();
        for (key, before) in replaced {
            if &*key < from || !key.starts_with(prefix) {
                continue;
            }
            match before {
                Some(before) => then.insert(key, before),
                None => then.remove(&key),
            };
        }
        Ok(Box::new(then.into_iter()))
    }

    /// All objects of a kind, without their history.
    pub fn all(&self, space: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<Stored>)> {
        self.spaces.get(space).into_iter().flat_map(|space| space.objects.iter())
    }

    /// What was written since this was last asked, in order. Empty unless a journal is kept.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }
}

/// Objects with their keys, in order.
pub type Listing<'a> = Box<dyn Iterator<Item = (Arc<str>, Arc<Stored>)> + 'a>;

impl Space {
    /// A space of which nothing is known before a revision.
    fn at(revision: u64) -> Self {
        Self { objects: BTreeMap::new(), window: Window::from(revision) }
    }
}

#[cfg(test)]
mod tests;
