//! Limits and periods.

use std::time::Duration;

/// How the engine is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// How many reads and writes may be under way at once. An API server answers a write in a few milliseconds, and serves
    /// some hundreds at a time before it queues them: more would only wait there.
    pub requests_max: usize,
    /// How many operations may be under way at once. They may take minutes, and use machines of their own.
    pub operations_max: usize,
    /// How often everything is looked at again. A safety net: a counter tells whether it ever found anything.
    pub resync: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config { requests_max: 256, operations_max: 32, resync: Duration::from_secs(15) }
    }
}
