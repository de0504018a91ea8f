//! The log of rejected and failed requests: a warning for each new one, repeats collapsed.

use std::collections::HashMap;
use std::time::Duration;

use bindery_engine::{Engine, Rejection, RequestError};
use bindery_model::event::{EventType, Reason};
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::Event;

/// How many requests are remembered, to recognise repeats: a few mebibytes at most.
const REQUESTS_MAX: usize = 1 << 16;
/// How often a request that is rejected again and again is logged as a warning.
const WARN_AGAIN: Duration = Duration::from_secs(600);
/// A request that was not rejected for this long is new. Longer than the longest back-off.
const FORGET_AFTER: Duration = Duration::from_secs(1800);
/// The engine resolves a conflict with a live read. As many in a row are not resolved.
const CONFLICTS_MAX: u32 = 5;

/// Whether a rejection is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Noted {
    /// It is the first one.
    New,
    /// It lasts, and was repeated this often since the last warning.
    Lasts(u64),
    /// It repeats a recent one.
    Repeat,
}

/// Logs rejections.
#[derive(Default)]
pub struct RejectionLog {
    /// When each object's step was rejected with each status.
    seen: HashMap<(ObjectKey, &'static str, u16), Seen>,
}

struct Seen {
    last: Duration,
    warned: Duration,
    repeats: u64,
}

impl RejectionLog {
    /// Logs a rejection, and returns whether it is new and lasts until a user acts.
    pub fn log(&mut self, rejection: &Rejection) -> bool {
        let Rejection { set: controller, key: object, target, step, error, failures, at, retry_in } = rejection;
        let status = error.status();
        let retry_in = retry_in.map(|delay| format!("{delay:?}"));
        // One macro call for each level, because a level is part of a call site.
        macro_rules! log {
            ($level:ident, $repeats:expr) => {
                tracing::$level!(
                    controller, %object, %target, step, status, %error, failures, retry_in,
                    repeats = $repeats, "request rejected"
                )
            };
        }
        if is_resolved(error) && *failures < CONFLICTS_MAX {
            log!(debug, None::<u64>);
            return false;
        }
        let noted = self.note(rejection, at.0);
        match noted {
            Noted::New => log!(warn, None::<u64>),
            Noted::Lasts(repeats) => log!(warn, Some(repeats)),
            Noted::Repeat => log!(debug, None::<u64>),
        }
        noted == Noted::New && needs_action(status)
    }

    fn note(&mut self, rejection: &Rejection, now: Duration) -> Noted {
        let id = (rejection.key.clone(), rejection.step, rejection.error.status());
        if self.seen.len() >= REQUESTS_MAX && !self.seen.contains_key(&id) {
            self.seen.clear();
        }
        let new = Seen { last: now, warned: now, repeats: 0 };
        let Some(seen) = self.seen.get_mut(&id) else {
            self.seen.insert(id, new);
            return Noted::New;
        };
        if now.saturating_sub(seen.last) > FORGET_AFTER {
            *seen = new;
            return Noted::New;
        }
        seen.last = now;
        if now.saturating_sub(seen.warned) < WARN_AGAIN {
            seen.repeats += 1;
            return Noted::Repeat;
        }
        seen.warned = now;
        Noted::Lasts(std::mem::take(&mut seen.repeats))
    }
}

/// Whether the engine resolves it by reading the object, because another write came first.
fn is_resolved(error: &RequestError) -> bool {
    match error {
        RequestError::Conflict | RequestError::NotFound | RequestError::AlreadyExists => true,
        RequestError::Lost | RequestError::Unknown(..) | RequestError::RetryAfter(..) | RequestError::Error(..) => {
            false
        }
    }
}

/// Whether a status stays until a user changes permissions, policies or the object: forbidden,
/// invalid.
fn needs_action(status: u16) -> bool {
    matches!(status, 403 | 422)
}

/// The event that tells the owner of an object about a rejection that needs action. `None` if the
/// object is not one that its owner looks at, or is unknown.
pub fn event(engine: &Engine, rejection: &Rejection) -> Option<Event> {
    let is_owned = matches!(rejection.key.kind, Kind::Claim | Kind::Volume | Kind::Pod);
    let object = engine.known().object(&rejection.key).filter(|_| is_owned)?;
    Some(Event {
        about: rejection.key.clone(),
        meta: object.meta().clone(),
        event_type: EventType::Warning,
        reason: Reason::RequestRejected,
        message: format!("The API server rejects the step {}: {}", rejection.step, rejection.error),
        component: rejection.set,
        retry_in: rejection.retry_in,
        missing: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_engine::Moment;

    fn rejection(volume: &str, error: RequestError, at_seconds: u64, failures: u32) -> Rejection {
        let key = ObjectKey::volume(volume);
        let at = Moment(Duration::from_secs(at_seconds));
        let (target, retry_in) = (key.clone(), Some(Duration::from_secs(1)));
        Rejection { set: "binder", key, target, step: "bind.1-reserve-volume", error, failures, at, retry_in }
    }

    fn forbidden() -> RequestError {
        RequestError::Error(403, "persistentvolumes \"a\" is forbidden".into())
    }

    #[test]
    fn rejection_is_new_once_for_each_object_step_and_status_and_repeated_rarely() {
        let mut log = RejectionLog::default();
        let mut note =
            |volume: &str, error, at: u64| log.note(&rejection(volume, error, at, 1), Duration::from_secs(at));
        assert_eq!(note("a", forbidden(), 0), Noted::New);
        assert_eq!(note("b", forbidden(), 1), Noted::New);
        assert_eq!(note("a", RequestError::Error(422, String::new()), 2), Noted::New);
        assert_eq!(note("a", forbidden(), 3), Noted::Repeat);
        assert_eq!(note("a", forbidden(), 60), Noted::Repeat);
        assert_eq!(note("a", forbidden(), 600), Noted::Lasts(2));
        assert_eq!(note("a", forbidden(), 601), Noted::Repeat);
        assert_eq!(note("a", forbidden(), 601 + 1801), Noted::New, "it was not rejected in between");
    }

    #[test]
    fn only_new_rejections_that_need_action_are_reported_to_users() {
        let mut log = RejectionLog::default();
        assert!(log.log(&rejection("a", forbidden(), 0, 1)));
        assert!(!log.log(&rejection("a", forbidden(), 1, 2)), "it was reported");
        assert!(!log.log(&rejection("b", RequestError::Conflict, 1, 1)));
        assert!(!log.log(&rejection("b", RequestError::RetryAfter(Duration::ZERO, String::new()), 1, 1)));
        assert!(log.log(&rejection("b", RequestError::Error(422, "spec is immutable".into()), 1, 1)));
    }

    #[test]
    fn the_number_of_remembered_requests_is_bounded() {
        let mut log = RejectionLog::default();
        for number in 0..=REQUESTS_MAX {
            log.note(&rejection(&format!("pv-{number}"), forbidden(), 0, 1), Duration::ZERO);
            assert!(log.seen.len() <= REQUESTS_MAX);
        }
        assert_eq!(log.seen.len(), 1, "the log forgets all requests when it is full");
    }
}
