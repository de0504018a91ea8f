//! Delays between retries.

use std::time::Duration;

use bindery_rules_api::Backoff;

use crate::Config;
use crate::gate::fraction;
use crate::queue::Work;

/// The delay after consecutive failures: it doubles up to a maximum. With a seed for jitter it is
/// up to a quarter shorter: the same for the same key and number of failures, and evenly
/// distributed over keys.
pub(crate) fn delay(config: &Config, backoff: Backoff, failures: u32, work: &Work) -> Duration {
    let delay = exact_delay(config, backoff, failures);
    match config.jitter_seed {
        Some(seed) => delay - fraction(delay / 4, (seed, work, failures)),
        None => delay,
    }
}

fn exact_delay(config: &Config, backoff: Backoff, failures: u32) -> Duration {
    let (first, max) = match backoff {
        // As client-go's rate limiter: a rejected request may succeed soon.
        Backoff::Api => (Duration::from_millis(5), Duration::from_secs(60)),
        // As upstream's goroutinemap with exponential back-off.
        Backoff::Operation => (Duration::from_millis(500), Duration::from_secs(122)),
        Backoff::Storage => (config.storage_retry, config.storage_retry_max),
        Backoff::Infeasible => (config.infeasible_retry, config.infeasible_retry),
    };
    let doublings = failures.saturating_sub(1).min(31);
    first.saturating_mul(1 << doublings).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_a_maximum() {
        let seconds = |backoff, failures| exact_delay(&Config::default(), backoff, failures).as_secs_f64();
        assert_eq!([1, 2, 3, 4].map(|n| seconds(Backoff::Api, n)), [0.005, 0.01, 0.02, 0.04]);
        assert_eq!([1, 2, 3].map(|n| seconds(Backoff::Operation, n)), [0.5, 1.0, 2.0]);
        assert_eq!(seconds(Backoff::Api, u32::MAX), 60.0);
        assert_eq!(seconds(Backoff::Operation, 1000), 122.0);
        assert_eq!([1, 2, 3, 10].map(|n| seconds(Backoff::Storage, n)), [1.0, 2.0, 4.0, 300.0]);
        assert_eq!([1, 9].map(|n| seconds(Backoff::Infeasible, n)), [300.0, 300.0]);
    }
    #[test]
    fn jitter_shortens_delays_by_up_to_a_quarter_and_spreads_keys() {
        let config = Config { jitter_seed: Some(7), ..Config::default() };
        let second = Duration::from_secs(1);
        let of = |n: u32| {
            let key = bindery_model::ObjectKey::volume(format!("v{n}").as_str());
            delay(&config, Backoff::Storage, 1, &Work { set: 0, key })
        };
        let delays: Vec<Duration> = (0..100).map(of).collect();
        assert!(delays.iter().all(|delay| *delay > second * 3 / 4 && *delay <= second), "{delays:?}");
        let quarters = |from: u32| delays.iter().filter(|delay| delay.as_millis() as u32 / 63 == from).count();
        assert!((12..=15).all(|part| quarters(part) > 10), "they are spread evenly: {delays:?}");
        assert_eq!(delays, (0..100).map(of).collect::<Vec<_>>(), "the same input gives the same delay");
    }
}
