//! Storage was created: it becomes a volume, or is discarded, and then its record is removed.

use std::sync::Arc;
use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Claim, ClaimKey, Name, ObjectKey, Record, Volume};
use bindery_rules_api::{Action, Backoff, Create, Event, Measure, Operation, Request, Task, Timed, Verdict};
use serde_json::Value;

use crate::claim::warning;
use crate::record::remove;
use crate::rules;
use crate::ruleset::Decision;

impl Decision<'_> {
    /// The next step for created storage; `None` once nothing is left to do about it. Without a
    /// claim, the volume is released at once and reclaimed by its policy.
    pub fn finish(self, created: &Arc<Value>, record: Option<&Record>, claim: Option<&Claim>) -> Option<Verdict> {
        if self.live_reads.is_done(Task::DiscardStorage) {
            let record = record.filter(|record| self.is_own_attempt(record));
            return record.map(|record| remove(&rules::DISCARDED, record));
        }
        if !self.live_reads.is_done(Task::SaveVolume) {
            return Some(self.save(created, claim));
        }
        let name = volume_name(created);
        if self.live_reads.written_version(&ObjectKey::volume(name.clone())).is_some() {
            return self.provisioned(&name, record, claim);
        }
        // Another volume has the name, or another instance has created this one.
        match self.live_reads.volume(&name) {
            None => Some(Verdict::request(&rules::CHECK, Request::Read(ObjectKey::volume(name)))),
            Some(Some(volume)) if has_other_storage(created, volume) => Some(self.discard(claim, created)),
            Some(Some(volume)) => match (claim.and_then(|claim| self.volume_conflict(claim, volume)), record) {
                (None, _) => self.provisioned(&name, record, claim),
                // A volume has the storage, so no record is needed to find it.
                (Some(_), Some(record)) => Some(remove(&rules::PROVISIONED, record)),
                (Some(conflict), None) => Some(conflict),
            },
            Some(None) if claim.is_some() => {
                Some(Verdict::retry(&rules::CHECK, Backoff::Api, "a volume of that name existed and was deleted"))
            }
            // It was created and already reclaimed, or another volume had the name. Creating it
            // again is safe in both cases.
            Some(None) if self.live_reads.success_count(Task::SaveVolume) < 2 => Some(self.save(created, claim)),
            Some(None) => record.map(|record| remove(&rules::PROVISIONED, record)),
        }
    }

    /// The volume exists: the record is removed.
    fn provisioned(self, name: &Name, record: Option<&Record>, claim: Option<&Claim>) -> Option<Verdict> {
        let verdict = match (record, claim) {
            (Some(record), _) => remove(&rules::PROVISIONED, record),
            (None, Some(claim)) => {
                self.legacy_finalizer(claim, true).unwrap_or_else(|| Verdict::idle(&rules::PROVISIONED))
            }
            (None, None) => return None,
        };
        let success = |claim| {
            let message = format!("Successfully provisioned volume {name}");
            Event::claim(claim, EventType::Normal, Reason::ProvisioningSucceeded, message)
        };
        let verdict = verdict.measuring(Measure::End(Timed::Provision));
        Some(claim.map(success).into_iter().fold(verdict, Verdict::publish))
    }

    /// Creates the volume. After a failure it pauses, and keeps the output of the storage.
    fn save(self, created: &Arc<Value>, claim: Option<&Claim>) -> Verdict {
        let failures = self.live_reads.failure_count(Task::SaveVolume);
        if failures > self.live_reads.pause_count() {
            let error = self.last_error(Task::SaveVolume);
            let wait = Duration::from_millis(100).saturating_mul(1 << failures.min(9));
            let verdict = Verdict::new(&rules::SAVE_FAILED, Action::Pause(wait)).with_note(&error);
            let warn = |claim| warning(claim, format!("Error creating provisioned PV object: {error}"));
            return claim.map(warn).into_iter().fold(verdict, Verdict::publish);
        }
        let create = Create {
            key: ObjectKey::volume(volume_name(created)),
            body: (**created).clone(),
            purpose: &rules::SAVE,
            task: Task::SaveVolume,
            then: Vec::new(),
        };
        Verdict::request(&rules::SAVE, Request::Create(create))
    }

    fn last_error(self, task: Task) -> String {
        self.live_reads.last_failure(task).map(|failure| failure.error.clone()).unwrap_or_default()
    }

    /// Deletes storage that no volume refers to. The existing volume has other storage, which is
    /// not touched.
    fn discard(self, claim: Option<&Claim>, created: &Arc<Value>) -> Verdict {
        let failures = self.live_reads.failure_count(Task::DiscardStorage);
        if failures > self.live_reads.pause_count() {
            let error = self.last_error(Task::DiscardStorage);
            let wait = Duration::from_millis(500).saturating_mul(1 << failures.min(8));
            let verdict = Verdict::new(&rules::DISCARD_FAILED, Action::Pause(wait)).with_note(&error);
            let warn = |claim| Event::claim(claim, EventType::Warning, Reason::ProvisioningCleanupFailed, &error);
            return claim.map(warn).into_iter().fold(verdict, Verdict::publish);
        }
        let reference = &created["spec"]["claimRef"];
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let key = ClaimKey::new(text("namespace"), text("name"));
        let operation = Operation::DiscardStorage(key, created.clone());
        Verdict::request(&rules::DISCARD, Request::RunOperation(operation))
    }
}

fn volume_name(created: &Value) -> Name {
    Name::from(created["metadata"]["name"].as_str().unwrap_or_default())
}

/// Whether a volume's backing storage differs from the storage that was created.
fn has_other_storage(created: &Value, volume: &Volume) -> bool {
    let handle = Volume::from_json(created.to_string().as_bytes()).ok().and_then(|created| created.handle);
    handle.is_some() && handle != volume.handle
}
