//! LiveReads: what was learnt live about one key while it is being worked on.

use std::sync::Arc;

use bindery_model::{Claim, ClaimKey, Name, Object, ObjectKey, Volume};
use serde_json::Value;

use crate::{Listing, Task};

/// What is certain after a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FailureEffect {
    /// Nothing was done. It may be tried again.
    #[default]
    Nothing,
    /// It may have been done all the same, or still be under way.
    Unknown,
    /// Nothing was done, and nothing can be here. Elsewhere it may.
    Elsewhere,
    /// Nothing was done, and the very same will hardly ever be.
    Never,
    /// Nothing was done, because there is something else under that name. An earlier call may have made it, if it asked for
    /// something else.
    Taken,
    /// Nothing was done: it is somebody else's business.
    NotOurs,
    /// It was not even tried. What was known before still holds.
    Untried,
    /// It was not even tried: whom it was for is gone, or another by now. What was known before still holds.
    Stale,
    /// The storage is still in use. It may be done later.
    InUse,
}

/// Why an operation, or the creation of an object, failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In words.
    pub error: String,
    /// What is certain.
    pub after: FailureEffect,
}

impl Failure {
    /// A failure with its error, after which nothing was done.
    pub fn new(error: impl Into<String>) -> Failure {
        Failure { error: error.into(), after: FailureEffect::Nothing }
    }

    /// A failure of which nobody knows whether it is one.
    pub fn uncertain(error: impl Into<String>) -> Failure {
        Failure::new(error).with(FailureEffect::Unknown)
    }

    /// The same, after which something else is certain.
    #[must_use]
    pub fn with(mut self, after: FailureEffect) -> Failure {
        self.after = after;
        self
    }
}

/// What an operation yields: nothing, or an object as JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperationOutput(Option<Arc<Value>>);

impl OperationOutput {
    /// An object.
    pub fn of(value: Value) -> OperationOutput {
        OperationOutput(Some(Arc::new(value)))
    }
}

/// What the engine has found out for a key since it last came to rest. Rules are shown it beside the mirror, and only the engine
/// adds to it. A restart loses it, and nothing but time is lost with it.
#[derive(Debug, Clone, Default)]
pub struct LiveReads {
    reads: Vec<(ObjectKey, Option<Object>)>,
    lists: Vec<(Listing, Arc<[Object]>)>,
    outcomes: Vec<(Task, Result<OperationOutput, Failure>)>,
    offers: Vec<ObjectKey>,
    pauses: usize,
}

impl LiveReads {
    /// Notes what a live read found.
    pub fn note_read(&mut self, key: ObjectKey, found: Option<Object>) {
        self.reads.retain(|(known, _)| *known != key);
        self.reads.push((key, found));
    }

    /// Notes what a live list found.
    pub fn note_list(&mut self, listing: Listing, found: Arc<[Object]>) {
        self.lists.retain(|(known, _)| *known != listing);
        self.lists.push((listing, found));
    }

    /// Notes how an operation, or the creation of an object, went.
    pub fn note_outcome(&mut self, task: Task, outcome: Result<OperationOutput, Failure>) {
        self.outcomes.push((task, outcome));
    }

    /// Notes that somebody was decided about because of an offer made here.
    pub fn note_hand_off(&mut self, to: ObjectKey) {
        self.offers.push(to);
    }

    /// Whether somebody was already offered what is on offer here.
    pub fn was_handed_to(&self, key: &ObjectKey) -> bool {
        self.offers.contains(key)
    }

    /// Notes that a pause which a verdict asked for is over.
    pub fn note_pause(&mut self) {
        self.pauses += 1;
    }

    /// How many pauses there were.
    pub fn pause_count(&self) -> usize {
        self.pauses
    }

    /// Forgets what held for a moment only, reads, lists and offers: something has changed since.
    pub fn forget_passing(&mut self) {
        self.reads.clear();
        self.lists.clear();
        self.offers.clear();
    }

    /// Whether nothing was found out.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
            && self.lists.is_empty()
            && self.outcomes.is_empty()
            && self.offers.is_empty()
            && self.pauses == 0
    }

    fn read(&self, key: &ObjectKey) -> Option<Option<&Object>> {
        self.reads.iter().find(|(known, _)| known == key).map(|(_, found)| found.as_ref())
    }

    /// Whether an object was looked for live.
    pub fn has_read(&self, key: &ObjectKey) -> bool {
        self.read(key).is_some()
    }

    /// What a live list found; `None` when there was none.
    pub fn listed(&self, listing: &Listing) -> Option<&[Object]> {
        self.lists.iter().find(|(known, _)| known == listing).map(|(_, found)| &**found)
    }

    /// What a live read of a volume found; `None` when there was no read.
    pub fn volume(&self, name: &Name) -> Option<Option<&Arc<Volume>>> {
        Some(match self.read(&ObjectKey::volume(name.clone()))? {
            Some(Object::Volume(volume)) => Some(volume),
            Some(_) | None => None,
        })
    }

    /// What a live read of a claim found; `None` when there was no read.
    pub fn claim(&self, key: &ClaimKey) -> Option<Option<&Arc<Claim>>> {
        Some(match self.read(&key.clone().into())? {
            Some(Object::Claim(claim)) => Some(claim),
            Some(_) | None => None,
        })
    }

    /// Whether a task was done.
    pub fn is_done(&self, task: Task) -> bool {
        self.outcomes.iter().any(|(known, outcome)| *known == task && outcome.is_ok())
    }

    /// How often a task was done.
    pub fn done_count(&self, task: Task) -> usize {
        self.outcomes.iter().filter(|(known, outcome)| *known == task && outcome.is_ok()).count()
    }

    /// What a task yielded, when it was last done.
    pub fn yielded(&self, task: Task) -> Option<&Arc<Value>> {
        let of_task = self.outcomes.iter().rev().filter(|(known, _)| *known == task);
        of_task.filter_map(|(_, outcome)| outcome.as_ref().ok()).find_map(|OperationOutput(value)| value.as_ref())
    }

    /// How often a task failed.
    pub fn failure_count(&self, task: Task) -> usize {
        self.failures(task).count()
    }

    /// How a task failed last.
    pub fn last_failure(&self, task: Task) -> Option<&Failure> {
        self.failures(task).last()
    }

    fn failures(&self, task: Task) -> impl Iterator<Item = &Failure> {
        let of_task =
            move |(known, outcome): &'_ &(Task, Result<OperationOutput, Failure>)| *known == task && outcome.is_err();
        self.outcomes.iter().filter(of_task).filter_map(|(_, outcome)| outcome.as_ref().err())
    }
}
