//! A window of history: the latest changes of one kind.

use super::{HistoryEntry, Stored, TooOld};
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The latest changes, oldest first.
#[derive(Debug, Default)]
pub(super) struct Window {
    changes: VecDeque<(Timestamp, HistoryEntry)>,
    /// Changes up to this revision are not available.
    floor: u64,
    bytes: usize,
}

impl Window {
    /// A window that starts after a revision.
    pub fn from(floor: u64) -> Self {
        Self { floor, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// The bytes of objects that only history references.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn oldest_at(&self) -> Option<Timestamp> {
        self.changes.front().map(|(at, _)| *at)
    }

    /// Adds a change; returns the bytes that it keeps alive.
    pub fn push(&mut self, change: HistoryEntry, now: Timestamp) -> usize {
        let weight = weight(&change);
        self.bytes += weight;
        self.changes.push_back((now, change));
        weight
    }

    /// Drops the oldest change; returns the bytes that it kept alive.
    pub fn drop_oldest(&mut self) -> usize {
        let Some((_, change)) = self.changes.pop_front() else { return 0 };
        self.floor = change.revision;
        let weight = weight(&change);
        self.bytes -= weight;
        if self.changes.capacity() > 1024 && self.changes.len() * 4 < self.changes.capacity() {
            self.changes.shrink_to(self.changes.len() * 2);
        }
        weight
    }

    pub fn after(&self, after: u64, until: u64, limit: usize) -> Result<Vec<HistoryEntry>, TooOld> {
        if after < self.floor {
            return Err(TooOld(self.floor));
        }
        let first = self.changes.partition_point(|(_, change)| change.revision <= after);
        let changes = self.changes.range(first..).map(|(_, change)| change);
        Ok(changes.take_while(|change| change.revision <= until).take(limit).cloned().collect())
    }

    /// For everything that changed after a revision, its state at that revision.
    pub fn replaced_since(&self, at: u64) -> Result<BTreeMap<Arc<str>, Option<Arc<Stored>>>, TooOld> {
        if at < self.floor {
            return Err(TooOld(self.floor));
        }
        let first = self.changes.partition_point(|(_, change)| change.revision <= at);
        let mut replaced = BTreeMap::new();
        for (_, change) in self.changes.range(first..) {
            replaced.entry(Arc::clone(&change.key)).or_insert_with(|| change.before.clone());
        }
        Ok(replaced)
    }
}

fn weight(change: &HistoryEntry) -> usize {
    let before = change.before.as_ref().map_or(0, |before| before.bytes.len());
    before + if change.deleted { change.after.bytes.len() } else { 0 } + size_of::<HistoryEntry>()
}
