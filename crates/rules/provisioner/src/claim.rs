//! Claims: whether a volume is provisioned, and the steps until it is recorded.

use std::sync::Arc;
use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{
    Annotation, Attempt, BindingMode, Claim, ClaimKey, Class, Kind, Name, ObjectKey, Volume, VolumeMode, finalizer,
    migration,
};
use bindery_rules_api::{
    Action, Backoff, ClaimEdit, Create, Edit, Event, FailureEffect, Measure, Operation, ProvisionRequest, Request,
    Task, Timed, Verdict, Write,
};
use serde_json::Value;

use crate::requested::{is_requested, selected_node};
use crate::ruleset::Decision;
use crate::{rules, topology};

/// How long a claim waits when there are too many records.
const FULL_WAIT: Duration = Duration::from_secs(2);

impl Decision<'_> {
    /// Decides about a claim.
    pub fn claim(self, key: &ClaimKey) -> Verdict {
        let created = self.live_reads.output(Task::CreateStorage);
        let Some(claim) = self.known.claim(key) else { return self.claim_deleted(key, created) };
        if let Some(created) = created.filter(|created| claim_uid(created) != claim.meta.uid) {
            let again = || Verdict::retry(&rules::STALE, Backoff::Api, "the claim was deleted and created again");
            return self.finish_orphan(created).unwrap_or_else(again);
        }
        if let Some(error) = &claim.field_error {
            return Verdict::idle(&rules::CLAIM_MALFORMED).with_note(error.to_string());
        }
        if let Some(verdict) = self.clone_source(claim) {
            return verdict;
        }
        let record = self.known.record(&claim.meta.uid).map(|record| &**record);
        if let Some(created) = created {
            let again = || Verdict::retry(&rules::DISCARDED, Backoff::Storage, "another volume has the name");
            return self.finish(created, record, Some(claim)).unwrap_or_else(again);
        }
        if let Some(record) = record {
            return self.resume(record, Some(claim));
        }
        let name = self.config.volume_name(&claim.meta.uid);
        let volume = self.known.volume(&name);
        if let Some(verdict) = self.legacy_finalizer(claim, volume.is_some()) {
            return verdict;
        }
        if let Some(verdict) = self.not_needed(claim) {
            return verdict;
        }
        if let Some(volume) = volume {
            return self.volume_exists(claim, volume);
        }
        let Some(class) = self.known.class(claim.class()) else { return class_missing(claim) };
        if !self.config.has_name(&class.provisioner) {
            return Verdict::idle(&rules::CLASS_NOT_OURS).with_note(format!("provisioner {}", class.provisioner));
        }
        if claim.volume_mode == VolumeMode::Block && !self.config.supports_block {
            let message = format!("{} does not support block volume provisioning", class.provisioner);
            return Verdict::idle(&rules::NO_BLOCK).publish(warning(claim, message));
        }
        self.provision(claim, self.request(claim, class, name))
    }

    /// The claim was deleted. Storage that was just created for it is handled first; a record of
    /// other storage is handled by itself.
    fn claim_deleted(self, key: &ClaimKey, created: Option<&Arc<Value>>) -> Verdict {
        created.and_then(|created| self.finish_orphan(created)).unwrap_or_else(|| {
            Verdict::idle(&rules::CLAIM_DELETED).with_note(key.to_string()).measuring(Measure::Drop(Timed::Provision))
        })
    }

    /// Storage was created for a claim that does not exist anymore.
    fn finish_orphan(self, created: &Arc<Value>) -> Option<Verdict> {
        let record = self.known.record(&Name::from(claim_uid(created)));
        self.finish(created, record.map(|record| &**record), None)
    }

    /// Removes the finalizer and annotation with which earlier versions recorded that storage may
    /// exist, once the claim has its volume. Until then it is provisioned as any other claim: the
    /// annotation is written by users, too, and nothing in it is used.
    pub fn legacy_finalizer(self, claim: &Claim, has_volume: bool) -> Option<Verdict> {
        let has_finalizer = claim.finalizers.iter().any(|name| name == finalizer::PROVISIONING);
        if !has_finalizer
            || !(has_volume || claim.volume.is_some())
            || !is_requested(claim, self.config)
            || !self.config.serves_node(selected_node(claim))
        {
            return None;
        }
        let others = claim.finalizers.iter().filter(|name| **name != finalizer::PROVISIONING);
        let edit = ClaimEdit {
            annotations: vec![(Annotation::Provisioning, None)],
            finalizers: Some(others.cloned().collect()),
            ..ClaimEdit::default()
        };
        let write = Write::claim(&rules::LEGACY_FINALIZER, claim, Edit::Claim(edit));
        Some(Verdict::write(&rules::LEGACY_FINALIZER, write))
    }

    /// Why no volume is provisioned for a claim, if so.
    fn not_needed(self, claim: &Claim) -> Option<Verdict> {
        if claim.volume.is_some() {
            return Some(Verdict::idle(&rules::HAS_VOLUME).measuring(Measure::End(Timed::Provision)));
        }
        if !is_requested(claim, self.config) {
            return Some(Verdict::idle(&rules::NOT_REQUESTED));
        }
        if !self.config.serves_node(selected_node(claim)) {
            return Some(Verdict::idle(&rules::NOT_OURS).with_note("another node, or none, is selected for the claim"));
        }
        let Some(class) = self.known.class(claim.class()) else { return Some(class_missing(claim)) };
        let waits = class.binding == Some(BindingMode::WaitForFirstConsumer) && selected_node(claim).is_none();
        waits.then(|| Verdict::idle(&rules::WAITS_FOR_NODE).measuring(Measure::Drop(Timed::Provision)))
    }

    /// The request to the storage, from the claim and its class.
    fn request(self, claim: &Claim, class: &Class, volume: Name) -> ProvisionRequest {
        let selected = |annotation| claim.annotations.get(annotation).filter(|node| !node.is_empty()).cloned();
        let node = selected(Annotation::SelectedNode).or_else(|| selected(Annotation::AlphaSelectedNode));
        let topology = match self.config.topology {
            None => Ok(None),
            Some(config) => {
                let allowed = migration::topologies(class);
                topology::requirement(self.known, &self.config.name, &allowed, &claim.meta.name, node.as_ref(), config)
            }
        };
        ProvisionRequest {
            claim: claim.key(),
            uid: claim.meta.uid.clone(),
            version: claim.meta.version,
            class: claim.class().clone(),
            class_version: class.meta.version,
            provisioner: class.provisioner.clone(),
            volume,
            has_finalizer: self.config.adds_finalizer,
            node,
            topology,
            attempt: None,
        }
    }

    /// The next step without a record: prepare, then record. The outcomes so far show which steps
    /// are done.
    fn provision(self, claim: &Claim, request: ProvisionRequest) -> Verdict {
        for task in [Task::CreateStorage, Task::Prepare] {
            if let Some(failure) = self.live_reads.last_failure(task) {
                return self.failed(claim, failure);
            }
        }
        let Some(prepared) = self.live_reads.output(Task::Prepare) else {
            if self.known.count(Kind::Record) >= self.config.records_max {
                return Verdict::new(&rules::RECORDS_FULL, Action::Pause(FULL_WAIT));
            }
            if self.live_reads.pause_count() > 0 {
                // Later steps count their own pauses.
                return Verdict::retry(&rules::RECORDS_FULL, Backoff::Api, "others are finished");
            }
            let begin = Measure::Begin(Timed::Provision, measured_as(claim));
            let operation = Operation::Prepare(Box::new(request));
            return Verdict::request(&rules::PREPARE, Request::RunOperation(operation))
                .publish(provisioning(claim))
                .measuring(begin);
        };
        if !request.is_prepared(prepared) {
            return Verdict::retry(&rules::STALE, Backoff::Api, "the claim has changed since it was prepared");
        }
        self.save_record(claim, &request, prepared)
    }

    /// Writes the record. Its version is then known to be the one of this attempt.
    fn save_record(self, claim: &Claim, request: &ProvisionRequest, prepared: &Value) -> Verdict {
        let key = ObjectKey::record(claim.meta.uid.clone());
        let failure = self.live_reads.last_failure(Task::SaveRecord);
        if let Some(failure) = failure.filter(|failure| failure.effect != FailureEffect::Unknown) {
            let message = format!("cannot write the provisioning record: {}", failure.error);
            return Verdict::retry(&rules::RECORD_FAILED, Backoff::Api, &message).publish(warning(claim, message));
        }
        if failure.is_some() || self.live_reads.is_done(Task::SaveRecord) {
            // It may have been written, by this instance or by another, and the cache does not
            // contain it yet.
            return match self.live_reads.has_read(&key) {
                false => Verdict::request(&rules::CHECK_RECORD, Request::Read(key)),
                true => Verdict::retry(&rules::CHECK_RECORD, Backoff::Api, "the record does not exist"),
            };
        }
        let attempt = Attempt { instance: self.config.instance.clone(), number: 1 };
        let body = request.record(&self.config.name, &attempt, prepared);
        let (size, size_max) = (body.to_string().len(), self.config.record_bytes_max);
        if size > size_max {
            let message =
                format!("the request for the volume has {size} bytes, and {size_max} is the most that can be recorded");
            return Verdict::idle(&rules::RECORD_TOO_LARGE).with_note(&message).publish(warning(claim, message));
        }
        let create = Create { key, body, purpose: &rules::RECORD, task: Task::SaveRecord, then: Vec::new() };
        Verdict::request(&rules::RECORD, Request::Create(create))
    }

    /// A volume with the claim's name exists, and no record. It belongs to the claim, or conflicts
    /// with it.
    fn volume_exists(self, claim: &Claim, volume: &Volume) -> Verdict {
        self.volume_conflict(claim, volume)
            .unwrap_or_else(|| Verdict::idle(&rules::PROVISIONED).measuring(Measure::End(Timed::Provision)))
    }

    /// Why a volume with the claim's name is not the claim's, if so.
    pub fn volume_conflict(self, claim: &Claim, volume: &Volume) -> Option<Verdict> {
        if !volume.belongs_to(&claim.meta.uid) {
            let message = format!("volume {} already exists and belongs to another claim", volume.name());
            return Some(Verdict::idle(&rules::NAME_TAKEN).with_note(&message).publish(warning(claim, message)));
        }
        volume.deleting.then(|| {
            let message = format!(
                "volume {} provisioned for this claim is being deleted; another one will be provisioned afterwards",
                volume.name()
            );
            Verdict::idle(&rules::VOLUME_TERMINATING).with_note(&message).publish(warning(claim, message))
        })
    }
}

fn class_missing(claim: &Claim) -> Verdict {
    let message = format!("storageclass.storage.k8s.io {:?} not found", claim.class().as_str());
    Verdict::idle(&rules::CLASS_MISSING).with_note(message)
}

/// The UID of the claim that storage was created for.
pub(crate) fn claim_uid(created: &Value) -> &str {
    created["spec"]["claimRef"]["uid"].as_str().unwrap_or_default()
}

/// The event that the storage is about to be called.
pub(crate) fn provisioning(claim: &Claim) -> Event {
    let message = format!("External provisioner is provisioning volume for claim \"{}\"", claim.key());
    Event::claim(claim, EventType::Normal, Reason::Provisioning, message)
}

/// A warning that provisioning failed.
pub(crate) fn warning(claim: &Claim, message: impl Into<String>) -> Event {
    Event::claim(claim, EventType::Warning, Reason::ProvisioningFailed, message)
}

/// The labels that provisioning is measured under: the claim's class and the kind of its data
/// source, separated by a slash, which neither can contain.
fn measured_as(claim: &Claim) -> Name {
    let class = claim.class_field.as_deref().unwrap_or_default();
    let source = claim.source.as_ref().map_or("", |source| source.kind.as_str());
    format!("{class}/{source}").into()
}
