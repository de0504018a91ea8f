//! Runs the background tasks of the store: garbage collection, expiry of events, compaction of
//! history.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::shared::Shared;

/// How long to wait after a change, so that the work of many changes is done at once.
const DELAY_AFTER_CHANGE: Duration = Duration::from_millis(10);
/// The longest interval between two runs, in case the clock is changed.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Runs background tasks until the server shuts down.
pub async fn run_background_tasks(shared: Arc<Shared>) {
    let mut changes = shared.changes();
    let mut shutdown = shared.shutdown();
    loop {
        changes.mark_unchanged();
        // If a task panics, it is dropped and the others run next time.
        let (due, _) = shared.write(None, |api| Ok(api.run_background_tasks(&shared.context())));
        let due = due.unwrap_or_default();
        let wait = due.map_or(INTERVAL_MAX, |due| until(due).min(INTERVAL_MAX));
        tokio::select! {
            _ = shutdown.changed() => return,
            _ = timeout(wait, changes.changed()) => {}
        }
        sleep(DELAY_AFTER_CHANGE).await;
    }
}

fn until(due: jiff::Timestamp) -> Duration {
    Duration::try_from(due.duration_since(jiff::Timestamp::now())).unwrap_or_default()
}
