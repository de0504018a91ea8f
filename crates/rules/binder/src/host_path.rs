//! Making a volume with an in-tree plugin. Only host-path makes any: a directory on the machine that the controller runs on.

use std::time::Duration;

use bindery_model::event::{EventType, Reason};
use bindery_model::{
    AccessMode, AccessModes, Annotation, Claim, Class, Name, ObjectKey, ReclaimPolicy, VolumeMode, finalizer,
};
use bindery_rules_api::{
    Action, Backoff, ClaimEdit, Create, Edit, Event, Failure, Measure, Operation, Plugin, Provision, Request as Ask,
    Rule, Task, Timed, Verdict, Write,
};
use serde_json::{Value, json};

use crate::decision::Decision;
use crate::provision::{failed, measured_as, name_provisioner};
use crate::rules;

/// How often saving a volume, or removing storage made in vain, is tried, and how far apart.
const ATTEMPTS_MAX: usize = 5;
const ATTEMPT_INTERVAL: Duration = Duration::from_secs(10);

/// Where the directories are made.
const DIRECTORY: &str = "/tmp/hostpath_pv";

impl Decision<'_> {
    /// Makes storage for a claim and a volume for the storage, one step at a time.
    pub fn in_tree(self, claim: &Claim, class: &Class, plugin: Plugin) -> Verdict {
        let begin = Measure::Begin(Timed::Provision, measured_as(plugin));
        if claim.source.is_some() {
            let message = format!(
                "plugin {:?} is not a CSI plugin. Only CSI plugin can provision a claim with a datasource",
                plugin.as_str()
            );
            return refuse(&rules::PROVISION_DATA_SOURCE, claim, message);
        }
        if let Some(edit) = name_provisioner(claim, &class.provisioner) {
            let write = Write::claim(&rules::PROVISION_ANNOUNCE, claim, edit);
            return Verdict::write(&rules::PROVISION_ANNOUNCE, write).measuring(begin);
        }
        let name = Name::from(format!("pvc-{}", claim.meta.uid));
        if self.live_reads.is_done(Task::Provision) {
            return self.save(claim, class, plugin, &name);
        }
        if let Some(failure) = self.live_reads.last_failure(Task::Provision) {
            return provision_failed(claim, class, failure);
        }
        if self.known.volume(&name).is_some() {
            return exists();
        }
        if let Some((rule, message)) = self.obstacle(claim, class, plugin) {
            return refuse(rule, claim, message);
        }
        let selected = claim.annotations.get(Annotation::SelectedNode);
        if let Some(node) = selected.filter(|node| self.known.node(node).is_none()) {
            let message = format!("Failed to get target node: node {:?} not found", node.as_str());
            return give_up(&rules::PROVISION_NODE_MISSING, claim, message);
        }
        match self.live_reads.volume(&name) {
            None => return Verdict::request(&rules::PROVISION_LOOK, Ask::Read(ObjectKey::volume(name))),
            Some(Some(_)) => return exists(),
            Some(None) => {}
        }
        let operation = Operation::Provision(provision(claim, plugin));
        Verdict::request(&rules::PROVISION_MAKE, Ask::RunOperation(operation)).measuring(begin)
    }

    /// Why no storage can be made for a claim, before it is tried.
    fn obstacle(self, claim: &Claim, class: &Class, plugin: Plugin) -> Option<(&'static Rule, String)> {
        if !class.mount_options.is_empty() {
            let message = format!(
                "Mount options are not supported by the provisioner but StorageClass {:?} has mount options [{}]",
                class.meta.name.as_str(),
                class.mount_options.join(" ")
            );
            return Some((&rules::PROVISION_MOUNT_OPTIONS, message));
        }
        if !self.config.host_path_provisioner {
            let why = format!("provisioning in volume plugin {:?} is disabled", plugin.as_str());
            return Some((&rules::PROVISION_REFUSED, format!("Failed to create provisioner: {why}")));
        }
        if claim.volume_mode == VolumeMode::Block {
            let why = format!("{} does not support block volume provisioning", plugin.as_str());
            return Some((&rules::PROVISION_REFUSED, provision_error(class, &why)));
        }
        None
    }

    /// Creates the volume for storage that was made; removes the storage when that does not succeed.
    fn save(self, claim: &Claim, class: &Class, plugin: Plugin, name: &Name) -> Verdict {
        if self.live_reads.is_done(Task::SaveVolume) {
            return saved();
        }
        let failures = self.live_reads.failure_count(Task::SaveVolume);
        let Some(last) = self.live_reads.last_failure(Task::SaveVolume).filter(|_| failures >= ATTEMPTS_MAX) else {
            return self.attempt(failures, &rules::PROVISION_SAVE_AGAIN, || {
                let created = format!("Successfully provisioned volume {name} using {}", plugin.as_str());
                let notice = Event::claim(claim, EventType::Normal, Reason::ProvisioningSucceeded, created);
                let create = Create {
                    key: ObjectKey::volume(name.clone()),
                    body: volume_body(claim, class, plugin, name),
                    purpose: &rules::PROVISION_SAVE,
                    task: Task::SaveVolume,
                    then: vec![notice],
                };
                Verdict::request(&rules::PROVISION_SAVE, Ask::Create(create))
            });
        };
        // An attempt that was not answered may have succeeded after all: then the storage is needed.
        match self.live_reads.volume(name) {
            None => return Verdict::request(&rules::PROVISION_LOOK, Ask::Read(ObjectKey::volume(name.clone()))),
            Some(Some(_)) => return saved(),
            Some(None) => {}
        }
        if self.live_reads.is_done(Task::CleanUp) {
            return Verdict::retry(&rules::PROVISION_CLEANED, Backoff::Operation, last.error.clone());
        }
        let key = claim.key();
        let failures = self.live_reads.failure_count(Task::CleanUp);
        if let Some(last) = self.live_reads.last_failure(Task::CleanUp).filter(|_| failures >= ATTEMPTS_MAX) {
            let message =
                format!("Error cleaning provisioned volume for claim {key}: {}. Please delete manually.", last.error);
            let notice = Event::claim(claim, EventType::Warning, Reason::ProvisioningCleanupFailed, message);
            return Verdict::retry(&rules::PROVISION_ORPHANED, Backoff::Operation, &last.error).tell(notice);
        }
        let message =
            format!("Error creating provisioned PV object for claim {key}: {}. Deleting the volume.", last.error);
        // The pauses between the attempts at saving it count too.
        self.attempt(ATTEMPTS_MAX - 1 + failures, &rules::PROVISION_CLEAN_UP_AGAIN, || {
            let operation = Operation::CleanUp(provision(claim, plugin));
            Verdict::request(&rules::PROVISION_CLEAN_UP, Ask::RunOperation(operation)).tell(failed(claim, message))
        })
    }

    /// Tries something at once, and again after a pause when it failed before.
    fn attempt(self, failures: usize, pause: &'static Rule, attempt: impl FnOnce() -> Verdict) -> Verdict {
        if failures > self.live_reads.pause_count() {
            return Verdict::new(pause, Action::Pause(ATTEMPT_INTERVAL));
        }
        attempt()
    }
}

/// What is to be made for a claim. The directory is named by the claim's UID: made twice, it is one.
fn provision(claim: &Claim, plugin: Plugin) -> Provision {
    Provision { claim: claim.key(), uid: claim.meta.uid.clone(), plugin, path: directory(claim) }
}

fn directory(claim: &Claim) -> Name {
    Name::from(format!("{DIRECTORY}/{}", claim.meta.uid))
}

fn provision_error(class: &Class, error: &str) -> String {
    format!("Failed to provision volume with StorageClass {:?}: {error}", class.meta.name.as_str())
}

/// Storage could not be made. Where a scheduler had selected the node, it is asked for another.
fn provision_failed(claim: &Claim, class: &Class, failure: &Failure) -> Verdict {
    let message = provision_error(class, &failure.error);
    if claim.is_node_selected() {
        let edit = ClaimEdit { annotations: vec![(Annotation::SelectedNode, None)], ..ClaimEdit::default() };
        let write = Write::claim(&rules::PROVISION_RESCHEDULE, claim, Edit::Claim(edit));
        return Verdict::write(&rules::PROVISION_RESCHEDULE, write)
            .tell(failed(claim, message))
            .measuring(Measure::Fail(Timed::Provision));
    }
    give_up(&rules::PROVISION_FAILED, claim, message)
}

/// The volume is there under the claim's UID. It is the claim's, and word of that is on its way; or somebody made it who is not
/// to, and may remove it again.
fn exists() -> Verdict {
    Verdict::retry(&rules::PROVISION_EXISTS, Backoff::Operation, "a volume of that name exists")
}

/// Word of the volume wakes the claim; if the volume is gone again before that, provisioning begins anew.
fn saved() -> Verdict {
    Verdict::retry(&rules::PROVISION_SAVED, Backoff::Operation, "word of the volume has not come")
}

/// Nothing will change until the claim or its class does.
fn refuse(rule: &'static Rule, claim: &Claim, message: String) -> Verdict {
    Verdict::settle(rule).tell(failed(claim, message)).measuring(Measure::Fail(Timed::Provision))
}

/// It may succeed later.
fn give_up(rule: &'static Rule, claim: &Claim, message: String) -> Verdict {
    Verdict::retry(rule, Backoff::Operation, message.clone())
        .tell(failed(claim, message))
        .measuring(Measure::Fail(Timed::Provision))
}

/// The volume for storage that was made. It belongs to its claim from the start.
fn volume_body(claim: &Claim, class: &Class, plugin: Plugin, name: &Name) -> Value {
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
                Annotation::ProvisionedBy.key(): plugin.as_str(),
            },
            "finalizers": finalizers,
        },
        "spec": {
            "persistentVolumeReclaimPolicy": class.policy.as_str(),
            "accessModes": modes.iter().map(AccessMode::as_str).collect::<Vec<_>>(),
            "capacity": {"storage": claim.requested().as_str()},
            "hostPath": {"path": directory(claim).as_str(), "type": ""},
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
