//! Verdicts: the result of a decision about one key.

use std::time::Duration;

use bindery_model::{Name, ObjectKey};

use crate::{Event, Request, Rule, Write};

/// What the engine does next about a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Nothing, until a change wakes the key.
    Idle,
    /// Send one request and decide again after the answer.
    Request(Request),
    /// Hand off to another key: decide about it first, then about this one again. A volume hands
    /// off to a claim that may take it.
    HandOff(ObjectKey),
    /// Decide again from the start after an exponentially growing delay.
    Retry(Backoff),
    /// Decide again after exactly this long, and keep the outcomes recorded so far.
    Pause(Duration),
}

/// The delays between retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// The API server rejected a request.
    Api,
    /// An in-tree operation failed.
    Operation,
    /// A provisioner's storage failed.
    Storage,
    /// A storage reported that it can never serve the request.
    Infeasible,
}

/// Work whose duration is measured from the first attempt to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timed {
    /// From requesting a volume to binding it.
    Provision,
    /// From deciding to delete a volume to its deletion.
    Delete,
}

/// The effect of a verdict on its key's measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// Start measuring for this plugin, unless a measurement is running.
    Begin(Timed, Name),
    /// Count a failed attempt.
    Fail(Timed),
    /// Stop and record the duration.
    End(Timed),
    /// Stop without recording.
    Drop(Timed),
}

/// The result of a decision about one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The rule that applies.
    pub rule: &'static Rule,
    /// Details of this case, such as an error message.
    pub note: Option<String>,
    /// What to do next.
    pub action: Action,
    /// Events to publish.
    pub events: Vec<Event>,
    /// The effect on the key's measurement.
    pub measure: Option<Measure>,
}

impl Verdict {
    /// Nothing to do until a change wakes the key.
    pub fn idle(rule: &'static Rule) -> Verdict {
        Verdict::new(rule, Action::Idle)
    }

    /// Sends a request.
    pub fn request(rule: &'static Rule, request: Request) -> Verdict {
        Verdict::new(rule, Action::Request(request))
    }

    /// Sends a write.
    pub fn write(rule: &'static Rule, write: Write) -> Verdict {
        Verdict::request(rule, Request::Write(Box::new(write)))
    }

    /// Sends a write, or does nothing if there is none.
    pub fn write_or_idle(rule: &'static Rule, write: Option<Write>) -> Verdict {
        match write {
            Some(write) => Verdict::write(rule, write),
            None => Verdict::idle(rule),
        }
    }

    /// Tries again after a back-off.
    pub fn retry(rule: &'static Rule, backoff: Backoff, error: impl Into<String>) -> Verdict {
        Verdict::new(rule, Action::Retry(backoff)).with_note(error)
    }

    /// Takes any other action.
    pub fn new(rule: &'static Rule, action: Action) -> Verdict {
        Verdict { rule, note: None, action, events: Vec::new(), measure: None }
    }

    /// Adds details of this case.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Verdict {
        self.note = Some(note.into());
        self
    }

    /// Publishes an event.
    #[must_use]
    pub fn publish(mut self, event: Event) -> Verdict {
        self.events.push(event);
        self
    }

    /// Starts, ends or drops a measurement.
    #[must_use]
    pub fn measuring(mut self, measure: Measure) -> Verdict {
        self.measure = Some(measure);
        self
    }
}
