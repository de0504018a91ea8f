//! Claims: whether a volume is provisioned, and the steps to do so, one at a time.

use std::sync::Arc;
use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Annotation, BindingMode, Claim, ClaimKey, Class, Name, ObjectKey, Volume, VolumeMode, migration};
use bindery_rules_api::{
    Action, Backoff, Create, Event, Measure, Operation, ProvisionRequest, Request, Task, Timed, Verdict,
};
use serde_json::{Value, json};

use crate::intent::{self, Intent};
use crate::ruleset::Decision;
use crate::{rules, topology};

impl Decision<'_> {
    /// Decides about a claim.
    pub fn claim(self, key: &ClaimKey) -> Verdict {
        let Some(claim) = self.known.claim(key) else { return self.claim_deleted(key) };
        if let Some(error) = &claim.field_error {
            return Verdict::idle(&rules::CLAIM_MALFORMED).with_note(error.to_string());
        }
        if let Some(verdict) = self.orphan(claim) {
            return verdict;
        }
        if let Some(verdict) = self.clone_source(claim) {
            return verdict;
        }
        let intent = intent::of(claim, self.config);
        if self.live_reads.is_done(Task::DiscardStorage) {
            return self.discarded(claim, intent.as_ref());
        }
        let created = self.live_reads.output(Task::CreateStorage);
        if intent.is_none()
            && created.is_none()
            && let Some(verdict) = self.not_needed(claim)
        {
            return verdict;
        }
        let name = self.config.volume_name(claim);
        if let Some(volume) =
            self.known.volume(&name).filter(|volume| self.is_conclusive_volume(intent.as_ref(), volume))
        {
            return self.volume_exists(claim, intent.as_ref(), volume);
        }
        if let Some(created) = created {
            return self.save_created(claim, intent.as_ref(), name, created);
        }
        let Some(class) = self.known.class(claim.class()) else { return class_missing(claim) };
        if !self.config.has_name(&class.provisioner) {
            return Verdict::idle(&rules::CLASS_NOT_OURS).with_note(format!("provisioner {}", class.provisioner));
        }
        if claim.volume_mode == VolumeMode::Block && !self.config.supports_block {
            let message = format!("{} does not support block volume provisioning", class.provisioner);
            return Verdict::idle(&rules::NO_BLOCK).publish(warning(claim, message));
        }
        let request = self.request(claim, class, intent.as_ref(), name);
        self.provision(claim, intent.as_ref(), request)
    }

    /// Why no volume is provisioned for a claim, if so.
    fn not_needed(self, claim: &Claim) -> Option<Verdict> {
        if claim.volume.is_some() {
            return Some(Verdict::idle(&rules::HAS_VOLUME).measuring(Measure::End(Timed::Provision)));
        }
        if !intent::is_requested(claim, self.config) {
            return Some(Verdict::idle(&rules::NOT_REQUESTED));
        }
        if !self.config.serves_node(intent::selected_node(claim)) {
            return Some(Verdict::idle(&rules::NOT_OURS).with_note("another node, or none, is selected for the claim"));
        }
        let Some(class) = self.known.class(claim.class()) else { return Some(class_missing(claim)) };
        let waits = class.binding == Some(BindingMode::WaitForFirstConsumer) && intent::selected_node(claim).is_none();
        waits.then(|| Verdict::idle(&rules::WAITS_FOR_NODE).measuring(Measure::Drop(Timed::Provision)))
    }

    /// The request to the storage. If an earlier call has an unknown outcome, its parameters are
    /// used again.
    fn request(self, claim: &Claim, class: &Class, intent: Option<&Intent>, volume: Name) -> ProvisionRequest {
        let selected = |annotation| claim.annotations.get(annotation).filter(|node| !node.is_empty()).cloned();
        let node = match intent {
            Some(intent) => intent.node.clone(),
            None => selected(Annotation::SelectedNode).or_else(|| selected(Annotation::AlphaSelectedNode)),
        };
        let topology = match (intent.and_then(|intent| intent.topology.clone()), self.config.topology) {
            (Some(recorded), _) => Ok(Some(recorded)),
            (None, None) => Ok(None),
            (None, Some(config)) => {
                let allowed = migration::topologies(class);
                topology::requirement(self.known, &self.config.name, &allowed, &claim.meta.name, node.as_ref(), config)
            }
        };
        ProvisionRequest {
            claim: claim.key(),
            uid: claim.meta.uid.clone(),
            version: claim.meta.version,
            class: claim.class().clone(),
            provisioner: class.provisioner.clone(),
            volume,
            has_finalizer: self.config.adds_finalizer,
            node,
            topology,
            attempt: intent.map(|intent| intent.attempt.clone()),
        }
    }

    /// The next step: prepare, record the intent, or create the storage. The recorded outcomes show
    /// which steps are done.
    fn provision(self, claim: &Claim, intent: Option<&Intent>, request: ProvisionRequest) -> Verdict {
        for task in [Task::CreateStorage, Task::Prepare] {
            if let Some(failure) = self.live_reads.last_failure(task) {
                return self.failed(claim, intent, task, failure);
            }
        }
        let begin = Measure::Begin(Timed::Provision, measured_as(claim));
        let Some(prepared) = self.live_reads.output(Task::Prepare) else {
            let message = format!("External provisioner is provisioning volume for claim \"{}\"", request.claim);
            let event = Event::claim(claim, EventType::Normal, Reason::Provisioning, message);
            let operation = Operation::Prepare(Box::new(request));
            return Verdict::request(&rules::PREPARE, Request::RunOperation(operation)).publish(event).measuring(begin);
        };
        let ours = intent::next_attempt(self.config, prepared);
        let is_ours = request.attempt.as_ref() == Some(&ours);
        if !request.is_prepared(prepared) || !is_ours && json!(request.attempt) != prepared["attempt"] {
            return Verdict::retry(&rules::STALE, Backoff::Api, "the claim has changed since it was prepared");
        }
        if !is_ours {
            let rule = if intent.is_some() { &rules::RECORD_RETRY } else { &rules::RECORD_INTENT };
            return Verdict::write(rule, intent::record(rule, claim, self.config, &request, ours));
        }
        let operation = Operation::CreateStorage(Box::new(request), prepared.clone());
        Verdict::request(&rules::CREATE, Request::RunOperation(operation))
    }

    /// The storage was created: creates the volume, or discards the storage if another volume has
    /// the name.
    fn save_created(self, claim: &Claim, intent: Option<&Intent>, name: Name, created: &Arc<Value>) -> Verdict {
        if !self.live_reads.is_done(Task::SaveVolume) {
            let verdict = self.save(created);
            return match verdict.note.clone() {
                Some(error) => {
                    verdict.publish(warning(claim, format!("Error creating provisioned PV object: {error}")))
                }
                None => verdict,
            };
        }
        // The volume already existed, and the cache does not contain it yet.
        match self.live_reads.volume(&name) {
            None => Verdict::request(&rules::CHECK, Request::Read(ObjectKey::volume(name))),
            Some(Some(volume)) => self.volume_exists(claim, intent, volume),
            Some(None) => Verdict::retry(&rules::CHECK, Backoff::Api, "a volume of that name existed and was deleted"),
        }
    }

    /// Creates the volume. After a failure it pauses, and keeps the output of the storage.
    fn save(self, created: &Arc<Value>) -> Verdict {
        let failures = self.live_reads.failure_count(Task::SaveVolume);
        if failures > self.live_reads.pause_count() {
            let wait = Duration::from_millis(100).saturating_mul(1 << failures.min(9));
            return Verdict::new(&rules::SAVE_FAILED, Action::Pause(wait)).with_note(self.last_error(Task::SaveVolume));
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

    /// Whether an existing volume with the claim's name shows what the storage has created. A
    /// volume that another provisioner created does not: if there is an intent, the storage is
    /// called first and the results are compared.
    fn is_conclusive_volume(self, intent: Option<&Intent>, volume: &Volume) -> bool {
        let provisioner = volume.annotations.get(Annotation::ProvisionedBy);
        let is_created = self.live_reads.output(Task::CreateStorage).is_some();
        intent.is_none() || is_created || provisioner.is_some_and(|name| self.config.has_name(name))
    }

    /// A volume with the claim's name exists. It belongs to the claim, or conflicts with it.
    fn volume_exists(self, claim: &Claim, intent: Option<&Intent>, volume: &Volume) -> Verdict {
        let created = self.live_reads.output(Task::CreateStorage);
        if let Some(created) = created.filter(|created| has_other_storage(created, volume)) {
            return self.discard(&claim.key(), Some(claim), created);
        }
        if !volume.belongs_to(&claim.meta.uid) {
            let message = format!("volume {} already exists and belongs to another claim", volume.name());
            return Verdict::idle(&rules::NAME_TAKEN).with_note(&message).publish(warning(claim, message));
        }
        if volume.deleting {
            // The intent is no longer needed to find the storage. The volume waits for the claim's
            // deletion, so the claim must not wait for the volume's.
            if intent.is_some() {
                let write = intent::remove(&rules::VOLUME_TERMINATING, claim, false);
                return Verdict::write(&rules::VOLUME_TERMINATING, write);
            }
            let message = format!(
                "volume {} provisioned for this claim is being deleted; another one will be provisioned afterwards",
                volume.name()
            );
            return Verdict::idle(&rules::VOLUME_TERMINATING).with_note(&message).publish(warning(claim, message));
        }
        let event = created.map(|_| {
            let message = format!("Successfully provisioned volume {}", volume.name());
            Event::claim(claim, EventType::Normal, Reason::ProvisioningSucceeded, message)
        });
        let verdict = match intent {
            Some(_) => Verdict::write(&rules::PROVISIONED, intent::remove(&rules::PROVISIONED, claim, false)),
            None => Verdict::idle(&rules::PROVISIONED),
        };
        let verdict = verdict.measuring(Measure::End(Timed::Provision));
        event.into_iter().fold(verdict, Verdict::publish)
    }

    /// Deletes storage that no volume refers to. The existing volume has other storage, which is
    /// not touched.
    fn discard(self, key: &ClaimKey, claim: Option<&Claim>, created: &Arc<Value>) -> Verdict {
        let failures = self.live_reads.failure_count(Task::DiscardStorage);
        if failures > self.live_reads.pause_count() {
            let error = self.last_error(Task::DiscardStorage);
            let wait = Duration::from_millis(500).saturating_mul(1 << failures.min(8));
            let verdict = Verdict::new(&rules::DISCARD_FAILED, Action::Pause(wait)).with_note(&error);
            let warn = |claim| Event::claim(claim, EventType::Warning, Reason::ProvisioningCleanupFailed, &error);
            return claim.map(warn).into_iter().fold(verdict, Verdict::publish);
        }
        let operation = Operation::DiscardStorage(key.clone(), created.clone());
        Verdict::request(&rules::DISCARD, Request::RunOperation(operation))
    }

    /// The unused storage was deleted: provisioning restarts.
    fn discarded(self, claim: &Claim, intent: Option<&Intent>) -> Verdict {
        match intent {
            Some(intent) if self.is_our_attempt(intent) => {
                Verdict::write(&rules::DISCARDED, intent::remove(&rules::DISCARDED, claim, false))
            }
            Some(_) | None => Verdict::retry(&rules::DISCARDED, Backoff::Storage, "another volume has the name"),
        }
    }

    /// Whether the intent on a claim still records our attempt. If not, another instance has called
    /// or will call the storage, and our outcome is not conclusive.
    pub fn is_our_attempt(self, intent: &Intent) -> bool {
        let prepared = self.live_reads.output(Task::Prepare);
        prepared.is_some_and(|prepared| intent.attempt == intent::next_attempt(self.config, prepared))
    }

    /// The claim was deleted. Storage created for it is handled first.
    fn claim_deleted(self, key: &ClaimKey) -> Verdict {
        let created = self.live_reads.output(Task::CreateStorage);
        created.and_then(|created| self.save_orphan(key, created)).unwrap_or_else(|| {
            Verdict::idle(&rules::CLAIM_DELETED).with_note(key.to_string()).measuring(Measure::Drop(Timed::Provision))
        })
    }

    /// Storage was created for a former claim of the same name. It is handled first.
    fn orphan(self, claim: &Claim) -> Option<Verdict> {
        let created = self.live_reads.output(Task::CreateStorage)?;
        if created["spec"]["claimRef"]["uid"] == *claim.meta.uid.as_str() {
            return None;
        }
        let again = || Verdict::retry(&rules::STALE, Backoff::Api, "the claim was deleted and created again");
        Some(self.save_orphan(&claim.key(), created).unwrap_or_else(again))
    }

    /// Creates a volume for storage whose claim was deleted: it is released at once and reclaimed
    /// by its policy. If another volume has the name, the storage is discarded. `None` once that is
    /// done.
    fn save_orphan(self, key: &ClaimKey, created: &Arc<Value>) -> Option<Verdict> {
        if self.live_reads.is_done(Task::DiscardStorage) {
            return None;
        }
        if !self.live_reads.is_done(Task::SaveVolume) {
            return Some(self.save(created));
        }
        let name = volume_name(created);
        match self.live_reads.volume(&name) {
            None => Some(Verdict::request(&rules::CHECK, Request::Read(ObjectKey::volume(name)))),
            // It was created and already reclaimed, or another volume had the name. Creating it
            // again is safe in both cases.
            Some(None) if self.live_reads.success_count(Task::SaveVolume) < 2 => Some(self.save(created)),
            Some(None) => None,
            Some(Some(volume)) if has_other_storage(created, volume) => Some(self.discard(key, None, created)),
            Some(Some(_)) => None,
        }
    }
}

fn class_missing(claim: &Claim) -> Verdict {
    let message = format!("storageclass.storage.k8s.io {:?} not found", claim.class().as_str());
    Verdict::idle(&rules::CLASS_MISSING).with_note(message)
}

fn volume_name(created: &Value) -> Name {
    Name::from(created["metadata"]["name"].as_str().unwrap_or_default())
}

/// Whether a volume's backing storage differs from the storage that was created.
fn has_other_storage(created: &Value, volume: &Volume) -> bool {
    let handle = Volume::from_json(created.to_string().as_bytes()).ok().and_then(|created| created.handle);
    handle.is_some() && handle != volume.handle
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
