//! The objects read so far for one claim, and the next read or write that preparation needs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::fields::text_or_empty;
use crate::setup::Setup;
use bindery_provisioner_sdk::{Failure, FailureEffect, ProvisionContext};

/// How many write conflicts are retried before preparation fails.
const CHANGES_MAX: usize = 5;

/// The result of reading an object.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadResult {
    /// The object.
    Object(Value),
    /// The object does not exist; with the server's message.
    Missing(String),
    /// The read failed.
    Failed(String),
}

/// The result of writing an object.
#[derive(Debug, Clone, PartialEq)]
pub enum WriteResult {
    /// The object after the write.
    Object(Value),
    /// RBAC does not allow the write.
    Forbidden(String),
    /// The object has changed since it was read.
    Conflict(String),
    /// The write failed, or its outcome is unknown.
    Failed(String),
}

/// A merge patch that the server rejects if the object was replaced or has changed since it was
/// read.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The object's API path.
    pub path: String,
    /// The patch, including the UID and resourceVersion that were read.
    pub body: Value,
}

impl Patch {
    /// Replaces an object's finalizers.
    pub(crate) fn finalizers(path: &str, seen: &Value, finalizers: &[String]) -> Patch {
        let seen = |field: &str| text_or_empty(seen, &format!("/metadata/{field}"));
        let metadata = json!({
            "uid": seen("uid"),
            "resourceVersion": seen("resourceVersion"),
            "finalizers": finalizers,
        });
        Patch { path: path.to_owned(), body: json!({"metadata": metadata}) }
    }
}

/// The input of preparing a CreateVolume request for one claim: configuration, request and the
/// objects read so far.
pub struct Facts<'a> {
    /// How to use the driver.
    pub setup: &'a Setup,
    /// The claim, its class and the provision request.
    pub ask: ProvisionContext<'a>,
    found: BTreeMap<String, ReadResult>,
    unwritten: BTreeMap<String, String>,
    forbidden: BTreeSet<String>,
    changed: usize,
}

impl<'a> Facts<'a> {
    /// Starts without any objects read.
    pub fn new(setup: &'a Setup, ask: ProvisionContext<'a>) -> Facts<'a> {
        Facts { setup, ask, found: BTreeMap::new(), unwritten: BTreeMap::new(), forbidden: BTreeSet::new(), changed: 0 }
    }

    /// Adds the result of a read.
    pub fn record_read(&mut self, path: String, found: ReadResult) {
        self.found.insert(path, found);
    }

    /// Adds the result of a write.
    pub fn record_write(&mut self, path: String, wrote: WriteResult) {
        match wrote {
            WriteResult::Object(object) => {
                self.found.insert(path, ReadResult::Object(object));
            }
            WriteResult::Forbidden(error) => {
                self.forbidden.insert(path.clone());
                self.unwritten.insert(path, error);
            }
            // A conflict is no failure: read the object again.
            WriteResult::Conflict(_) if self.changed < CHANGES_MAX => {
                self.changed += 1;
                self.found.remove(&path);
            }
            WriteResult::Conflict(error) | WriteResult::Failed(error) => {
                self.unwritten.insert(path, error);
            }
        }
    }

    /// The object at a path; halts with a read if it has not been read yet.
    pub(crate) fn at(&self, path: &str) -> Flow<&ReadResult> {
        self.found.get(path).ok_or_else(|| Halt::Read(path.to_owned()))
    }

    /// Why an object could not be written, and whether because it is forbidden.
    pub(crate) fn unwritten(&self, path: &str) -> Option<(&str, bool)> {
        self.unwritten.get(path).map(|error| (error.as_str(), self.forbidden.contains(path)))
    }
}

/// Why preparation stops.
#[derive(Debug)]
pub(crate) enum Halt {
    /// An object has to be read first.
    Read(String),
    /// An object has to be written first.
    Write(Patch),
    /// Preparation failed.
    Fail(Failure),
}

/// A step of preparation: its result, or why it stops.
pub(crate) type Flow<T> = Result<T, Halt>;

/// Fails; it is certain that no storage was created.
pub(crate) fn reject<T>(error: impl Into<String>) -> Flow<T> {
    fail(error, FailureEffect::Nothing)
}

/// Fails before the driver was called: what is known about earlier calls still holds.
pub(crate) fn fail_before_call<T>(error: impl Into<String>) -> Flow<T> {
    fail(error, FailureEffect::NotAttempted)
}

pub(crate) fn fail<T>(error: impl Into<String>, after: FailureEffect) -> Flow<T> {
    Err(Halt::Fail(Failure { error: error.into(), effect: after }))
}
