//! What was told already: an event that says nothing new is kept back.

use std::hash::{Hash, Hasher};

use bindery_rules_api::Event;
use rustc_hash::{FxHashMap, FxHasher};

use crate::progress::Work;

/// For each key, a digest of what was last told about it.
#[derive(Debug, Default)]
pub(crate) struct PublishedEvents(FxHashMap<Work, u64>);

impl PublishedEvents {
    /// Whether the events of a verdict say something that the last ones of the same key did not.
    pub fn is_new(&self, work: &Work, events: &[Event]) -> bool {
        self.0.get(work) != Some(&digest(events))
    }

    /// Remembers the events of a verdict as the last ones of their key.
    pub fn note(&mut self, work: &Work, events: &[Event]) {
        self.0.insert(work.clone(), digest(events));
    }

    /// Forgets what was told about a key: what it was about is over.
    pub fn forget(&mut self, work: &Work) {
        self.0.remove(work);
    }
}

fn digest(events: &[Event]) -> u64 {
    let mut digest = FxHasher::default();
    for notice in events {
        (&notice.about, &notice.meta.uid, notice.reason, &notice.message).hash(&mut digest);
    }
    digest.finish()
}
