//! Provisioning records: calling the storage until it is certain what it has created.
//!
//! A record is decided about with its claim while the claim exists, and by itself afterwards. Each
//! call is made in an attempt of its own: only in the version of the record that was written for
//! this very call, so that no delayed write for an earlier call can remove it.

use std::time::Duration;

use bindery_model::{Annotation, Attempt, Claim, Name, ObjectKey, Record};
use bindery_rules_api::{
    Action, Backoff, Failure, FailureEffect, Operation, RecordEdit, Recorded, Request, Rule, Task, Verdict, Write,
};

use crate::claim::{provisioning, warning};
use crate::failure::publish;
use crate::rules;
use crate::ruleset::Decision;

/// How long a record of another instance must exist before this one takes it over.
const TAKE_OVER_AFTER: Duration = Duration::from_secs(10);

impl Decision<'_> {
    /// Decides about a record.
    pub fn record(self, claim_uid: &Name) -> Verdict {
        let record = self.known.record(claim_uid).map(|record| &**record);
        if let Some(created) = self.live_reads.output(Task::CreateStorage) {
            let again = || match record {
                Some(_) => Verdict::retry(&rules::DISCARDED, Backoff::Storage, "another volume has the name"),
                None => Verdict::idle(&rules::RECORD_REMOVED),
            };
            return self.finish(created, record, None).unwrap_or_else(again);
        }
        let Some(record) = record else { return Verdict::idle(&rules::RECORD_REMOVED) };
        let claim = self.known.claim(&record.claim);
        if claim.is_some_and(|claim| claim.meta.uid == record.meta.name) {
            // The claim may be idle if the answer to writing the record was lost. One that is being
            // worked on is not disturbed.
            let claim = ObjectKey::from(record.claim.clone());
            if self.live_reads.was_handed_to(&claim) {
                return Verdict::idle(&rules::RECORD_OF_CLAIM);
            }
            // Another instance that is active works on its own records. One that has stopped leaves
            // them, and so does one whose request is carried out late.
            let is_ours = record.attempt.instance == self.config.instance
                || self.known.volume(&self.config.volume_name(&record.meta.name)).is_some();
            let action = match is_ours || self.live_reads.pause_count() > 0 {
                true => Action::HandOff(claim),
                false => Action::Pause(TAKE_OVER_AFTER),
            };
            return Verdict::new(&rules::RECORD_OF_CLAIM, action);
        }
        self.resume(record, None)
    }

    /// The next step of a record: another attempt, or the call for it.
    pub fn resume(self, record: &Record, claim: Option<&Claim>) -> Verdict {
        let recorded = match (&record.field_error, Recorded::of(record)) {
            (None, Ok(recorded)) => recorded,
            (Some(error), _) => return malformed(error.to_string()),
            (None, Err(error)) => return malformed(error),
        };
        let is_ours = recorded.driver == self.config.name
            && self.config.has_name(&recorded.provisioner)
            && self.config.serves_node(recorded.node.as_ref());
        if !is_ours {
            return Verdict::idle(&rules::RECORD_NOT_OURS).with_note(format!("provisioner {}", recorded.provisioner));
        }
        if let Some(verdict) = self.has_saved_volume(record, &recorded.volume) {
            return verdict;
        }
        if let Some(failure) = self.live_reads.last_failure(Task::CreateStorage) {
            return self.create_failed(record, claim, failure);
        }
        if !self.is_own_attempt(record) {
            let number = record.attempt.number.saturating_add(1);
            let attempt = Attempt { instance: self.config.instance.clone(), number };
            let write = Write::record(&rules::RECORD_ATTEMPT, record, RecordEdit::Begin(attempt));
            let verdict = Verdict::write(&rules::RECORD_ATTEMPT, write);
            return claim.map(provisioning).into_iter().fold(verdict, Verdict::publish);
        }
        let (request, prepared) = recorded.request(record);
        let operation = Operation::CreateStorage(Box::new(request), prepared.into());
        Verdict::request(&rules::CREATE, Request::RunOperation(operation))
    }

    /// Whether the record is in the version that was written for the call which is decided about.
    /// If not, another instance may have called the storage since, or a delayed write may change
    /// the record.
    pub fn is_own_attempt(self, record: &Record) -> bool {
        let written = self.live_reads.written_version(&ObjectKey::record(record.meta.name.clone()));
        written == Some(record.meta.version) && !record.deleting
    }

    /// Removes the record if its volume exists. A volume of that name which another provisioner or
    /// a user created does not count: the storage is called, and the results are compared.
    fn has_saved_volume(self, record: &Record, name: &Name) -> Option<Verdict> {
        let is_saved = |volume: &bindery_model::Volume| {
            let provisioner = volume.annotations.get(Annotation::ProvisionedBy);
            volume.belongs_to(&record.meta.name) && provisioner.is_some_and(|name| self.config.has_name(name))
        };
        self.known.volume(name).filter(|volume| is_saved(volume))?;
        match self.live_reads.volume(name) {
            // The cache may be late, and the volume deleted together with its storage.
            None => Some(Verdict::request(&rules::CHECK, Request::Read(ObjectKey::volume(name.clone())))),
            Some(volume) => volume.filter(|volume| is_saved(volume)).map(|_| remove(&rules::PROVISIONED, record)),
        }
    }

    /// Decides after a call failed. The record stays until it is certain what the storage has
    /// created.
    fn create_failed(self, record: &Record, claim: Option<&Claim>, failure: &Failure) -> Verdict {
        let error = &failure.error;
        let rule = match failure.effect {
            FailureEffect::Unknown => &rules::OUTCOME_UNKNOWN,
            // The record has changed, and the watch will report it. Nothing has failed.
            FailureEffect::Stale => return Verdict::retry(&rules::STALE, Backoff::Api, error),
            // The record is another instance's now, and none is needed for this call.
            FailureEffect::NotOurs if !self.is_own_attempt(record) => {
                return Verdict::idle(&rules::NOT_OURS).with_note(error);
            }
            FailureEffect::NotAttempted if record.outcome_unknown => &rules::NOT_ATTEMPTED,
            _ if !self.is_own_attempt(record) => &rules::SUPERSEDED,
            FailureEffect::NameTaken if record.outcome_unknown => &rules::PARAMETERS_CHANGED,
            FailureEffect::Nothing | FailureEffect::Infeasible | FailureEffect::NotOurs | FailureEffect::InUse
                if record.outcome_unknown =>
            {
                &rules::INCONCLUSIVE
            }
            FailureEffect::Nothing
            | FailureEffect::NotAttempted
            | FailureEffect::Infeasible
            | FailureEffect::NotOurs
            | FailureEffect::InUse
            | FailureEffect::NameTaken
            | FailureEffect::Absent
            | FailureEffect::Reschedule => return remove(&rules::CREATED_NOTHING, record).with_note(error),
        };
        let backoff = if failure.effect == FailureEffect::Infeasible { Backoff::Infeasible } else { Backoff::Storage };
        let verdict = Verdict::retry(rule, backoff, error);
        match claim {
            Some(claim) => publish(verdict, warning(claim, error)),
            None => verdict,
        }
    }
}

/// Removes a record.
pub(crate) fn remove(rule: &'static Rule, record: &Record) -> Verdict {
    Verdict::write(rule, Write::record(rule, record, RecordEdit::Remove))
}

fn malformed(error: String) -> Verdict {
    Verdict::retry(&rules::RECORD_MALFORMED, Backoff::Storage, error)
}
