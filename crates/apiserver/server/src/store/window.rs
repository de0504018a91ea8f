//! A window of history: the latest changes of one kind.

use super::{Change, Stored, TooOld};
use jiff::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The latest changes, oldest first.
#[derive(Debug, Default)]
pub(super) struct Window {
    changes: VecDeque<(Timestamp, Change)>,
    /// Changes up to this revision are not, or no longer, held.
    floor: u64,
    bytes: usize,
}

impl Window {
    /// A window that opens after a revision.
    pub fn from(floor: u64) -> Self {
        Self { floor, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Bytes of objects that only history holds on to.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn oldest_at(&self) -> Option<Timestamp> {
        self.changes.front().map(|(at, _)| *at)
    }

    /// Keeps a change; answers how many bytes it holds on to.
    pub fn push(&mut self, change: Change, now: Timestamp) -> usize {
        let weight = weight(&change);
        self.bytes += weight;
        self.changes.push_back((now, change));
        weight
    }

    /// Lets go of the oldest change; answers how many bytes it held on to.
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

    pub fn after(&self, after: u64, until: u64, limit: usize) -> Result<Vec<Change>, TooOld> {
        if after < self.floor {
            return Err(TooOld(self.floor));
        }
        let first = self.changes.partition_point(|(_, change)| change.revision <= after);
        let changes = self.changes.range(first..).map(|(_, change)| change);
        Ok(changes.take_while(|change| change.revision <= until).take(limit).cloned().collect())
    }

    /// What was at a revision in the place of everything that changed since.
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

fn weight(change: &Change) -> usize {
    let before = change.before.as_ref().map_or(0, |before| before.bytes.len());
    before + if change.deleted { change.after.bytes.len() } else { 0 } + size_of::<Change>()
}
