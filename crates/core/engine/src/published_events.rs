//! The last published events of each key, to suppress repetitions.

use std::hash::{Hash, Hasher};

use bindery_model::hash::digest_unordered;
use bindery_rules_api::Event;
use rustc_hash::{FxHashMap, FxHasher};

use crate::queue::Work;

/// For each key, a digest of the last published events.
#[derive(Debug, Clone, Default)]
pub(crate) struct PublishedEvents(FxHashMap<Work, u64>);

impl PublishedEvents {
    /// Adds the digests of the last published events to another.
    pub fn digest(&self, state: &mut impl Hasher) {
        digest_unordered(&self.0, state);
    }

    /// Whether the events of a verdict differ from the last ones of the key.
    pub fn is_new(&self, work: &Work, events: &[Event]) -> bool {
        self.0.get(work) != Some(&digest(events))
    }

    /// Records the events of a verdict as the last ones of the key.
    pub fn note(&mut self, work: &Work, events: &[Event]) {
        self.0.insert(work.clone(), digest(events));
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes a key: the condition that its events reported is over.
    pub fn forget(&mut self, work: &Work) {
        self.0.remove(work);
    }
}

fn digest(events: &[Event]) -> u64 {
    let mut digest = FxHasher::default();
    for event in events {
        (&event.about, &event.meta.uid, event.reason, &event.message).hash(&mut digest);
    }
    digest.finish()
}
