//! Does what nobody asks for: dependents of deleted owners go, events fade, history is let go of.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::shared::Shared;

/// How long it waits after a change: what many changes leave behind is cleared up at once.
const AFTER_A_CHANGE: Duration = Duration::from_millis(10);
/// It looks at least this often, in case a clock was changed.
const AT_LEAST_EVERY: Duration = Duration::from_secs(60);

/// Tends the store until everything ends.
pub async fn tend(shared: Arc<Shared>) {
    let mut news = shared.changes();
    let mut stops = shared.stops();
    loop {
        news.mark_unchanged();
        // A chore that panics is gone, and the others are still to be done.
        let (due, _) = shared.write(None, |api| Ok(api.tend(&shared.moment())));
        let due = due.unwrap_or_default();
        let wait = due.map_or(AT_LEAST_EVERY, |due| until(due).min(AT_LEAST_EVERY));
        tokio::select! {
            _ = stops.changed() => return,
            _ = timeout(wait, news.changed()) => {}
        }
        sleep(AFTER_A_CHANGE).await;
    }
}

fn until(due: jiff::Timestamp) -> Duration {
    Duration::try_from(due.duration_since(jiff::Timestamp::now())).unwrap_or_default()
}
