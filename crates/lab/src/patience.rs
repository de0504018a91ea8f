//! Waiting for what other programs bring about.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// A machine that is busy with other things gets this much.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether something comes to hold within a minute. It is looked at again and again until it does.
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
/// If it does not within a minute.
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    assert!(comes_to_hold(holds), "after a minute it does not hold that {what}");
}
