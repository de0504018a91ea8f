//! Waiting for what other programs bring about.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a test waits for what is to come. It costs nothing where all is well, so it is as long as a machine may need that is
/// slow and busy with other things: whoever waits in vain for so long has found a fault.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// The same for `kubectl wait` and `kubectl delete`.
pub const KUBECTL_PATIENCE: &str = "--timeout=300s";

/// Whether something comes to hold within [`PATIENCE`]. It is looked at again and again until it does.
pub fn comes_to_hold(mut holds: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if started.elapsed() > PATIENCE {
            return false;
        }
        sleep(Duration::from_millis(100));
    }
}

/// Returns once something holds.
///
/// # Panics
///
/// If it does not within [`PATIENCE`].
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_to_hold(holds), "after {PATIENCE:?} it does not hold that {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_is_as_patient() {
        assert_eq!(KUBECTL_PATIENCE, format!("--timeout={}s", PATIENCE.as_secs()));
    }
}
