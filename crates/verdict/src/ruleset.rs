//! Rule sets: pure functions that the engine hosts.

use bindery_mirror::{Change, Mirror};
use bindery_volumes::{Kind, ObjectKey};

use crate::{Findings, Rule, Verdict};

/// How often a rule set looks at everything again, just in case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tempo {
    /// Many times an hour.
    Often,
    /// A few times a day.
    Rarely,
}

/// A set of rules. No clock, no randomness, no memory of its own: the same knowledge gives the same verdict.
pub trait RuleSet {
    /// Its name in logs and metrics.
    fn name(&self) -> &'static str;

    /// The component that its events name as their source.
    fn component(&self) -> &'static str;

    /// The name of its queue for a kind, in metrics.
    fn queue(&self, kind: Kind) -> &'static str;

    /// How often it looks at everything again.
    fn tempo(&self) -> Tempo;

    /// The kinds of objects that it looks at: all of them must be known before it decides anything.
    fn sees(&self) -> &'static [Kind];

    /// The kinds of objects that it decides about.
    fn decides(&self) -> &'static [Kind];

    /// Every rule that it knows.
    fn rules(&self) -> &'static [&'static Rule];

    /// What is to be done about a key, by what is known and what was found out live for it.
    fn decide(&self, known: &Mirror, key: &ObjectKey, findings: &Findings) -> Verdict;

    /// Wakes the keys whose verdict a change can change, and no others.
    fn wake(&self, known: &Mirror, change: &Change, wake: &mut dyn FnMut(ObjectKey));
}
