//! Live reads: what the engine learned about one key, past the cache, while working on it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bindery_model::hash::digest_unordered;
use bindery_model::{Claim, ClaimKey, Name, Object, ObjectKey, Volume};
use serde_json::Value;

use crate::{Listing, Task};

/// What is certain after a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FailureEffect {
    /// The operation failed and changed nothing. It can be retried.
    #[default]
    Nothing,
    /// The outcome is unknown: the operation may have succeeded, or may still be running.
    Unknown,
    /// Nothing was created, and nothing can be on the selected node. Another node may work.
    Reschedule,
    /// Nothing was created, and the same request is unlikely ever to succeed.
    Infeasible,
    /// Nothing exists under that name, also not from an earlier call.
    Absent,
    /// Nothing was created, because something else has that name. An earlier call with other
    /// parameters may have created it.
    NameTaken,
    /// Nothing was done: another controller is responsible.
    NotOurs,
    /// The operation was not attempted. What was known before is still true.
    NotAttempted,
    /// The operation was not attempted, because the object was deleted or replaced. What was known
    /// before is still true.
    Stale,
    /// The storage is still in use. It can be retried later.
    InUse,
}

/// Why an operation, or the creation of an object, failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error message.
    pub error: String,
    /// What is certain.
    pub effect: FailureEffect,
}

impl Failure {
    /// A failure that changed nothing.
    pub fn new(error: impl Into<String>) -> Failure {
        Failure { error: error.into(), effect: FailureEffect::Nothing }
    }

    /// A failure whose outcome is unknown.
    pub fn unknown(error: impl Into<String>) -> Failure {
        Failure::new(error).with(FailureEffect::Unknown)
    }

    /// Replaces the effect.
    #[must_use]
    pub fn with(mut self, effect: FailureEffect) -> Failure {
        self.effect = effect;
        self
    }
}

/// The output of an operation: nothing, or an object as JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperationOutput(Option<Arc<Value>>);

impl OperationOutput {
    /// An object.
    pub fn of(value: Value) -> OperationOutput {
        OperationOutput(Some(Arc::new(value)))
    }
}

/// Live reads and outcomes recorded for a key since it was last idle. Rules receive them with the
/// cache; only the engine adds to them. They are lost in a restart, which costs nothing but time.
#[derive(Debug, Clone, Default)]
pub struct LiveReads {
    reads: Vec<(ObjectKey, Option<Object>)>,
    lists: Vec<(Listing, Arc<[Object]>)>,
    outcomes: Vec<(Task, Result<OperationOutput, Failure>)>,
    hand_offs: Vec<ObjectKey>,
    written: Vec<(ObjectKey, u64)>,
    pauses: usize,
}

impl LiveReads {
    /// Records the result of a live read.
    pub fn note_read(&mut self, key: ObjectKey, found: Option<Object>) {
        self.reads.retain(|(known, _)| *known != key);
        self.reads.push((key, found));
    }

    /// Records the result of a live list.
    pub fn note_list(&mut self, listing: Listing, found: Arc<[Object]>) {
        self.lists.retain(|(known, _)| *known != listing);
        self.lists.push((listing, found));
    }

    /// Records the outcome of an operation, or of the creation of an object.
    pub fn note_outcome(&mut self, task: Task, outcome: Result<OperationOutput, Failure>) {
        self.outcomes.push((task, outcome));
    }

    /// Records that a write of this key was confirmed, and the version that it gave the object.
    pub fn note_written(&mut self, key: ObjectKey, version: u64) {
        self.written.retain(|(known, _)| *known != key);
        self.written.push((key, version));
    }

    /// The version that the last confirmed write of this key gave an object.
    pub fn written_version(&self, key: &ObjectKey) -> Option<u64> {
        self.written.iter().find(|(known, _)| known == key).map(|(_, version)| *version)
    }

    /// Records a hand-off to another key.
    pub fn note_hand_off(&mut self, to: ObjectKey) {
        self.hand_offs.push(to);
    }

    /// Whether this key was already handed off to another.
    pub fn was_handed_to(&self, key: &ObjectKey) -> bool {
        self.hand_offs.contains(key)
    }

    /// Records the end of an [`Action::Pause`](crate::Action::Pause).
    pub fn note_pause(&mut self) {
        self.pauses += 1;
    }

    /// The number of pauses.
    pub fn pause_count(&self) -> usize {
        self.pauses
    }

    /// Drops reads, lists and hand-offs, which a later change may have made stale. Outcomes and
    /// confirmed writes stay.
    pub fn clear_reads(&mut self) {
        self.reads.clear();
        self.lists.clear();
        self.hand_offs.clear();
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
            && self.lists.is_empty()
            && self.outcomes.is_empty()
            && self.hand_offs.is_empty()
            && self.written.is_empty()
            && self.pauses == 0
    }

    /// Adds everything to a digest. Objects are identified by key and version.
    pub fn digest(&self, state: &mut impl Hasher) {
        let version = |object: &Object| object.meta().version;
        digest_unordered(self.reads.iter().map(|(key, found)| (key, found.as_ref().map(version))), state);
        let listed = |found: &[Object]| found.iter().map(|object| (object.key(), version(object))).collect::<Vec<_>>();
        digest_unordered(self.lists.iter().map(|(listing, found)| (listing, listed(found))), state);
        for (task, outcome) in &self.outcomes {
            (task, format!("{outcome:?}")).hash(state);
        }
        (&self.hand_offs, self.pauses).hash(state);
        digest_unordered(self.written.iter(), state);
    }

    fn read(&self, key: &ObjectKey) -> Option<Option<&Object>> {
        self.reads.iter().find(|(known, _)| known == key).map(|(_, found)| found.as_ref())
    }

    /// Whether an object was read live.
    pub fn has_read(&self, key: &ObjectKey) -> bool {
        self.read(key).is_some()
    }

    /// The objects that a live list returned; `None` without such a list.
    pub fn listed(&self, listing: &Listing) -> Option<&[Object]> {
        self.lists.iter().find(|(known, _)| known == listing).map(|(_, found)| &**found)
    }

    /// The volume that a live read returned; `None` without such a read.
    pub fn volume(&self, name: &Name) -> Option<Option<&Arc<Volume>>> {
        Some(match self.read(&ObjectKey::volume(name.clone()))? {
            Some(Object::Volume(volume)) => Some(volume),
            Some(_) | None => None,
        })
    }

    /// The claim that a live read returned; `None` without such a read.
    pub fn claim(&self, key: &ClaimKey) -> Option<Option<&Arc<Claim>>> {
        Some(match self.read(&key.clone().into())? {
            Some(Object::Claim(claim)) => Some(claim),
            Some(_) | None => None,
        })
    }

    /// Whether a task succeeded.
    pub fn is_done(&self, task: Task) -> bool {
        self.success_count(task) > 0
    }

    /// How often a task succeeded.
    pub fn success_count(&self, task: Task) -> usize {
        self.outcomes.iter().filter(|(known, outcome)| *known == task && outcome.is_ok()).count()
    }

    /// The last output of a task.
    pub fn output(&self, task: Task) -> Option<&Arc<Value>> {
        let of_task = self.outcomes.iter().rev().filter(|(known, _)| *known == task);
        of_task.filter_map(|(_, outcome)| outcome.as_ref().ok()).find_map(|OperationOutput(value)| value.as_ref())
    }

    /// How often a task failed.
    pub fn failure_count(&self, task: Task) -> usize {
        self.failures(task).count()
    }

    /// The last failure of a task.
    pub fn last_failure(&self, task: Task) -> Option<&Failure> {
        self.failures(task).last()
    }

    fn failures(&self, task: Task) -> impl Iterator<Item = &Failure> {
        self.outcomes.iter().filter(move |(known, _)| *known == task).filter_map(|(_, outcome)| outcome.as_ref().err())
    }
}
