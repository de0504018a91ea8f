//! Rule sets: pure functions that the engine hosts.

use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_model::{Kind, ObjectKey};

use crate::{LiveReads, Verdict};

/// How often a rule set looks at everything again, just in case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResyncInterval {
    /// Many times an hour.
    Often,
    /// A few times a day.
    Rarely,
}

/// Who a rule set is, and what it looks at.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Its name in logs and metrics.
    pub name: &'static str,
    /// The component that its events name as their source.
    pub component: &'static str,
    /// How often it looks at everything again.
    pub tempo: ResyncInterval,
    /// The kinds of objects that it looks at: all of them must be known before it decides anything.
    pub sees: &'static [Kind],
    /// The kinds of objects that it decides about, each with the name of its queue in metrics. What comes first is decided about first.
    pub queues: &'static [(Kind, &'static str)],
}

impl Profile {
    /// The kinds of objects that it decides about.
    pub fn decides(&self) -> impl Iterator<Item = Kind> + use<> {
        self.queues.iter().map(|(kind, _)| *kind)
    }
}

/// A set of rules. No clock, no randomness, no memory of its own: the same knowledge gives the same verdict.
pub trait RuleSet {
    /// Who it is. It never changes.
    fn profile(&self) -> Profile;

    /// The policy by which the cache indexes volumes, claims and pods, if it reads those indices. All
    /// rule sets of an engine that have one have the same.
    fn index_policy(&self) -> Option<IndexPolicy> {
        None
    }

    /// What is to be done about a key, by what is known and what was found out live for it.
    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict;

    /// Wakes the keys whose verdict a change can change, and no others.
    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey));
}
