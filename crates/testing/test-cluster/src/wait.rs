//! Waiting for conditions.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a test waits for a condition. Long enough for a slow, busy machine, because it costs
/// nothing if the test passes.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// The same as a flag of `kubectl wait` and `kubectl delete`.
pub const KUBECTL_TIMEOUT: &str = "--timeout=300s";

/// Polls a condition; returns whether it became true within [`TIMEOUT`].
pub fn wait_until(mut condition: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if started.elapsed() > TIMEOUT {
            return false;
        }
        sleep(Duration::from_millis(100));
    }
}

/// Polls a condition until it is true.
///
/// # Panics
///
/// If it is not true within [`TIMEOUT`].
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    assert!(wait_until(condition), "timeout after {TIMEOUT:?}: expected that {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_has_the_same_timeout() {
        assert_eq!(KUBECTL_TIMEOUT, format!("--timeout={}s", TIMEOUT.as_secs()));
    }
}
