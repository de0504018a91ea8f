//! Rule sets: pure functions that the engine calls.

use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_model::{Kind, ObjectKey};

use crate::{LiveReads, Verdict};

/// How often a rule set is asked again about every key, as a safety net.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResyncInterval {
    /// Several times a minute.
    Often,
    /// Twice a day.
    Rarely,
}

/// A rule set's identity, the kinds it watches and the kinds it decides about.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// The name in logs and metrics.
    pub name: &'static str,
    /// The source component of its events.
    pub component: &'static str,
    /// How often every key is decided about again.
    pub resync: ResyncInterval,
    /// The kinds that it reads from the cache. All of them are listed before the first decision.
    pub watches: &'static [Kind],
    /// The kinds that it decides about, each with its queue's name in metrics. Earlier kinds are
    /// decided about first.
    pub queues: &'static [(Kind, &'static str)],
}

impl Profile {
    /// The kinds that it decides about.
    pub fn decides(&self) -> impl Iterator<Item = Kind> + use<> {
        self.queues.iter().map(|(kind, _)| *kind)
    }
}

/// A set of rules without clock, randomness or state: the same input gives the same verdict.
pub trait RuleSet: Sync {
    /// The profile. It never changes.
    fn profile(&self) -> Profile;

    /// The policy by which the cache indexes volumes, claims and pods, if it reads those indices.
    /// All rule sets of an engine that have one have the same.
    fn index_policy(&self) -> Option<IndexPolicy> {
        None
    }

    /// Whether it hands objects to other keys. Keys that are backed off or wait receive none.
    fn hands_off(&self) -> bool {
        false
    }

    /// Decides about a key, from the cache and the live reads for this key.
    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict;

    /// Wakes exactly the keys whose verdict a change can affect.
    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey));
}
