//! Limits and periods.

use std::time::Duration;

use bindery_rules_api::ResyncInterval;

/// The configuration of the engine.
#[derive(Debug, Clone)]
pub struct Config {
    /// The most reads, writes and lists in flight. An API server answers a write in a few
    /// milliseconds and serves some hundreds at a time; more would only wait in its queue. Fewer
    /// are sent while the API server is overloaded.
    pub requests_max: usize,
    /// The most operations in flight. They may take minutes and do not load the API server.
    pub operations_max: usize,
    /// The most decisions in one call of the engine. It decides for the whole cluster, so a call
    /// that takes long delays everything else. Most decisions take microseconds; use less where
    /// they take longer.
    pub decisions_max: usize,
    /// The delay after the first failure of a storage. It doubles with each failure.
    pub storage_retry: Duration,
    /// The maximum of that delay.
    pub storage_retry_max: Duration,
    /// The delay after a storage reported that a request is infeasible.
    pub infeasible_retry: Duration,
    /// A random number that spreads delays, so that several instances do not retry at the same
    /// time. Without one, delays are exact.
    pub jitter_seed: Option<u64>,
    /// The resync interval of rule sets with [`ResyncInterval::Often`]. Resyncs are a safety net; a
    /// counter shows whether they find anything.
    pub resync: Duration,
    /// The resync interval of all others.
    pub resync_rarely: Duration,
}

/// The resync period of upstream's informers.
const HALF_A_DAY: Duration = Duration::from_secs(12 * 3600);

impl Config {
    pub(crate) fn resync_interval(&self, interval: ResyncInterval) -> Duration {
        match interval {
            ResyncInterval::Often => self.resync,
            ResyncInterval::Rarely => self.resync_rarely,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            requests_max: 256,
            operations_max: 32,
            decisions_max: 256,
            storage_retry: Duration::from_secs(1),
            storage_retry_max: Duration::from_secs(300),
            infeasible_retry: Duration::from_secs(300),
            jitter_seed: None,
            resync: Duration::from_secs(15),
            resync_rarely: HALF_A_DAY,
        }
    }
}
