//! How long to wait before trying again.

use std::time::Duration;

use bindery_rules_api::Backoff;

use crate::Config;

/// The wait after so many failures in a row: doubling, up to a cap.
pub(crate) fn delay(config: &Config, pace: Backoff, failures: u32) -> Duration {
    let (first, cap) = match pace {
        // An API server that says no may say yes in a moment.
        Backoff::Api => (Duration::from_millis(5), Duration::from_secs(60)),
        // As upstream's executor of operations.
        Backoff::Operation => (Duration::from_millis(500), Duration::from_secs(122)),
        Backoff::Storage => (config.storage_retry, config.storage_retry_max),
        Backoff::Hopeless => (config.hopeless_retry, config.hopeless_retry),
    };
    let doublings = failures.saturating_sub(1).min(31);
    first.saturating_mul(1 << doublings).min(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_a_cap() {
        let seconds = |pace, failures| delay(&Config::default(), pace, failures).as_secs_f64();
        assert_eq!([1, 2, 3, 4].map(|n| seconds(Backoff::Api, n)), [0.005, 0.01, 0.02, 0.04]);
        assert_eq!([1, 2, 3].map(|n| seconds(Backoff::Operation, n)), [0.5, 1.0, 2.0]);
        assert_eq!(seconds(Backoff::Api, u32::MAX), 60.0);
        assert_eq!(seconds(Backoff::Operation, 1000), 122.0);
        assert_eq!([1, 2, 3, 10].map(|n| seconds(Backoff::Storage, n)), [1.0, 2.0, 4.0, 300.0]);
        assert_eq!([1, 9].map(|n| seconds(Backoff::Hopeless, n)), [300.0, 300.0]);
    }
}
