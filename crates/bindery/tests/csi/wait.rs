//! Waiting for what several programs bring about together.

use std::time::{Duration, Instant};

use bindery_test_cluster::{TIMEOUT, Running};

/// Returns once something holds; panics with what programs say if it never does.
pub async fn until(programs: &[&Running], what: &str, holds: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !holds().await {
        let said = || programs.iter().map(|program| program.log()).collect::<String>();
        assert!(began.elapsed() < TIMEOUT, "after {TIMEOUT:?} it does not hold that {what}\n{}", said());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
