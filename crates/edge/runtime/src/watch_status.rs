//! How current each watch is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindery_model::Kind;
use tokio::time::Instant;

/// The server sends a bookmark about every minute. A watch that received nothing for longer than
/// two of them is stale.
const STALE_AFTER: Duration = Duration::from_secs(150);
/// How long a watch that reports an error may take to recover before it counts as stale: longer
/// than an API server takes to restart.
const BROKEN_AFTER: Duration = Duration::from_secs(30);
/// How often an error that lasts is logged as a warning.
const WARN_AGAIN: Duration = Duration::from_secs(60);

/// What is known about the watches of a program.
#[derive(Clone, Default)]
pub struct WatchStatus(Arc<Mutex<BTreeMap<Kind, Status>>>);

struct Status {
    /// When the watch was last known to be current: the last list, event or bookmark.
    current_at: Instant,
    /// Why it is interrupted.
    error: Option<WatchError>,
    /// The last error that was new, and when.
    warned: Option<(WatchError, Instant)>,
}

/// Why a watch is interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchError {
    /// The server's error, or why there was no response.
    pub message: String,
    /// Whether the server refuses the watch, so that waiting does not help.
    pub is_refused: bool,
}

impl WatchStatus {
    /// A watch was started.
    pub(crate) fn started(&self, kind: Kind) {
        self.status().insert(kind, Status { current_at: Instant::now(), error: None, warned: None });
    }

    /// A watch received a list, an event or a bookmark.
    pub(crate) fn is_current(&self, kind: Kind) {
        if let Some(status) = self.status().get_mut(&kind) {
            (status.current_at, status.error) = (Instant::now(), None);
        }
    }

    /// The server accepted to resume a watch. It is current after the next event or bookmark.
    pub(crate) fn resumed(&self, kind: Kind) {
        if let Some(status) = self.status().get_mut(&kind) {
            status.error = None;
        }
    }

    /// A watch is interrupted. Returns whether to warn: of a new error, and of one that lasts or
    /// comes back from time to time.
    pub(crate) fn failed(&self, kind: Kind, error: WatchError) -> bool {
        let (mut status, now) = (self.status(), Instant::now());
        let Some(status) = status.get_mut(&kind) else { return true };
        let is_repeat = |(warned, at): &(WatchError, Instant)| *warned == error && now - *at < WARN_AGAIN;
        let warns = !status.warned.as_ref().is_some_and(is_repeat);
        if warns {
            status.warned = Some((error.clone(), now));
        }
        status.error = Some(error);
        warns
    }

    /// The server does not serve a kind, so there is nothing to watch.
    pub(crate) fn not_served(&self, kind: Kind) {
        self.status().remove(&kind);
    }

    /// How long ago each watch was last known to be current.
    pub fn staleness(&self) -> Vec<(Kind, Duration)> {
        self.status().iter().map(|(kind, status)| (*kind, status.current_at.elapsed())).collect()
    }

    /// The watches that are refused or stale, in words.
    pub fn problems(&self) -> Vec<String> {
        let now = Instant::now();
        self.status().iter().filter_map(|(kind, status)| problem(*kind, status, now)).collect()
    }

    fn status(&self) -> MutexGuard<'_, BTreeMap<Kind, Status>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn problem(kind: Kind, status: &Status, now: Instant) -> Option<String> {
    let (kind, stale) = (kind.as_str(), now.saturating_duration_since(status.current_at));
    match &status.error {
        Some(error) if error.is_refused => Some(format!("the watch of {kind} is refused: {}", error.message)),
        Some(error) if stale > BROKEN_AFTER => {
            Some(format!("the watch of {kind} has been interrupted for {}s: {}", stale.as_secs(), error.message))
        }
        None if stale > STALE_AFTER => {
            Some(format!("the watch of {kind} has received nothing for {}s", stale.as_secs()))
        }
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(message: &str, is_refused: bool) -> WatchError {
        WatchError { message: message.into(), is_refused }
    }

    #[test]
    fn interrupted_and_silent_watches_become_stale_and_refused_ones_are_reported_at_once() {
        let now = Instant::now();
        let after = |seconds: u64, error: Option<WatchError>| {
            problem(Kind::Volume, &Status { current_at: now, error, warned: None }, now + Duration::from_secs(seconds))
        };
        let broken = || Some(error("connection refused", false));
        assert_eq!(after(30, broken()), None, "it may recover");
        let interrupted = "the watch of PersistentVolume has been interrupted for 31s: connection refused";
        assert_eq!(after(31, broken()).as_deref(), Some(interrupted));
        assert_eq!(after(150, None), None, "a bookmark is due every minute");
        let silent = "the watch of PersistentVolume has received nothing for 151s";
        assert_eq!(after(151, None).as_deref(), Some(silent));
        let refused = "the watch of PersistentVolume is refused: forbidden";
        assert_eq!(after(0, Some(error("forbidden", true))).as_deref(), Some(refused));
    }

    #[test]
    fn events_end_an_error_and_repeats_of_it_are_recognised() {
        let status = WatchStatus::default();
        status.started(Kind::Volume);
        assert!(status.failed(Kind::Volume, error("forbidden", true)));
        assert!(!status.failed(Kind::Volume, error("forbidden", true)));
        assert_eq!(status.problems().len(), 1);
        status.is_current(Kind::Volume);
        assert!(status.problems().is_empty());
        assert!(!status.failed(Kind::Volume, error("forbidden", true)), "it has come back within a minute");
        assert!(status.failed(Kind::Volume, error("no response", false)), "it is another error");
        status.not_served(Kind::Volume);
        assert!(status.problems().is_empty() && status.staleness().is_empty());
    }
}
