//! Operations: work outside the API server, requested by a rule and run by the runtime.
//!
//! The binder's in-tree host-path provisioning and the provisioner's rules use the same operations.
//! Running one twice has the same effect as running it once.

use std::sync::Arc;

use bindery_model::{Annotation, ClaimKey, Meta, Name, ObjectKey};
use serde_json::{Value, json};

use crate::{OperationOutput, ProvisionRequest, ReleaseProof};

/// The name of the in-tree host-path plugin, which provisions directories on the controller's host.
pub const HOST_PATH_PLUGIN: &str = "kubernetes.io/host-path";

/// Checks that the host-path plugin may delete a directory: only below a `tmp` directory, as
/// upstream, and never through `..`.
pub fn check_deletable_path(path: &str) -> Result<(), String> {
    let is_below_tmp = path.find("/tmp/").is_some_and(|at| path.len() > at + "/tmp/".len());
    let has_parent_reference = path.split('/').any(|part| part == "..");
    if is_below_tmp && !has_parent_reference {
        return Ok(());
    }
    Err(format!("host_path deleter only supports /tmp/.+ but received provided {path}"))
}

/// Work outside the API server. It may take minutes.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Collect everything needed to create storage. Nothing is created.
    Prepare(Box<ProvisionRequest>),
    /// Create storage, with the output of `Prepare`. The output is the PersistentVolume to save.
    CreateStorage(Box<ProvisionRequest>, Arc<Value>),
    /// Delete storage that was created for a claim but cannot be used. The PersistentVolume given
    /// here describes the storage and was never saved.
    DiscardStorage(ClaimKey, Arc<Value>),
    /// Delete the backing storage of a released volume, which this provisioner created.
    DeleteStorage(ReleaseProof, Name),
    /// Scrub a released volume with a pod.
    Recycle(Box<Recycle>),
}

/// A step of scrubbing a released volume.
///
/// The pod's name is derived from the volume's, so that there is at most one pod. It is created
/// with a scheduling gate, the volume is marked with its UID by a conditional write, and only then
/// is the gate removed. So whenever a pod of a volume can run, the volume is marked, no matter how
/// many instances work at the same time; and only the end of the pod with that UID ends the mark.
#[derive(Debug, Clone, PartialEq)]
pub struct Recycle {
    /// What to do.
    pub step: RecycleStep,
    /// The volume.
    pub volume: Meta,
    /// The pod that scrubs the volume, as JSON. Its events are published on the volume.
    pub pod: Value,
    /// The source component of those events.
    pub component: &'static str,
}

/// What to do with the recycler pod of a volume.
#[derive(Debug, Clone, PartialEq)]
pub enum RecycleStep {
    /// Create the pod. It does not run yet. A pod with the UID that the volume is marked with is
    /// kept; any other one of that name is deleted, and the operation fails. The output is a
    /// [`RecyclerPod`].
    CreatePod {
        /// The UID that the volume is marked with, as read live.
        marked: Option<Name>,
    },
    /// Let the pod run whose UID the volume is marked with, wait until it has succeeded, and delete
    /// it. It takes proof, made after the volume was marked, that no claim needs the data. The
    /// output is a [`RecyclerPod`].
    RunPod(ReleaseProof),
    /// Delete the pod, whatever its UID, and succeed once it is gone. The output is the mark, as a
    /// [`RecyclerPod`].
    DeletePod {
        /// The UID that the volume is marked with.
        marked: Name,
    },
}

impl Recycle {
    /// The name of the scheduling gate that keeps the pod from running before the volume is marked.
    pub const GATE: &'static str = "bindery.dev/volume-not-marked";

    /// The output for a pod with this UID.
    pub fn output(&self, uid: &str) -> OperationOutput {
        let replaces = match &self.step {
            RecycleStep::CreatePod { marked } => marked.as_deref(),
            RecycleStep::RunPod(_) | RecycleStep::DeletePod { .. } => None,
        };
        OperationOutput::of(json!({"uid": uid, "replaces": replaces}))
    }
}

/// The output of a step of scrubbing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecyclerPod {
    /// The pod's UID.
    pub uid: Name,
    /// The UID that the volume was marked with before the pod was created.
    pub replaces: Option<Name>,
}

impl RecyclerPod {
    /// Reads an output of [`Recycle::output`].
    pub fn from_output(output: &Value) -> RecyclerPod {
        let name = |field: &str| output[field].as_str().map(Name::from);
        RecyclerPod { uid: name("uid").unwrap_or_default(), replaces: name("replaces") }
    }
}

/// What an outcome in [`crate::LiveReads`] belongs to: an operation, or the creation of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// [`Operation::Prepare`].
    Prepare,
    /// [`Operation::CreateStorage`].
    CreateStorage,
    /// Creating the provisioning record for a claim.
    SaveRecord,
    /// Creating the PersistentVolume for storage that was created.
    SaveVolume,
    /// [`Operation::DiscardStorage`].
    DiscardStorage,
    /// [`Operation::DeleteStorage`].
    DeleteStorage,
    /// [`RecycleStep::CreatePod`].
    CreateRecyclerPod,
    /// [`RecycleStep::RunPod`].
    Recycle,
    /// [`RecycleStep::DeletePod`].
    DeleteRecyclerPod,
    /// Creating the claim of an ephemeral volume, by the volume's index in its pod.
    CreateClaim(usize),
}

impl Operation {
    /// The task that the outcome is recorded under.
    pub fn task(&self) -> Task {
        match self {
            Operation::Prepare(_) => Task::Prepare,
            Operation::CreateStorage(..) => Task::CreateStorage,
            Operation::DiscardStorage(..) => Task::DiscardStorage,
            Operation::DeleteStorage(..) => Task::DeleteStorage,
            Operation::Recycle(recycle) => match &recycle.step {
                RecycleStep::CreatePod { .. } => Task::CreateRecyclerPod,
                RecycleStep::RunPod(_) => Task::Recycle,
                RecycleStep::DeletePod { .. } => Task::DeleteRecyclerPod,
            },
        }
    }

    /// The claim or volume that it is run for.
    pub fn target(&self) -> ObjectKey {
        match self {
            Operation::Prepare(request) | Operation::CreateStorage(request, _) => request.claim.clone().into(),
            Operation::DiscardStorage(claim, _) => claim.clone().into(),
            Operation::DeleteStorage(proof, _) => ObjectKey::volume(proof.name().clone()),
            Operation::Recycle(recycle) => ObjectKey::volume(recycle.volume.name.clone()),
        }
    }

    /// Whether this instance must not change the target while the operation runs: it destroys data
    /// on proof that the volume is released, and the proof must stay true.
    pub(crate) fn locks_target(&self) -> bool {
        matches!(self, Operation::DeleteStorage(..) | Operation::Recycle(_))
    }

    /// The provisioner whose storage is created or deleted; `None` for recycling.
    pub fn provisioner(&self) -> Option<&str> {
        match self {
            Operation::Prepare(request) | Operation::CreateStorage(request, _) => Some(&request.provisioner),
            Operation::DiscardStorage(_, volume) => {
                volume["metadata"]["annotations"][Annotation::ProvisionedBy.key()].as_str()
            }
            Operation::DeleteStorage(_, provisioner) => Some(provisioner),
            Operation::Recycle(_) => None,
        }
    }

    /// Whether the controller itself runs it: recycling, and host-path storage.
    pub fn is_in_tree(&self) -> bool {
        matches!(self, Operation::Recycle(_)) || self.provisioner() == Some(HOST_PATH_PLUGIN)
    }

    /// The operation and its target for logs: `delete-pv-1[<uid>]`.
    pub fn name(&self) -> String {
        match self {
            Operation::Prepare(request) => format!("prepare-{}[{}]", request.claim, request.uid),
            Operation::CreateStorage(request, _) => format!("provision-{}[{}]", request.claim, request.uid),
            Operation::DiscardStorage(claim, volume) => format!("discard-{claim}[{}]", volume["metadata"]["name"]),
            Operation::DeleteStorage(proof, _) => format!("delete-{}[{}]", proof.name(), proof.volume().uid),
            Operation::Recycle(recycle) => {
                let step = match &recycle.step {
                    RecycleStep::CreatePod { .. } => "prepare-recycle",
                    RecycleStep::RunPod(_) => "recycle",
                    RecycleStep::DeletePod { .. } => "stop-recycle",
                };
                format!("{step}-{}[{}]", recycle.volume.name, recycle.volume.uid)
            }
        }
    }
}
