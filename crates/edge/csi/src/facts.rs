//! What was found out for one claim, and what is to be found out or written next.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::fields::text_or_empty;
use crate::setup::Setup;
use bindery_provisioner_sdk::{Failure, FailureEffect, ProvisionContext};

/// So often may others be first in changing what is to be written, before it is put off.
const CHANGES_MAX: usize = 5;

/// What a read came back with.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// The object.
    Object(Value),
    /// There is none; and what the server says about it.
    Missing(String),
    /// It could not be found out.
    Failed(String),
}

/// How a write ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Wrote {
    /// The object as it is now.
    Object(Value),
    /// We may not.
    Forbidden(String),
    /// It has changed since it was seen.
    Changed(String),
    /// It was not done, or nobody knows.
    Failed(String),
}

/// A merge patch of an object that was seen, which the server refuses when the object is another or has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// Where the object is.
    pub path: String,
    /// What is to be changed, with the UID and resourceVersion that were seen.
    pub body: Value,
}

impl Patch {
    /// Replaces the finalizers of an object that was seen.
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

/// All that is known while storage for one claim is being prepared.
pub struct Facts<'a> {
    /// How the driver is to be used.
    pub setup: &'a Setup,
    /// What is asked for.
    pub ask: ProvisionContext<'a>,
    found: BTreeMap<String, Found>,
    unwritten: BTreeMap<String, String>,
    forbidden: BTreeSet<String>,
    changed: usize,
}

impl<'a> Facts<'a> {
    /// What is known before anything was read.
    pub fn new(setup: &'a Setup, ask: ProvisionContext<'a>) -> Facts<'a> {
        Facts { setup, ask, found: BTreeMap::new(), unwritten: BTreeMap::new(), forbidden: BTreeSet::new(), changed: 0 }
    }

    /// Takes in what a read came back with.
    pub fn read(&mut self, path: String, found: Found) {
        self.found.insert(path, found);
    }

    /// Takes in how a write ended.
    pub fn wrote(&mut self, path: String, wrote: Wrote) {
        match wrote {
            Wrote::Object(object) => {
                self.found.insert(path, Found::Object(object));
            }
            Wrote::Forbidden(error) => {
                self.forbidden.insert(path.clone());
                self.unwritten.insert(path, error);
            }
            // Somebody else was there first, which is no failure: it is looked at again.
            Wrote::Changed(_) if self.changed < CHANGES_MAX => {
                self.changed += 1;
                self.found.remove(&path);
            }
            Wrote::Changed(error) | Wrote::Failed(error) => {
                self.unwritten.insert(path, error);
            }
        }
    }

    /// What is at a path; asks for it when nobody has looked yet.
    pub(crate) fn at(&self, path: &str) -> Flow<&Found> {
        self.found.get(path).ok_or_else(|| Halt::Read(path.to_owned()))
    }

    /// Why an object could not be written, and whether that is because we may not.
    pub(crate) fn unwritten(&self, path: &str) -> Option<(&str, bool)> {
        self.unwritten.get(path).map(|error| (error.as_str(), self.forbidden.contains(path)))
    }
}

/// Why preparing stops here.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Something has to be read first.
    Read(String),
    /// Something has to be written first.
    Write(Patch),
    /// It cannot be done.
    Fail(Failure),
}

/// A part of preparing: what it comes to, or why it stops.
pub(crate) type Flow<T> = Result<T, Halt>;

/// It cannot be done, and nothing has been.
pub(crate) fn nothing<T>(error: impl Into<String>) -> Flow<T> {
    fail(error, FailureEffect::Nothing)
}

/// It cannot be done now, and nothing was tried: what was known before still holds.
pub(crate) fn untried<T>(error: impl Into<String>) -> Flow<T> {
    fail(error, FailureEffect::NotAttempted)
}

pub(crate) fn fail<T>(error: impl Into<String>, after: FailureEffect) -> Flow<T> {
    Err(Halt::Fail(Failure { error: error.into(), effect: after }))
}
