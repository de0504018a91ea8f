//! Verdicts: what a rule set says about one key.

use std::time::Duration;

use bindery_model::{Name, ObjectKey};

use crate::{Event, Request, Rule, Write};

/// What to do next about a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Nothing, until something changes.
    Settle,
    /// One request; then look again.
    Request(Request),
    /// Decide about this one first, then look again: it may take what is on offer here, or goes before.
    HandOff(ObjectKey),
    /// Nothing can be done now: look again after a while, longer each time.
    Retry(Backoff),
    /// Look again after just so long, and remember what was found out.
    Pause(Duration),
}

/// How patient a retry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backoff {
    /// The API said no.
    Api,
    /// An operation outside the API failed.
    Operation,
    /// A storage said no, or nothing.
    Storage,
    /// A storage said that it will never do.
    Hopeless,
}

/// Work whose duration is measured, from the first attempt to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timed {
    /// From asking for a volume to being bound to it.
    Provision,
    /// From deciding to delete a volume to its being gone.
    Delete,
}

/// What a verdict means for a measurement of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// It begins, unless it has begun.
    Begin(Timed, Name),
    /// An attempt has failed.
    Fail(Timed),
    /// It is over.
    End(Timed),
    /// It is of no interest any more.
    Drop(Timed),
}

/// What a rule set says about one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The rule that applies.
    pub rule: &'static Rule,
    /// What is particular about this case, in words: an error, a flaw.
    pub note: Option<String>,
    /// What to do next.
    pub action: Action,
    /// What to publish.
    pub events: Vec<Event>,
    /// What it means for measurements.
    pub measure: Option<Measure>,
}

impl Verdict {
    /// Nothing is to be done.
    pub fn settle(rule: &'static Rule) -> Verdict {
        Verdict::new(rule, Action::Settle)
    }

    /// One request is next.
    pub fn request(rule: &'static Rule, request: Request) -> Verdict {
        Verdict::new(rule, Action::Request(request))
    }

    /// A write is next.
    pub fn write(rule: &'static Rule, write: Write) -> Verdict {
        Verdict::request(rule, Request::Write(Box::new(write)))
    }

    /// A write is next, if there is one; else nothing.
    pub fn write_or_settle(rule: &'static Rule, write: Option<Write>) -> Verdict {
        match write {
            Some(write) => Verdict::write(rule, write),
            None => Verdict::settle(rule),
        }
    }

    /// It is to be tried again, longer each time.
    pub fn retry(rule: &'static Rule, pace: Backoff, error: impl Into<String>) -> Verdict {
        Verdict::new(rule, Action::Retry(pace)).noting(error)
    }

    /// Any other action.
    pub fn new(rule: &'static Rule, action: Action) -> Verdict {
        Verdict { rule, note: None, action, events: Vec::new(), measure: None }
    }

    /// Says what is particular about this case.
    #[must_use]
    pub fn noting(mut self, note: impl Into<String>) -> Verdict {
        self.note = Some(note.into());
        self
    }

    /// Publishes a notice.
    #[must_use]
    pub fn tell(mut self, notice: Event) -> Verdict {
        self.events.push(notice);
        self
    }

    /// Begins, ends or drops a measurement.
    #[must_use]
    pub fn measuring(mut self, measure: Measure) -> Verdict {
        self.measure = Some(measure);
        self
    }
}
