//! Waits for the combined effect of several programs.

use std::time::{Duration, Instant};

use bindery_test_cluster::{Running, TIMEOUT};

/// Waits until a condition holds; panics with the programs' logs if it never does.
pub async fn until(programs: &[&Running], what: &str, holds: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !holds().await {
        let logs = || programs.iter().map(|program| program.log()).collect::<String>();
        assert!(began.elapsed() < TIMEOUT, "timed out after {TIMEOUT:?}: {what}\n{}", logs());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
