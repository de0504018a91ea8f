//! The inputs and outputs of the engine.

use std::time::Duration;

use bindery_model::{Kind, Name, Object, ObjectKey};
use bindery_rules_api::{Event, Failure, OperationOutput, Request, Rule, Timed};

/// A point in time, as the duration since a fixed start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub Duration);

impl std::ops::Add<Duration> for Moment {
    type Output = Moment;
    fn add(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(duration))
    }
}

impl Moment {
    /// The duration since an earlier moment.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Identifies a request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An input.
#[derive(Debug, Clone)]
pub enum Input {
    /// All objects of a kind were listed.
    Listed {
        /// The kind.
        kind: Kind,
        /// The list's resourceVersion.
        version: u64,
        /// The objects.
        objects: Vec<Object>,
    },
    /// A watch reported an added or modified object.
    Watched(Object),
    /// A watch reported a deletion.
    Deleted {
        /// The object.
        key: ObjectKey,
        /// The resourceVersion of the deletion.
        version: u64,
    },
    /// A watch reported a bookmark: it is complete up to this version.
    Bookmark {
        /// The kind.
        kind: Kind,
        /// The resourceVersion.
        version: u64,
    },
    /// A request was answered.
    Answered(RequestId, Answer),
    /// The time of the last [`Output::TickAt`] has come.
    Tick,
    /// This instance became the leader, or lost leadership.
    Leader(bool),
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The object was written or created, and is now this.
    Written(Object),
    /// The object was deleted, or is Terminating and is now this.
    Deleted(Option<Object>),
    /// The object that was read; `None` if it does not exist.
    Read(Option<Object>),
    /// The objects that were listed.
    Listed(Vec<Object>),
    /// The outcome of an operation.
    Done(Result<OperationOutput, Failure>),
    /// The request failed, or its outcome is unknown.
    Rejected(RequestError),
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestError {
    /// A precondition failed: the object has changed.
    Conflict,
    /// The object does not exist.
    NotFound,
    /// An object of that name exists.
    AlreadyExists,
    /// There was no response. The request may have been carried out.
    Lost,
    /// The server failed with this status, or the connection with this error (status 0). The
    /// request may have been carried out.
    Unknown(u16, String),
    /// The server is overloaded. The request may be sent again after this time.
    RetryAfter(Duration, String),
    /// Any other error: the HTTP status (0 if the request was not sent or its response not
    /// understood), and the message.
    Error(u16, String),
}

/// An output.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Send this request, and answer it in every case.
    Send(RequestId, Request),
    /// Publish this event.
    Publish(Event),
    /// Send [`Input::Tick`] at this time. It replaces an earlier one.
    TickAt(Moment),
    /// A decision was made.
    Decided(Decided),
    /// A measurement ended, or an attempt failed.
    Measured(Measured),
    /// A request was rejected or failed.
    Rejected(Rejection),
}

/// A decision, for logs and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The rule set.
    pub set: &'static str,
    /// The object.
    pub key: ObjectKey,
    /// The rule that applies.
    pub rule: &'static Rule,
    /// The rule that names the request's step, if there is a request.
    pub step: Option<&'static Rule>,
    /// Details of this case.
    pub note: Option<String>,
}

/// A rejected or failed request, for logs, metrics and explanations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// The rule set.
    pub set: &'static str,
    /// The key that was decided about. Of several keys that share a list, the first.
    pub key: ObjectKey,
    /// The object that the request is about. Its name is empty for a list.
    pub target: ObjectKey,
    /// The name of the rule that the request was sent for.
    pub step: &'static str,
    /// Why it failed.
    pub error: RequestError,
    /// How often this step of the key has failed in a row.
    pub failures: u32,
    /// When it failed.
    pub at: Moment,
    /// The time from `at` to the next retry; `None` if the key is decided about again without
    /// delay, or is not retried.
    pub retry_in: Option<Duration>,
}

/// A duration measured from the first attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// What was measured.
    pub what: Timed,
    /// The plugin or provisioner.
    pub plugin: Name,
    /// The duration; `None` for a failed attempt.
    pub took: Option<Duration>,
}

impl RequestError {
    /// The HTTP status of the response; 0 without a response.
    pub fn status(&self) -> u16 {
        match self {
            RequestError::Conflict | RequestError::AlreadyExists => 409,
            RequestError::NotFound => 404,
            RequestError::Lost => 0,
            RequestError::RetryAfter(..) => 429,
            RequestError::Unknown(status, _) | RequestError::Error(status, _) => *status,
        }
    }
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RequestError::Conflict => f.write_str("the object has been modified"),
            RequestError::NotFound => f.write_str("the object does not exist"),
            RequestError::AlreadyExists => f.write_str("the object already exists"),
            RequestError::Lost => f.write_str("no response"),
            RequestError::RetryAfter(_, error) | RequestError::Unknown(_, error) | RequestError::Error(_, error) => {
                f.write_str(error)
            }
        }
    }
}
