//! Limits and periods.

use std::time::Duration;

use bindery_rules_api::ResyncInterval;

/// How the engine is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many reads and writes may be under way at once. An API server answers a write in a few milliseconds, and serves
    /// some hundreds at a time before it queues them: more would only wait there.
    pub requests_max: usize,
    /// How many operations may be under way at once. They may take minutes, and use machines of their own.
    pub operations_max: usize,
    /// How long to wait after a storage has failed for the first time; the wait doubles.
    pub storage_retry: Duration,
    /// How long it becomes at most.
    pub storage_retry_max: Duration,
    /// How long to wait after a storage said that what it is asked for will never do.
    pub hopeless_retry: Duration,
    /// How often everything is looked at again, by the rule sets that do so often. A safety net: a counter tells whether it
    /// ever found anything.
    pub resync: Duration,
    /// How often by the others.
    pub resync_rarely: Duration,
}

/// As upstream's informers.
const HALF_A_DAY: Duration = Duration::from_secs(12 * 3600);

impl Config {
    /// How often a rule set looks at everything again.
    pub(crate) fn resync_of(&self, tempo: ResyncInterval) -> Duration {
        match tempo {
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
            storage_retry: Duration::from_secs(1),
            storage_retry_max: Duration::from_secs(300),
            hopeless_retry: Duration::from_secs(300),
            resync: Duration::from_secs(15),
            resync_rarely: HALF_A_DAY,
        }
    }
}
