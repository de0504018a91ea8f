//! What goes into the engine, and what comes out.

use std::time::Duration;

use bindery_model::{Kind, Name, Object, ObjectKey};
use bindery_rules_api::{Event, Failure, OperationOutput, Request, Rule, Timed};

/// A moment, as time since any fixed point. The engine only compares moments and adds to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub Duration);

impl std::ops::Add<Duration> for Moment {
    type Output = Moment;
    fn add(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(duration))
    }
}

impl Moment {
    /// How long ago another moment was.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Which request an answer is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// All objects of a kind were listed, as they were at a version.
    Listed {
        /// The kind.
        kind: Kind,
        /// The list's version.
        version: u64,
        /// The objects.
        objects: Vec<Object>,
    },
    /// A watch delivered an object.
    Watched(Object),
    /// A watch saw an object go.
    Gone {
        /// Which object.
        key: ObjectKey,
        /// At which version.
        version: u64,
    },
    /// A watch is complete up to a version.
    Bookmark {
        /// The kind that is watched.
        kind: Kind,
        /// The version.
        version: u64,
    },
    /// A request was answered.
    Answered(RequestId, Answer),
    /// Time has passed.
    Tick,
    /// This instance leads from now on, or does not. It starts without leading.
    Leader(bool),
}

/// What came of a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// It was written or created: the object as it is now.
    Written(Object),
    /// It was deleted; the object as it is now, where finalizers still hold it.
    Deleted(Option<Object>),
    /// What a read found.
    Read(Option<Object>),
    /// What a list found.
    Listed(Vec<Object>),
    /// How an operation went.
    Done(Result<OperationOutput, Failure>),
    /// It was not done, or nobody knows.
    Refused(RequestError),
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    /// The object is not as it was seen.
    Conflict,
    /// The object does not exist.
    NotFound,
    /// The object exists.
    AlreadyExists,
    /// There was no answer: it may have been carried out, or not.
    Lost,
    /// It is to be sent again, not before so long.
    Later(Duration, String),
    /// Anything else, in words.
    Error(String),
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Send this and answer it, whatever happens.
    Send(RequestId, Request),
    /// Publish this event.
    Publish(Event),
    /// Send a [`Input::Tick`] at this moment.
    TickAt(Moment),
    /// A decision was made.
    Decided(Decided),
    /// Something that was measured came to an end, or failed.
    Measured(Measured),
}

/// A decision, for logs and explanations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The rule set.
    pub set: &'static str,
    /// The object.
    pub key: ObjectKey,
    /// The rule that applied.
    pub rule: &'static Rule,
    /// Which step the request is, if there is one.
    pub step: Option<&'static Rule>,
    /// What was particular.
    pub note: Option<String>,
}

/// How long something took, from its first attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// What.
    pub what: Timed,
    /// Who did it.
    pub plugin: Name,
    /// How long; `None` when an attempt failed.
    pub took: Option<Duration>,
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequestError::Conflict => f.write_str("the object has been modified"),
            RequestError::NotFound => f.write_str("the object does not exist"),
            RequestError::AlreadyExists => f.write_str("the object already exists"),
            RequestError::Lost => f.write_str("no answer"),
            RequestError::Later(_, error) | RequestError::Error(error) => f.write_str(error),
        }
    }
}
