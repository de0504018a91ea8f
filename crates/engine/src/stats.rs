//! What the engine counts.

use bindery_verdict::Rule;
use rustc_hash::FxHashMap;

/// Counters since the engine was made, and sizes as they are.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Verdicts, and steps of requests, by rule.
    pub by_rule: FxHashMap<&'static str, u64>,
    /// Keys woken by a change.
    pub wakes: u64,
    /// Keys woken by a resync for which there was something to do: something had been missed.
    pub resync_finds: u64,
    /// Resyncs.
    pub resyncs: u64,
    /// Requests sent.
    pub sent: u64,
    /// Requests refused.
    pub refused: u64,
    /// Events kept back because they said nothing new.
    pub notices_kept_back: u64,
}

impl Stats {
    pub(crate) fn count(&mut self, rule: &'static Rule) {
        *self.by_rule.entry(rule.name).or_default() += 1;
    }
}
