//! Answers: what is learnt from them, and how it goes on, even when there was none.

use bindery_model::{Object, ObjectKey};
use bindery_rules_api::{Backoff, Create, Failure, FailureEffect, OperationOutput, Request, Task};

use super::Engine;
use crate::flights::Flight;
use crate::progress::Work;
use crate::{Answer, RequestError, RequestId};

/// What an answer says of an object.
pub(super) enum Found {
    /// It is there, and so.
    Here(Object),
    /// There was none, when this version of it was known.
    Gone { asked_at: Option<u64> },
}

impl Engine {
    pub(super) fn answered(&mut self, id: RequestId, answer: Answer) {
        if let Some((listing, askers)) = self.flights.arrive_list(id) {
            return self.listed_live(&listing, askers, answer);
        }
        let Some(flight) = self.flights.arrive(id) else { return };
        let is_operation = matches!(flight.request, Request::RunOperation(_));
        let (work, target) = (flight.work.clone(), flight.request.target());
        self.land(flight, answer);
        if !self.flights.is_busy(&target) {
            // What those who waited for the object mean to do was shown to others: now they look at it as it is.
            self.give_back(&work, &target);
            for work in self.flights.unpark(&target) {
                self.agenda.hurry(work);
            }
        }
        if is_operation && let Some(work) = self.flights.unpark_for_operation() {
            self.agenda.hurry(work);
        }
    }

    /// Takes in an answer, and has its key looked at again.
    pub(super) fn land(&mut self, flight: Flight, answer: Answer) {
        let purpose = match &flight.request {
            Request::Write(write) => Some(write.purpose),
            Request::Create(create) => Some(create.purpose),
            Request::Bind(bind) => Some(bind.purpose),
            Request::Delete(_) | Request::Read(_) | Request::List(_) | Request::RunOperation(_) => None,
        };
        if let Some(purpose) = purpose {
            self.stats.count_write(purpose, !matches!(answer, Answer::Refused(_)));
        }
        if let Answer::Refused(refusal) = &answer {
            self.stats.refused += 1;
            return self.refused(flight, refusal.clone());
        }
        let Flight { work, request, asked_at, checks_version } = flight;
        match (request, answer) {
            (Request::Write(write), Answer::Written(object)) => {
                let found = if is_over(&object) { Found::Gone { asked_at } } else { Found::Here(object) };
                self.learn(&work, write.target(), found);
                for notice in write.then {
                    self.publish(work.set, notice);
                }
                self.go_on(work);
            }
            (Request::Bind(bind), Answer::Written(object)) => {
                self.learn(&work, bind.target(), Found::Here(object));
                for notice in bind.then {
                    self.publish(work.set, notice);
                }
                self.go_on(work);
            }
            (Request::Create(create), Answer::Written(object)) => {
                self.learn(&work, &create.key, Found::Here(object));
                self.created(work, create);
            }
            (Request::Read(key), Answer::Read(found)) => {
                self.learn(&work, &key, found.clone().map_or(Found::Gone { asked_at }, Found::Here));
                match checks_version {
                    None => {
                        // What is known may be from later, and then it is what counts.
                        let is_current = self.known.seen_version(&key) == found.as_ref().map(|f| f.meta().version);
                        if let Some(progress) = self.agenda.get_mut(&work).filter(|_| is_current) {
                            progress.live_reads.note_read(key, found);
                        }
                        self.agenda.hurry(work);
                    }
                    Some(version) => self.checked(work, version, found),
                }
            }
            (Request::RunOperation(operation), Answer::Done(outcome)) => {
                self.note_outcome(&work, operation.task(), outcome);
                self.agenda.hurry(work);
            }
            (Request::Delete(_), Answer::Deleted(Some(object))) => {
                let key = object.key();
                self.learn(&work, &key, Found::Here(object));
                self.go_on(work);
            }
            // The watch tells when it is gone; until then there is nothing to do.
            (Request::Delete(_), Answer::Deleted(None)) => self.agenda.rest_or_hurry(work),
            (request, answer) => {
                debug_assert!(false, "{answer:?} is no answer to {request:?}");
                self.give_back(&work, &request.target());
                self.retry(&work, Backoff::Api);
            }
        }
    }

    /// Takes in what an answer says of an object, and wakes all whom it concerns.
    pub(super) fn learn(&mut self, work: &Work, key: &ObjectKey, found: Found) {
        let change = match found {
            Found::Here(object) => self.known.answered(object),
            Found::Gone { asked_at } => self.known.answered_not_found(key, asked_at),
        };
        // Whoever was shown it as assumed looks again, unless it came just so and the change tells them anyway.
        let settled = self.known.unassume(key);
        let settled = settled.filter(|settled| change.is_none() || settled.before != settled.after);
        self.changed(settled, Some(work));
        self.changed(change, Some(work));
        if !self.is_active() {
            self.agenda.rest(work);
        }
    }

    /// Shows an object as it was seen again, and has whoever was shown it as assumed look again.
    pub(super) fn give_back(&mut self, work: &Work, key: &ObjectKey) {
        let settled = self.known.unassume(key);
        self.changed(settled, Some(work));
    }

    pub(super) fn created(&mut self, work: Work, create: Create) {
        for notice in create.then {
            self.publish(work.set, notice);
        }
        self.note_outcome(&work, create.task, Ok(OperationOutput::default()));
        self.agenda.hurry(work);
    }

    pub(super) fn note_outcome(&mut self, work: &Work, task: Task, outcome: Result<OperationOutput, Failure>) {
        if let Some(progress) = self.agenda.get_mut(work) {
            progress.live_reads.forget_passing();
            progress.live_reads.note_outcome(task, outcome);
        }
    }

    /// A step is done: the next is looked for at once.
    pub(super) fn go_on(&mut self, work: Work) {
        if let Some(progress) = self.agenda.get_mut(&work) {
            progress.live_reads.forget_passing();
            progress.refusals = 0;
            self.agenda.hurry(work);
        }
    }

    pub(super) fn refused(&mut self, flight: Flight, refusal: RequestError) {
        let Flight { work, request, .. } = flight;
        match (request, refusal) {
            (Request::Create(create), RequestError::AlreadyExists) => self.created(work, create),
            (Request::Create(create), refusal) if !matches!(refusal, RequestError::Later(..)) => {
                self.note_outcome(&work, create.task, Err(failure(&refusal, FailureEffect::Nothing)));
                self.agenda.hurry(work);
            }
            (Request::RunOperation(operation), refusal) => {
                self.note_outcome(&work, operation.task(), Err(failure(&refusal, FailureEffect::Untried)));
                self.agenda.hurry(work);
            }
            // What is known is behind, or nobody knows what became of it: a live read tells.
            (Request::Write(write), RequestError::Conflict | RequestError::NotFound | RequestError::Lost) => {
                self.check(work, write.target().clone(), write.version());
            }
            (Request::Bind(bind), RequestError::Conflict | RequestError::NotFound | RequestError::Lost) => {
                self.check(work, bind.target().clone(), bind.version());
            }
            (Request::Delete(delete), RequestError::Conflict | RequestError::NotFound | RequestError::Lost) => {
                let volume = delete.proof().volume();
                self.check(work, ObjectKey::volume(volume.name.clone()), volume.version);
            }
            (request, refusal) => {
                if let Request::Write(write) = &request
                    && let Some(regret) = &write.regret
                {
                    self.publish(work.set, regret.notice(&refusal.to_string()));
                }
                self.give_back(&work, &request.target());
                match refusal {
                    RequestError::Later(delay, _) => {
                        if let Some(progress) = self.agenda.get_mut(&work) {
                            progress.live_reads = Default::default();
                        }
                        self.agenda.due(&work, self.now + delay, false);
                    }
                    RequestError::Conflict
                    | RequestError::NotFound
                    | RequestError::AlreadyExists
                    | RequestError::Lost
                    | RequestError::Error(_) => self.retry(&work, Backoff::Api),
                }
            }
        }
    }

    /// Reads an object whose write or deletion was refused. It stays as assumed until it is known what became of it.
    pub(super) fn check(&mut self, work: Work, key: ObjectKey, version: u64) {
        self.send(work, Request::Read(key), Some(version));
    }

    /// Goes on after such a read: at once when there is news, else after a while.
    pub(super) fn checked(&mut self, work: Work, version: u64, found: Option<Object>) {
        if found.is_some_and(|object| object.meta().version <= version) {
            return self.retry(&work, Backoff::Api);
        }
        if let Some(progress) = self.agenda.get_mut(&work) {
            progress.live_reads.forget_passing();
            self.agenda.hurry(work);
        }
    }
}

/// What is certain of something that was refused: where there was no answer, nothing.
fn failure(refusal: &RequestError, after: FailureEffect) -> Failure {
    let after = match refusal {
        RequestError::Lost => FailureEffect::Unknown,
        RequestError::Conflict
        | RequestError::NotFound
        | RequestError::AlreadyExists
        | RequestError::Later(..)
        | RequestError::Error(_) => after,
    };
    Failure::new(refusal.to_string()).with(after)
}

/// Whether a write has made an object go: somebody deleted it, and nothing holds it back any more. The answer carries it all the
/// same, in the version that it had before.
fn is_over(object: &Object) -> bool {
    match object {
        Object::Claim(claim) => claim.deleting && claim.finalizers.is_empty(),
        Object::Volume(volume) => volume.deleting && volume.finalizers.is_empty(),
        Object::AttributesClass(class) => class.deleting && class.finalizers.is_empty(),
        Object::Class(_)
        | Object::Pod(_)
        | Object::Node(_)
        | Object::CsiNode(_)
        | Object::CsiDriver(_)
        | Object::Capacity(_)
        | Object::Attachment(_) => false,
    }
}
