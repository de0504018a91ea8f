//! The store: all objects as encoded bytes, one global revision, and a window of history.
//!
//! Objects are stored as they are served. Replaced versions exist only in history, and share their
//! bytes with readers.

mod encoding;
mod window;

pub use encoding::{encode, encode_draft, item, with_revision};

use crate::api::Settings;
use bytes::Bytes;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use window::Window;

/// Objects by bucket (the plural under which they are stored) and key.
#[derive(Debug)]
pub struct Store {
    settings: Settings,
    revision: u64,
    /// The revision at the start; earlier changes are unknown.
    initial_revision: u64,
    buckets: BTreeMap<&'static str, Bucket>,
    replaced_bytes: usize,
    /// The size of all objects.
    bytes: usize,
    records: Vec<JournalRecord>,
}

/// How many entries of history are dropped while the store is locked.
const COMPACTED_PER_RUN: usize = 10_000;

#[derive(Debug, Default)]
struct Bucket {
    objects: BTreeMap<Arc<str>, Arc<Stored>>,
    window: Window,
}

/// A stored object: its bytes, and the parts that are needed without decoding them.
#[derive(Debug)]
pub struct Stored {
    /// The revision of its last change: its `resourceVersion`.
    pub revision: u64,
    /// `{"kind":…,"apiVersion":…,"metadata":{"resourceVersion":"…",…` in this order, as served.
    pub bytes: Bytes,
    /// Its UID.
    pub uid: Box<str>,
    /// Its labels, by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// The UIDs of its owners.
    pub owners: Box<[Box<str>]>,
    /// Whether its next update is stored even if it changes nothing.
    pub is_draft: bool,
}

/// A change, as kept in history.
#[derive(Debug, Clone)]
pub struct HistoryEntry {
    /// The revision of the change.
    pub revision: u64,
    /// `namespace/name`, or `name`.
    pub key: Arc<str>,
    /// The object before the change; `None` if it was created.
    pub before: Option<Arc<Stored>>,
    /// The object after the change; for a deletion its last state, with the revision of the
    /// deletion.
    pub after: Arc<Stored>,
    /// Whether it was deleted.
    pub deleted: bool,
}

/// A change to be persisted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRecord {
    /// The revision of the change; records are in this order.
    pub revision: u64,
    /// The bucket of the object.
    pub bucket: &'static str,
    /// `namespace/name`, or `name`.
    pub key: Arc<str>,
    /// The object; `None` if it was deleted.
    pub value: Option<Bytes>,
}

/// The requested revision is no longer in history. Contains the oldest one that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooOld(pub u64);

impl Store {
    /// An empty store at a revision.
    pub fn new(settings: Settings, revision: u64) -> Self {
        Self {
            settings,
            revision,
            initial_revision: revision,
            buckets: BTreeMap::new(),
            replaced_bytes: 0,
            bytes: 0,
            records: Vec::new(),
        }
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Adds a persisted object. Only before any other change.
    pub fn restore(&mut self, bucket: &'static str, key: Arc<str>, object: Arc<Stored>) {
        let revision = self.revision;
        let bucket = self.buckets.entry(bucket).or_insert_with(|| Bucket::at(revision));
        self.bytes += object.size();
        let before = bucket.objects.insert(key, object);
        self.bytes -= before.map_or(0, |before| before.size());
    }

    /// The size of all objects, without history.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of objects in each bucket.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.buckets.iter().map(|(name, bucket)| (*name, bucket.objects.len()))
    }

    /// All objects with their buckets and keys.
    pub fn everything(&self) -> impl Iterator<Item = (&'static str, &Arc<str>, &Arc<Stored>)> {
        let buckets = self.buckets.iter();
        buckets.flat_map(|(name, bucket)| bucket.objects.iter().map(|(key, object)| (*name, key, object)))
    }

    /// The current state of an object.
    pub fn get(&self, bucket: &str, key: &str) -> Option<&Arc<Stored>> {
        self.buckets.get(bucket)?.objects.get(key)
    }

    /// Creates or replaces an object, whose revision must be the next one.
    pub fn put(&mut self, bucket: &'static str, key: &str, object: Stored, now: Timestamp) -> Arc<Stored> {
        assert_eq!(object.revision, self.revision + 1, "revisions are consecutive");
        let object = Arc::new(object);
        // A watch that started before the first object of a kind has missed nothing.
        let initial_revision = self.initial_revision;
        let contents = self.buckets.entry(bucket).or_insert_with(|| Bucket::at(initial_revision));
        let key = match contents.objects.get_key_value(key) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::from(key),
        };
        let before = contents.objects.insert(Arc::clone(&key), Arc::clone(&object));
        self.bytes += object.size();
        self.bytes -= before.as_ref().map_or(0, |before| before.size());
        let value = Some(object.bytes.clone());
        self.log(
            bucket,
            HistoryEntry { revision: object.revision, key, before, after: Arc::clone(&object), deleted: false },
            value,
            now,
        );
        object
    }

    /// Deletes an object. `last` is its last state, with the next revision.
    pub fn remove(&mut self, bucket: &'static str, key: &str, last: Stored, now: Timestamp) -> Arc<Stored> {
        assert_eq!(last.revision, self.revision + 1, "revisions are consecutive");
        let last = Arc::new(last);
        let contents = self.buckets.get_mut(bucket).expect("the deleted object exists");
        let (key, before) = contents.objects.remove_entry(key).expect("the deleted object exists");
        self.bytes -= before.size();
        let change = HistoryEntry {
            revision: last.revision,
            key,
            before: Some(before),
            after: Arc::clone(&last),
            deleted: true,
        };
        self.log(bucket, change, None, now);
        last
    }

    fn log(&mut self, bucket: &'static str, change: HistoryEntry, value: Option<Bytes>, now: Timestamp) {
        self.revision = change.revision;
        if self.settings.journal {
            self.records.push(JournalRecord { revision: change.revision, bucket, key: Arc::clone(&change.key), value });
        }
        let contents = self.buckets.get_mut(bucket).expect("the bucket was just changed");
        self.replaced_bytes += contents.window.push(change, now);
        while contents.window.len() > self.settings.history_changes {
            self.replaced_bytes -= contents.window.drop_oldest();
        }
        while self.replaced_bytes > self.settings.history_bytes {
            // Memory is limited for all kinds together, so the kind that uses most is trimmed.
            let Some(largest) = self.buckets.values_mut().max_by_key(|bucket| bucket.window.bytes()) else { break };
            self.replaced_bytes -= largest.window.drop_oldest();
        }
    }

    /// Drops history that is older than required, as much as fits into one run. Returns when the
    /// next entry expires.
    pub fn compact(&mut self, now: Timestamp) -> Option<Timestamp> {
        let kept = jiff::SignedDuration::from_secs(i64::from(self.settings.history_seconds));
        let mut due: Option<Timestamp> = None;
        let mut dropped = 0;
        for bucket in self.buckets.values_mut() {
            while dropped < COMPACTED_PER_RUN && bucket.window.oldest_at().is_some_and(|at| at + kept <= now) {
                self.replaced_bytes -= bucket.window.drop_oldest();
                dropped += 1;
            }
            if let Some(at) = bucket.window.oldest_at() {
                due = Some(due.map_or(at + kept, |due| due.min(at + kept)));
            }
        }
        due
    }

    /// Up to `limit` changes of a kind after a revision, up to the revision `until`.
    pub fn changes_after(
        &self,
        bucket: &str,
        after: u64,
        until: u64,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, TooOld> {
        match self.buckets.get(bucket) {
            Some(bucket) => bucket.window.after(after, until, limit),
            None if after < self.initial_revision => Err(TooOld(self.initial_revision)),
            None => Ok(Vec::new()),
        }
    }

    /// Objects whose key starts with `prefix` and is not before `start`, sorted by key, at a
    /// revision (`None`: the latest).
    pub fn list<'a>(
        &'a self,
        bucket: &str,
        prefix: &'a str,
        start: &str,
        at: Option<u64>,
    ) -> Result<Listing<'a>, TooOld> {
        let Some(bucket) = self.buckets.get(bucket) else {
            let is_known = at.is_none_or(|at| at >= self.initial_revision);
            return if is_known { Ok(Box::new(std::iter::empty())) } else { Err(TooOld(self.initial_revision)) };
        };
        let from = if start > prefix { start } else { prefix };
        let current = bucket
            .objects
            .range::<str, _>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix));
        let current = current.map(|(key, object)| (Arc::clone(key), Arc::clone(object)));
        let Some(at) = at.filter(|at| *at < self.revision) else { return Ok(Box::new(current)) };
        let replaced = bucket.window.replaced_since(at)?;
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
    pub fn all(&self, bucket: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<Stored>)> {
        self.buckets.get(bucket).into_iter().flat_map(|bucket| bucket.objects.iter())
    }

    /// The changes since the last call, in order. Empty unless the journal is enabled.
    pub fn take_records(&mut self) -> Vec<JournalRecord> {
        std::mem::take(&mut self.records)
    }
}

impl Stored {
    /// What it counts towards the size of the store.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Objects with their keys, in order.
pub type Listing<'a> = Box<dyn Iterator<Item = (Arc<str>, Arc<Stored>)> + 'a>;

impl Bucket {
    /// An empty bucket without history before a revision.
    fn at(revision: u64) -> Self {
        Self { objects: BTreeMap::new(), window: Window::from(revision) }
    }
}

#[cfg(test)]
mod tests;
