//! What the engine counts.

use std::time::Duration;

use bindery_rules_api::Rule;
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
    /// How often a write was carried out, by its step.
    pub written: FxHashMap<&'static str, u64>,
    /// How often a write was refused, by its step.
    pub write_failures: FxHashMap<&'static str, u64>,
    /// Events kept back because they said nothing new.
    pub notices_kept_back: u64,
}

impl Stats {
    pub(crate) fn count(&mut self, rule: &'static Rule) {
        *self.by_rule.entry(rule.name).or_default() += 1;
    }

    pub(crate) fn count_write(&mut self, step: &'static Rule, succeeded: bool) {
        let counts = if succeeded { &mut self.written } else { &mut self.write_failures };
        *counts.entry(step.name).or_default() += 1;
    }
}

/// The keys of a rule set and a kind, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// Times that a key was put in the queue.
    pub adds: u64,
    /// Times that it was so after a failure.
    pub retries: u64,
    /// How long keys waited to be decided about.
    pub waited: Histogram,
    /// How long it took from there until they were at rest.
    pub worked: Histogram,
}

/// Durations, counted by their order of magnitude.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How many were at most 10 ns, 100 ns, and so on up to 10 s, each counted once; those above are only in `count`.
    pub buckets: [u64; 10],
    /// How many there were.
    pub count: u64,
    /// All together.
    pub sum: Duration,
}

impl Histogram {
    /// The largest duration of each bucket, in seconds.
    pub const BOUNDS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

    pub(crate) fn take_in(&mut self, duration: Duration) {
        self.count += 1;
        self.sum += duration;
        let mut bound = 10;
        for bucket in &mut self.buckets {
            if duration.as_nanos() <= bound {
                *bucket += 1;
                return;
            }
            bound *= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_by_their_order_of_magnitude() {
        let mut spread = Histogram::default();
        for nanos in [0, 10, 11, 1_000_000, 10_000_000_000, 10_000_000_001] {
            spread.take_in(Duration::from_nanos(nanos));
        }
        assert_eq!(spread.buckets, [2, 1, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(spread.count, 6);
        assert_eq!(spread.sum, Duration::from_nanos(20_001_000_022));
    }
}
