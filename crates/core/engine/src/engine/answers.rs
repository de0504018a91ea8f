//! Handling answers: updating the cache, and deciding again about the key.

use std::time::Duration;

use bindery_cache::Change;
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::{Backoff, Create, Failure, FailureEffect, OperationOutput, Request, Task};

use super::Engine;
use crate::in_flight::InFlightRequest;
use crate::queue::{Cause, Work};
use crate::{Answer, RequestError, RequestId};

/// The state of an object in an answer.
pub(super) enum Found {
    /// It exists.
    Exists(Object),
    /// It does not exist. The cached version when the request was sent.
    Missing { cached_version: Option<u64> },
}

impl Engine {
    pub(super) fn answered(&mut self, id: RequestId, answer: Answer) {
        let error = match &answer {
            Answer::Rejected(error) => Some(error),
            Answer::Written(_) | Answer::Deleted(_) | Answer::Read(_) | Answer::Listed(_) | Answer::Done(_) => None,
        };
        if let Some((listing, waiting, is_needed)) = self.in_flight.complete_list(id) {
            self.gate.finish(self.now, id, false, error);
            if is_needed {
                self.gate.wait_for_list(listing.clone());
            }
            return self.listed_live(&listing, waiting, answer);
        }
        let Some(completed) = self.in_flight.complete(id) else { return };
        self.gate.finish(self.now, id, matches!(completed.request, Request::RunOperation(_)), error);
        let (work, target) = (completed.work.clone(), completed.request.target());
        self.handle_answer(completed, answer);
        if !self.in_flight.is_locked(&target) {
            // Keys waiting for the object may have applied pending writes to the cache. They are
            // dropped, and the keys are decided about again.
            self.drop_pending_write(&work, &target);
            for work in self.in_flight.take_waiting(&target) {
                self.queue.enqueue_first(work);
            }
        }
    }

    /// Handles the answer to a request, and decides about its key again.
    pub(super) fn handle_answer(&mut self, completed: InFlightRequest, answer: Answer) {
        let purpose = match &completed.request {
            Request::Write(write) => Some(write.purpose),
            Request::Create(create) => Some(create.purpose),
            Request::Bind(bind) => Some(bind.purpose),
            Request::Delete(_) | Request::Read(_) | Request::List(_) | Request::RunOperation(_) => None,
        };
        if let Some(purpose) = purpose {
            self.stats.count_write(purpose, !matches!(answer, Answer::Rejected(_)));
        }
        if let Answer::Rejected(error) = &answer {
            self.report_rejection(&completed.work, &completed.request.target(), error);
            return self.rejected(completed, error.clone());
        }
        // A read after a rejected write does not show that the write would succeed.
        if completed.checks_version.is_none() {
            self.settle_rejection(&completed.work, completed.request.locks_target());
        }
        let InFlightRequest { work, request, cached_version, checks_version } = completed;
        match (request, answer) {
            (Request::Write(write), Answer::Written(object)) => {
                let (target, version) = (write.target().clone(), object.meta().version);
                let found = if is_deleted(&object) { Found::Missing { cached_version } } else { Found::Exists(object) };
                self.update_cache(&work, write.target(), found);
                for event in write.then {
                    self.publish(work.set, event);
                }
                // Only records have a rule that depends on it.
                if target.kind == Kind::Record {
                    self.note_written(&work, target, version);
                }
                self.next_step(work);
            }
            (Request::Bind(bind), Answer::Written(object)) => {
                self.update_cache(&work, bind.target(), Found::Exists(object));
                for event in bind.then {
                    self.publish(work.set, event);
                }
                self.next_step(work);
            }
            (Request::Create(create), Answer::Written(object)) => {
                let version = object.meta().version;
                self.update_cache(&work, &create.key, Found::Exists(object));
                self.note_written(&work, create.key.clone(), version);
                self.created(work, create);
            }
            (Request::Read(key), Answer::Read(found)) => {
                self.update_cache(&work, &key, found.clone().map_or(Found::Missing { cached_version }, Found::Exists));
                match checks_version {
                    None => {
                        // A later version in the cache takes precedence.
                        let is_current = self.known.seen_version(&key) == found.as_ref().map(|f| f.meta().version);
                        if let Some(progress) = self.queue.get_mut(&work).filter(|_| is_current) {
                            progress.live_reads.note_read(key, found);
                        }
                        self.queue.enqueue_first(work);
                    }
                    Some(version) => self.checked(work, version, found),
                }
            }
            (Request::RunOperation(operation), Answer::Done(outcome)) => {
                self.note_outcome(&work, operation.task(), outcome);
                self.queue.enqueue_first(work);
            }
            (Request::Delete(_), Answer::Deleted(Some(object))) => {
                let key = object.key();
                self.update_cache(&work, &key, Found::Exists(object));
                self.next_step(work);
            }
            // The watch reports the deletion; until then there is nothing to do.
            (Request::Delete(_), Answer::Deleted(None)) => self.queue.idle_unless_woken(work),
            (request, answer) => {
                debug_assert!(false, "{answer:?} cannot answer {request:?}");
                self.drop_pending_write(&work, &request.target());
                self.retry(&work, Backoff::Api);
            }
        }
    }

    /// Updates the cache from an answer, and wakes the keys that the change affects.
    pub(super) fn update_cache(&mut self, work: &Work, key: &ObjectKey, found: Found) {
        let change = match found {
            Found::Exists(object) => self.known.answered(object),
            Found::Missing { cached_version } => self.known.answered_not_found(key, cached_version),
        };
        // Keys that were decided about with the pending write are woken, unless the object is as
        // the write predicted and the change wakes them anyway.
        let settled = self.unassume(key);
        let settled = settled.filter(|settled| change.is_none() || settled.before != settled.after);
        self.changed(settled, Cause::Settled, Some(work));
        self.changed(change, Cause::Change, Some(work));
        if !self.is_active() {
            self.queue.set_idle(work);
        }
    }

    /// Drops the pending write of an object from the cache, and wakes the keys that this affects.
    pub(super) fn drop_pending_write(&mut self, work: &Work, key: &ObjectKey) {
        let settled = self.unassume(key);
        self.changed(settled, Cause::Settled, Some(work));
    }

    /// Shows an object without its pending write, unless the request that owns it is in flight: a
    /// read by another key says nothing about that write.
    fn unassume(&mut self, key: &ObjectKey) -> Option<Change> {
        if self.in_flight.is_locked(key) { None } else { self.known.unassume(key) }
    }

    pub(super) fn created(&mut self, work: Work, create: Create) {
        for event in create.then {
            self.publish(work.set, event);
        }
        self.note_outcome(&work, create.task, Ok(OperationOutput::default()));
        self.queue.enqueue_first(work);
    }

    pub(super) fn note_outcome(&mut self, work: &Work, task: Task, outcome: Result<OperationOutput, Failure>) {
        if let Some(progress) = self.queue.get_mut(work) {
            progress.live_reads.clear_reads();
            progress.live_reads.note_outcome(task, outcome);
        }
    }

    /// Records that a write was confirmed, for rules that need to know that the object is theirs.
    fn note_written(&mut self, work: &Work, key: ObjectKey, version: u64) {
        if let Some(progress) = self.queue.get_mut(work) {
            progress.live_reads.note_written(key, version);
        }
    }

    /// A step is done: decides about the next one at once.
    pub(super) fn next_step(&mut self, work: Work) {
        if let Some(progress) = self.queue.get_mut(&work) {
            progress.live_reads.clear_reads();
            progress.rejections = 0;
            self.queue.enqueue_first(work);
        }
    }

    pub(super) fn rejected(&mut self, completed: InFlightRequest, error: RequestError) {
        let InFlightRequest { work, request, .. } = completed;
        match (request, error) {
            (Request::Create(create), RequestError::AlreadyExists) => self.created(work, create),
            (Request::Create(create), error) if !matches!(error, RequestError::RetryAfter(..)) => {
                self.note_outcome(&work, create.task, Err(failure(&error, FailureEffect::Nothing)));
                self.queue.enqueue_first(work);
            }
            (Request::RunOperation(operation), error) => {
                self.note_outcome(&work, operation.task(), Err(failure(&error, FailureEffect::NotAttempted)));
                self.queue.enqueue_first(work);
            }
            (Request::Write(write), error) if needs_check(&error) => {
                self.check(work, write.target().clone(), write.version());
            }
            (Request::Bind(bind), error) if needs_check(&error) => {
                self.check(work, bind.target().clone(), bind.version());
            }
            (Request::Delete(delete), error) if needs_check(&error) => {
                let volume = delete.proof().volume();
                self.check(work, ObjectKey::volume(volume.name.clone()), volume.version);
            }
            (request, error) => {
                if let Request::Write(write) = &request
                    && let Some(event) = &write.rejection_event
                {
                    self.publish(work.set, event.with_error(&error.to_string()));
                }
                self.drop_pending_write(&work, &request.target());
                match error {
                    RequestError::RetryAfter(delay, _) => {
                        self.retry_after(&work, delay);
                    }
                    RequestError::Conflict
                    | RequestError::NotFound
                    | RequestError::AlreadyExists
                    | RequestError::Lost
                    | RequestError::Unknown(..)
                    | RequestError::Error(..) => self.retry(&work, Backoff::Api),
                }
            }
        }
    }

    /// Decides again as soon as the server allows. Outcomes stay: nothing has changed since.
    pub(super) fn retry_after(&mut self, work: &Work, delay: Duration) {
        if let Some(progress) = self.queue.get_mut(work) {
            progress.live_reads.clear_reads();
        }
        let due = self.gate.paused_until(self.now).unwrap_or_default().max(self.now + delay);
        self.queue.note_retry(work);
        self.schedule(work, due, false);
    }

    /// Reads an object whose write or deletion was rejected. Its pending write stays until the
    /// answer.
    pub(super) fn check(&mut self, work: Work, key: ObjectKey, version: u64) {
        self.send(work, Request::Read(key), Some(version));
    }

    /// Continues after such a read: at once if the object has changed, otherwise after a back-off.
    pub(super) fn checked(&mut self, work: Work, version: u64, found: Option<Object>) {
        if found.is_some_and(|object| object.meta().version <= version) {
            return self.retry(&work, Backoff::Api);
        }
        if let Some(progress) = self.queue.get_mut(&work) {
            progress.live_reads.clear_reads();
            self.queue.enqueue_first(work);
        }
    }
}

/// Whether only a live read shows the current state: the cache is stale, or the outcome is unknown.
fn needs_check(error: &RequestError) -> bool {
    match error {
        RequestError::Conflict | RequestError::NotFound | RequestError::Lost | RequestError::Unknown(..) => true,
        RequestError::AlreadyExists | RequestError::RetryAfter(..) | RequestError::Error(..) => false,
    }
}

/// The failure for an error. Without a response, the outcome is unknown.
fn failure(error: &RequestError, effect: FailureEffect) -> Failure {
    let effect = match error {
        RequestError::Lost | RequestError::Unknown(..) => FailureEffect::Unknown,
        RequestError::Conflict
        | RequestError::NotFound
        | RequestError::AlreadyExists
        | RequestError::RetryAfter(..)
        | RequestError::Error(..) => effect,
    };
    Failure::new(error.to_string()).with(effect)
}

/// Whether a write has removed the last finalizer of a Terminating object, and so deleted it. The
/// response still contains the object in its former version.
fn is_deleted(object: &Object) -> bool {
    match object {
        Object::Claim(claim) => claim.deleting && claim.finalizers.is_empty(),
        Object::Volume(volume) => volume.deleting && volume.finalizers.is_empty(),
        Object::AttributesClass(class) => class.deleting && class.finalizers.is_empty(),
        Object::Record(record) => record.deleting,
        Object::Class(_)
        | Object::Pod(_)
        | Object::Node(_)
        | Object::CsiNode(_)
        | Object::CsiDriver(_)
        | Object::Capacity(_)
        | Object::Attachment(_) => false,
    }
}
