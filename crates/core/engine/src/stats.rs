//! The engine's counters.

use std::time::Duration;

use bindery_rules_api::Rule;
use rustc_hash::FxHashMap;

/// Counters since the engine was created.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Verdicts and steps by rule.
    pub by_rule: FxHashMap<&'static str, u64>,
    /// Keys woken by a change.
    pub wakes: u64,
    /// Keys for which a resync found something to do, which a wake should have found.
    pub resync_finds: u64,
    /// Resyncs.
    pub resyncs: u64,
    /// Requests sent.
    pub sent: u64,
    /// Requests that failed.
    pub rejected: u64,
    /// Requests that failed, by HTTP status (0: no response) and step.
    pub rejections: FxHashMap<(u16, &'static str), u64>,
    /// Successful writes by step.
    pub written: FxHashMap<&'static str, u64>,
    /// Failed writes by step.
    pub write_failures: FxHashMap<&'static str, u64>,
    /// Events suppressed because they repeated the last ones.
    pub events_suppressed: u64,
}

impl Stats {
    pub(crate) fn count(&mut self, rule: &'static Rule) {
        *self.by_rule.entry(rule.name).or_default() += 1;
    }

    pub(crate) fn count_rejection(&mut self, status: u16, step: &'static str) {
        self.rejected += 1;
        *self.rejections.entry((status, step)).or_default() += 1;
    }

    pub(crate) fn count_write(&mut self, step: &'static Rule, succeeded: bool) {
        let counts = if succeeded { &mut self.written } else { &mut self.write_failures };
        *counts.entry(step.name).or_default() += 1;
    }
}

/// Counters of a queue: the keys of one rule set and kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Queue {
    /// Keys enqueued.
    pub adds: u64,
    /// Keys enqueued after a failure.
    pub retries: u64,
    /// Time from being enqueued to the first decision.
    pub waited: Histogram,
    /// Time from the first decision to being idle.
    pub worked: Histogram,
}

/// A histogram of durations with a bucket per order of magnitude.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Durations up to 10 ns, 100 ns, and so on up to 10 s, not cumulative. Longer ones are only in
    /// `count`.
    pub buckets: [u64; 10],
    /// The number of durations.
    pub count: u64,
    /// The sum.
    pub sum: Duration,
}

impl Histogram {
    /// The upper bounds of the buckets in seconds.
    pub const BOUNDS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

    pub(crate) fn record(&mut self, duration: Duration) {
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
    fn durations_are_counted_by_order_of_magnitude() {
        let mut histogram = Histogram::default();
        for nanos in [0, 10, 11, 1_000_000, 10_000_000_000, 10_000_000_001] {
            histogram.record(Duration::from_nanos(nanos));
        }
        assert_eq!(histogram.buckets, [2, 1, 0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(histogram.count, 6);
        assert_eq!(histogram.sum, Duration::from_nanos(20_001_000_022));
    }
}
