//! In-tree provisioning with the host-path plugin: a directory on the controller's host.
//!
//! Like upstream, the volume and its directory are named by the claim's UID and nothing is
//! recorded: after a crash, the same steps are repeated under the same names.

use std::sync::Arc;
use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{
    AccessMode, AccessModes, Annotation, Claim, Class, Name, ObjectKey, ReclaimPolicy, VolumeMode, finalizer,
};
use bindery_rules_api::{
    Action, Backoff, ClaimEdit, Create, Edit, Event, Failure, FailureEffect, HOST_PATH_PLUGIN, Measure, Operation,
    ProvisionRequest, Request, Rule, Task, Timed, Verdict, Write,
};
use serde_json::{Value, json};

use crate::decision::Decision;
use crate::provision::{failed, name_provisioner};
use crate::rules;

/// Upstream's limit for saving a volume and for deleting unused storage, and the time in between.
const ATTEMPTS_MAX: usize = 5;
const ATTEMPT_INTERVAL: Duration = Duration::from_secs(10);

/// The parent of all provisioned directories.
const DIRECTORY: &str = "/tmp/hostpath_pv";

/// The name under which host-path operations are measured.
pub(crate) const MEASURED_AS: Name = Name::new_static(HOST_PATH_PLUGIN);

impl Decision<'_> {
    /// Creates the storage for a claim, then its volume, one step at a time.
    pub fn host_path(self, claim: &Claim, class: &Class) -> Verdict {
        let begin = Measure::Begin(Timed::Provision, MEASURED_AS);
        if claim.source.is_some() {
            let message = format!(
                "plugin {HOST_PATH_PLUGIN:?} is not a CSI plugin. Only CSI plugin can provision a claim with a datasource"
            );
            return refuse(&rules::PROVISION_DATA_SOURCE, claim, message);
        }
        if let Some(edit) = name_provisioner(claim, &class.provisioner) {
            let write = Write::claim(&rules::PROVISION_ANNOTATE, claim, edit);
            return Verdict::write(&rules::PROVISION_ANNOTATE, write).measuring(begin);
        }
        let name = Name::from(format!("pvc-{}", claim.meta.uid));
        if self.live_reads.is_done(Task::CreateStorage) {
            return self.save(claim, class, &name);
        }
        if let Some(failure) = self.live_reads.last_failure(Task::CreateStorage) {
            return provision_failed(claim, class, failure);
        }
        if self.known.volume(&name).is_some() {
            return exists();
        }
        if let Some((rule, message)) = self.obstacle(claim, class) {
            return refuse(rule, claim, message);
        }
        let selected = claim.annotations.get(Annotation::SelectedNode);
        if let Some(node) = selected.filter(|node| self.known.node(node).is_none()) {
            let message = format!("Failed to get target node: node {:?} not found", node.as_str());
            return retry(&rules::PROVISION_NODE_MISSING, claim, message);
        }
        match self.live_reads.volume(&name) {
            None => return Verdict::request(&rules::PROVISION_READ_VOLUME, Request::Read(ObjectKey::volume(name))),
            Some(Some(_)) => return exists(),
            Some(None) => {}
        }
        let request = provision_request(claim, class, &name);
        let prepared = Arc::new(request.prepared(volume_body(claim, class, &name)));
        let operation = Operation::CreateStorage(Box::new(request), prepared);
        Verdict::request(&rules::PROVISION_CREATE, Request::RunOperation(operation)).measuring(begin)
    }

    /// Why provisioning cannot succeed, before it is tried.
    fn obstacle(self, claim: &Claim, class: &Class) -> Option<(&'static Rule, String)> {
        if !class.mount_options.is_empty() {
            let message = format!(
                "Mount options are not supported by the provisioner but StorageClass {:?} has mount options [{}]",
                class.meta.name.as_str(),
                class.mount_options.join(" ")
            );
            return Some((&rules::PROVISION_MOUNT_OPTIONS, message));
        }
        if !self.config.host_path_provisioner {
            let why = format!("provisioning in volume plugin {HOST_PATH_PLUGIN:?} is disabled");
            return Some((&rules::PROVISION_UNSUPPORTED, format!("Failed to create provisioner: {why}")));
        }
        if claim.volume_mode == VolumeMode::Block {
            let why = format!("{HOST_PATH_PLUGIN} does not support block volume provisioning");
            return Some((&rules::PROVISION_UNSUPPORTED, provision_error(class, &why)));
        }
        None
    }

    /// Creates the volume for storage that was created; deletes the storage when that keeps
    /// failing.
    fn save(self, claim: &Claim, class: &Class, name: &Name) -> Verdict {
        if self.live_reads.is_done(Task::SaveVolume) {
            return saved();
        }
        let failures = self.live_reads.failure_count(Task::SaveVolume);
        let Some(last) = self.live_reads.last_failure(Task::SaveVolume).filter(|_| failures >= ATTEMPTS_MAX) else {
            return self.attempt(failures, &rules::PROVISION_SAVE_RETRY, || {
                let message = format!("Successfully provisioned volume {name} using {HOST_PATH_PLUGIN}");
                let event = Event::claim(claim, EventType::Normal, Reason::ProvisioningSucceeded, message);
                let create = Create {
                    key: ObjectKey::volume(name.clone()),
                    body: volume_body(claim, class, name),
                    purpose: &rules::PROVISION_SAVE,
                    task: Task::SaveVolume,
                    then: vec![event],
                };
                Verdict::request(&rules::PROVISION_SAVE, Request::Create(create))
            });
        };
        // A request without an answer may have succeeded. Then the storage is needed.
        match self.live_reads.volume(name) {
            None => {
                return Verdict::request(&rules::PROVISION_READ_VOLUME, Request::Read(ObjectKey::volume(name.clone())));
            }
            Some(Some(_)) => return saved(),
            Some(None) => {}
        }
        self.discard(claim, class, name, last)
    }

    /// Deletes storage whose volume could not be saved.
    fn discard(self, claim: &Claim, class: &Class, name: &Name, save_failure: &Failure) -> Verdict {
        if self.live_reads.is_done(Task::DiscardStorage) {
            return Verdict::retry(&rules::PROVISION_DISCARDED, Backoff::Operation, save_failure.error.clone());
        }
        let key = claim.key();
        let failures = self.live_reads.failure_count(Task::DiscardStorage);
        if let Some(last) = self.live_reads.last_failure(Task::DiscardStorage).filter(|_| failures >= ATTEMPTS_MAX) {
            let message =
                format!("Error cleaning provisioned volume for claim {key}: {}. Please delete manually.", last.error);
            let event = Event::claim(claim, EventType::Warning, Reason::ProvisioningCleanupFailed, message);
            return Verdict::retry(&rules::PROVISION_ORPHANED, Backoff::Operation, &last.error).publish(event);
        }
        let message = format!(
            "Error creating provisioned PV object for claim {key}: {}. Deleting the volume.",
            save_failure.error
        );
        // The pauses between the attempts to save the volume count as well.
        self.attempt(ATTEMPTS_MAX - 1 + failures, &rules::PROVISION_DISCARD_RETRY, || {
            let operation = Operation::DiscardStorage(key, Arc::new(volume_body(claim, class, name)));
            Verdict::request(&rules::PROVISION_DISCARD, Request::RunOperation(operation))
                .publish(failed(claim, message))
        })
    }

    /// Tries at once, and again after a pause for each failure.
    fn attempt(self, failures: usize, pause: &'static Rule, attempt: impl FnOnce() -> Verdict) -> Verdict {
        if failures > self.live_reads.pause_count() {
            return Verdict::new(pause, Action::Pause(ATTEMPT_INTERVAL));
        }
        attempt()
    }
}

fn provision_request(claim: &Claim, class: &Class, volume: &Name) -> ProvisionRequest {
    ProvisionRequest {
        claim: claim.key(),
        uid: claim.meta.uid.clone(),
        version: claim.meta.version,
        class: class.meta.name.clone(),
        class_version: 0,
        provisioner: class.provisioner.clone(),
        volume: volume.clone(),
        has_finalizer: false,
        node: None,
        topology: Ok(None),
        attempt: None,
    }
}

fn provision_error(class: &Class, error: &str) -> String {
    format!("Failed to provision volume with StorageClass {:?}: {error}", class.meta.name.as_str())
}

/// The storage could not be created. If the scheduler had selected the node, it must select
/// another.
fn provision_failed(claim: &Claim, class: &Class, failure: &Failure) -> Verdict {
    if failure.effect == FailureEffect::Stale {
        // The claim was deleted; the watch will report it.
        return Verdict::retry(&rules::PROVISION_FAILED, Backoff::Api, &failure.error);
    }
    let message = provision_error(class, &failure.error);
    if claim.is_node_selected() {
        let edit = ClaimEdit { annotations: vec![(Annotation::SelectedNode, None)], ..ClaimEdit::default() };
        let write = Write::claim(&rules::PROVISION_RESCHEDULE, claim, Edit::Claim(edit));
        return Verdict::write(&rules::PROVISION_RESCHEDULE, write)
            .publish(failed(claim, message))
            .measuring(Measure::Fail(Timed::Provision));
    }
    retry(&rules::PROVISION_FAILED, claim, message)
}

/// A volume with the name for this claim exists. Usually it was provisioned before and the watch is
/// late; otherwise it may still be deleted.
fn exists() -> Verdict {
    Verdict::retry(&rules::PROVISION_EXISTS, Backoff::Operation, "a volume of that name exists")
}

/// The watch event for the volume wakes the claim. If the volume was deleted before that,
/// provisioning restarts.
fn saved() -> Verdict {
    Verdict::retry(&rules::PROVISION_SAVED, Backoff::Operation, "the volume has not appeared in the watch yet")
}

/// Provisioning fails until the claim or its class changes.
fn refuse(rule: &'static Rule, claim: &Claim, message: String) -> Verdict {
    Verdict::idle(rule).publish(failed(claim, message)).measuring(Measure::Fail(Timed::Provision))
}

/// Provisioning failed and is retried.
fn retry(rule: &'static Rule, claim: &Claim, message: String) -> Verdict {
    Verdict::retry(rule, Backoff::Operation, message.clone())
        .publish(failed(claim, message))
        .measuring(Measure::Fail(Timed::Provision))
}

/// The volume to save, with the fields that upstream writes. It is bound to its claim from the
/// start.
fn volume_body(claim: &Claim, class: &Class, name: &Name) -> Value {
    let mut modes = claim.modes;
    if modes == AccessModes::default() {
        modes = [AccessMode::ReadWriteOnce].into_iter().collect();
    }
    let finalizers: Vec<&str> =
        (class.policy == ReclaimPolicy::Delete).then_some(finalizer::PV_CONTROLLER).into_iter().collect();
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name.as_str(),
            "annotations": {
                Annotation::CreatedBy.key(): "hostpath-dynamic-provisioner",
                Annotation::BoundByController.key(): "yes",
                Annotation::ProvisionedBy.key(): HOST_PATH_PLUGIN,
            },
            "finalizers": finalizers,
        },
        "spec": {
            "persistentVolumeReclaimPolicy": class.policy.as_str(),
            "accessModes": modes.iter().map(AccessMode::as_str).collect::<Vec<_>>(),
            "capacity": {"storage": claim.requested().as_str()},
            "hostPath": {"path": format!("{DIRECTORY}/{}", claim.meta.uid), "type": ""},
            "storageClassName": claim.class().as_str(),
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": claim.meta.namespace.as_str(),
                "name": claim.meta.name.as_str(),
                "uid": claim.meta.uid.as_str(),
                "resourceVersion": claim.meta.version.to_string(),
            },
        },
    })
}
