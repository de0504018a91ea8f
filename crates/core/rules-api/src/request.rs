//! Requests: values first, sent later. Each carries what makes it safe to send.

use std::sync::Arc;

use bindery_model::event::{EventType, Reason};
use bindery_model::{Claim, ClaimKey, Kind, Meta, Name, ObjectKey, Pod, ReclaimPolicy, Volume};
use serde_json::{Value, json};

use crate::{
    ClaimReport, Edit, Event, PodStatusEdit, ProtectedObject, ProtectionEdit, ProvisionRequest, ReleaseProof, Rule,
    UnusedProof,
};

/// What the engine may be asked to send, one at a time for each key.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Change an object, if it is as it was seen.
    Write(Box<Write>),
    /// Create an object, if there is none of that name.
    Create(Create),
    /// Give a pod its node, if it is as it was seen.
    Bind(Bind),
    /// Delete an object, if it is as it was read.
    Delete(Delete),
    /// Read an object, past all caches.
    Read(ObjectKey),
    /// List objects, past all caches. Whoever asks for the same list at the same time shares it.
    List(Listing),
    /// Do something outside the API: it may take long.
    RunOperation(Operation),
}

impl Request {
    /// The object that the request is about.
    pub fn target(&self) -> ObjectKey {
        match self {
            Request::Write(write) => write.target.clone(),
            Request::Create(create) => create.key.clone(),
            Request::Bind(bind) => bind.target.clone(),
            Request::Delete(delete) => ObjectKey::volume(delete.proof.name().clone()),
            Request::Read(key) => key.clone(),
            Request::List(listing) => listing.target(),
            Request::RunOperation(operation) => operation.target(),
        }
    }
}

impl Request {
    /// Whether the object is not to be changed by anybody else of us meanwhile: because the request changes it, or because it
    /// destroys what lies behind it, on proof that nobody has it.
    pub fn holds_target(&self) -> bool {
        match self {
            Request::Write(_) | Request::Create(_) | Request::Bind(_) | Request::Delete(_) => true,
            Request::RunOperation(operation) => operation.holds_target(),
            Request::Read(_) | Request::List(_) => false,
        }
    }
}

/// All objects of a kind in a namespace, or everywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listing {
    /// Which kind.
    pub kind: Kind,
    /// Where; empty for everywhere.
    pub namespace: Name,
}

impl Listing {
    /// What stands for it where an object's key is wanted: the name of no object.
    pub fn target(&self) -> ObjectKey {
        ObjectKey { kind: self.kind, namespace: self.namespace.clone(), name: Name::default() }
    }
}

/// A conditional change of one object. It can only be made from an object that was seen, and carries its UID and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    target: ObjectKey,
    uid: Name,
    version: u64,
    edit: Edit,
    /// Which step this is.
    pub purpose: &'static Rule,
    /// What is published when it is refused for good.
    pub regret: Option<RejectionEvent>,
    /// What is published once it has succeeded.
    pub then: Vec<Event>,
}

/// An event that tells why a write was refused: the error is put behind the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionEvent(Event);

impl RejectionEvent {
    /// A warning about a claim, with the beginning of its message.
    pub fn claim(claim: &Claim, reason: Reason, prefix: &str) -> RejectionEvent {
        RejectionEvent(Event::claim(claim, EventType::Warning, reason, prefix))
    }

    /// The notice with the error.
    pub fn notice(&self, error: &str) -> Event {
        let mut notice = self.0.clone();
        notice.message.push_str(error);
        notice
    }
}

impl Write {
    /// A change of a claim.
    pub fn claim(purpose: &'static Rule, claim: &Claim, edit: Edit) -> Write {
        debug_assert!(matches!(edit, Edit::Claim(_) | Edit::ClaimStatus(_)), "a claim gets a claim's edit");
        Write::new(purpose, claim.key().into(), &claim.meta, edit)
    }

    /// A change of a part of a claim's status.
    pub fn report(purpose: &'static Rule, claim: &Claim, report: ClaimReport) -> Write {
        Write::new(purpose, claim.key().into(), &claim.meta, Edit::ClaimReport(report))
    }

    /// Guards an object by its protection finalizer.
    pub fn guard(purpose: &'static Rule, object: ProtectedObject<'_>) -> Write {
        Write::new(purpose, object.key(), object.meta(), Edit::Protection(ProtectionEdit::guard(object)))
    }

    /// Takes the protection finalizer off an object. It takes proof that nothing uses it.
    pub fn remove_finalizer(purpose: &'static Rule, object: ProtectedObject<'_>, proof: &UnusedProof) -> Write {
        Write::new(
            purpose,
            object.key(),
            object.meta(),
            Edit::Protection(ProtectionEdit::remove_finalizer(object, proof)),
        )
    }

    /// A change of a pod's status.
    pub fn pod(purpose: &'static Rule, pod: &Pod, edit: PodStatusEdit) -> Write {
        Write::new(purpose, pod.key().into(), &pod.meta, Edit::PodStatus(edit))
    }

    fn new(purpose: &'static Rule, target: ObjectKey, meta: &Meta, edit: Edit) -> Write {
        Write { target, uid: meta.uid.clone(), version: meta.version, edit, purpose, regret: None, then: Vec::new() }
    }

    /// A change of a volume.
    pub fn volume(purpose: &'static Rule, volume: &Volume, edit: Edit) -> Write {
        debug_assert!(matches!(edit, Edit::Volume(_) | Edit::VolumeStatus(_)), "a volume gets a volume's edit");
        Write::new(purpose, ObjectKey::volume(volume.name().clone()), &volume.meta, edit)
    }

    /// Publishes a notice once the write has succeeded.
    #[must_use]
    pub fn then(mut self, notice: Event) -> Write {
        self.then.push(notice);
        self
    }

    /// Publishes a notice when the write is refused for good.
    #[must_use]
    pub fn on_rejection(mut self, regret: RejectionEvent) -> Write {
        self.regret = Some(regret);
        self
    }

    /// The object that is changed.
    pub fn target(&self) -> &ObjectKey {
        &self.target
    }

    /// The UID that the object must have.
    pub fn uid(&self) -> &Name {
        &self.uid
    }

    /// The version that the object must have.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What is changed.
    pub fn edit(&self) -> &Edit {
        &self.edit
    }

    /// The patch to send, with its preconditions, where it is `now` (RFC 3339). How it is to be understood, the edit tells.
    pub fn patch(&self, now: &str) -> Value {
        let mut patch = self.edit.patch(now);
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        metadata["uid"] = self.uid.as_str().into();
        metadata["resourceVersion"] = self.version.to_string().into();
        patch.into()
    }
}

/// The giving of a node to a pod, for good. Made from a pod that was seen, and carries its UID and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    target: ObjectKey,
    uid: Name,
    version: u64,
    node: Name,
    /// Which step this is.
    pub purpose: &'static Rule,
    /// What is published once it has succeeded.
    pub then: Vec<Event>,
}

impl Bind {
    /// Gives a pod a node.
    pub fn new(purpose: &'static Rule, pod: &Pod, node: &Name) -> Bind {
        Bind {
            target: pod.key().into(),
            uid: pod.meta.uid.clone(),
            version: pod.meta.version,
            node: node.clone(),
            purpose,
            then: Vec::new(),
        }
    }

    /// Publishes a notice once it has succeeded.
    #[must_use]
    pub fn then(mut self, notice: Event) -> Bind {
        self.then.push(notice);
        self
    }

    /// The pod.
    pub fn target(&self) -> &ObjectKey {
        &self.target
    }

    /// The UID that the pod must have.
    pub fn uid(&self) -> &Name {
        &self.uid
    }

    /// The version that the pod must have.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The node.
    pub fn node(&self) -> &Name {
        &self.node
    }

    /// The body to send, with its preconditions.
    pub fn body(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "namespace": self.target.namespace.as_str(),
                "name": self.target.name.as_str(),
                "uid": self.uid.as_str(),
                "resourceVersion": self.version.to_string(),
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.node.as_str()},
        })
    }
}

/// The creation of an object. Conditional by nature: it fails when there is one of that name.
#[derive(Debug, Clone, PartialEq)]
pub struct Create {
    /// Which object.
    pub key: ObjectKey,
    /// The whole of it, as JSON.
    pub body: Value,
    /// Which step this is.
    pub purpose: &'static Rule,
    /// Which task a finding about it is about.
    pub task: Task,
    /// What is published once it has succeeded.
    pub then: Vec<Event>,
}

/// The deletion of a volume object. It takes proof, and carries the UID and version that the proof read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    proof: ReleaseProof,
    /// Which step this is.
    pub purpose: &'static Rule,
}

impl Delete {
    /// The deletion of a volume whose policy says so; `None` when it does not.
    pub fn volume(purpose: &'static Rule, proof: ReleaseProof) -> Option<Delete> {
        proof.has_policy(&ReclaimPolicy::Delete).then_some(Delete { proof, purpose })
    }

    /// The proof that nothing is lost.
    pub fn proof(&self) -> &ReleaseProof {
        &self.proof
    }
}

/// An in-tree plugin that the binder works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plugin {
    /// Directories on the host that the controller runs on.
    HostPath,
    /// NFS exports.
    Nfs,
}

impl Plugin {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Plugin::HostPath => "kubernetes.io/host-path",
            Plugin::Nfs => "kubernetes.io/nfs",
        }
    }
}

/// What a finding is about: the operations, and creating what an operation made room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Task {
    /// Finding out all that is needed to make storage for a claim.
    Prepare,
    /// Making storage for a claim.
    Provision,
    /// Creating the volume for it.
    SaveVolume,
    /// Removing storage that was made in vain.
    CleanUp,
    /// Removing what lies behind a released volume.
    DeleteStorage,
    /// Scrubbing a released volume.
    Recycle,
    /// Creating the claim of an ephemeral volume, by the volume's place in its pod.
    MakeClaim(usize),
}

/// Work outside the API, ordered by a rule and done by the runtime. Every one can be done twice without harm.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Make storage for a claim.
    Provision(Provision),
    /// Remove storage that was made for a claim and never became a volume.
    CleanUp(Provision),
    /// Remove what lies behind a volume; `path` is that of its source.
    DeleteStorage {
        /// That nothing is lost.
        proof: ReleaseProof,
        /// Who does it.
        plugin: Plugin,
        /// Which directory.
        path: Name,
    },
    /// Scrub a volume with a pod.
    Recycle(Recycle),
    /// Find out all that is needed to have storage made. Nothing is made.
    Prepare(Box<ProvisionRequest>),
    /// Have storage made, with what was found out. It yields the volume, but for what ties it to its claim.
    Make(Box<ProvisionRequest>, Arc<Value>),
    /// Have storage removed that was made for a claim and cannot be kept: that of this volume, which does not exist.
    Unmake(ClaimKey, Arc<Value>),
    /// Have what lies behind a volume removed.
    Remove(ReleaseProof),
}

/// Storage to make for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provision {
    /// The claim.
    pub claim: ClaimKey,
    /// Which claim of that name.
    pub uid: Name,
    /// Who makes it.
    pub plugin: Plugin,
    /// The directory to make. Its name derives from the claim's UID, so that making it twice makes one.
    pub path: Name,
}

/// A volume to scrub.
#[derive(Debug, Clone, PartialEq)]
pub struct Recycle {
    /// That nothing is lost.
    pub proof: ReleaseProof,
    /// The pod that scrubs it, as JSON. What happens to it is told as events of the volume.
    pub pod: Value,
    /// Who says what happens to it.
    pub component: &'static str,
}

impl Operation {
    /// What a finding about it is about.
    pub fn task(&self) -> Task {
        match self {
            Operation::Provision(_) => Task::Provision,
            Operation::CleanUp(_) => Task::CleanUp,
            Operation::DeleteStorage { .. } => Task::DeleteStorage,
            Operation::Recycle(_) => Task::Recycle,
            Operation::Prepare(_) => Task::Prepare,
            Operation::Make(..) => Task::Provision,
            Operation::Unmake(..) => Task::CleanUp,
            Operation::Remove(_) => Task::DeleteStorage,
        }
    }

    /// The object that it is done for.
    pub fn target(&self) -> ObjectKey {
        match self {
            Operation::Provision(provision) | Operation::CleanUp(provision) => provision.claim.clone().into(),
            Operation::DeleteStorage { proof, .. } => ObjectKey::cluster(Kind::Volume, proof.name().clone()),
            Operation::Recycle(recycle) => ObjectKey::cluster(Kind::Volume, recycle.proof.name().clone()),
            Operation::Prepare(order) | Operation::Make(order, _) => order.claim.clone().into(),
            Operation::Unmake(claim, _) => claim.clone().into(),
            Operation::Remove(proof) => ObjectKey::volume(proof.name().clone()),
        }
    }

    /// Whether nobody else of us may change its object meanwhile: because it destroys what lies behind it, on proof that nobody
    /// has it.
    fn holds_target(&self) -> bool {
        match self {
            Operation::DeleteStorage { .. } | Operation::Recycle(_) | Operation::Remove(_) => true,
            Operation::Provision(_) | Operation::CleanUp(_) => false,
            Operation::Prepare(_) | Operation::Make(..) | Operation::Unmake(..) => false,
        }
    }

    /// Its name, as logs have it: `delete-pv-1[<uid>]`.
    pub fn name(&self) -> String {
        match self {
            Operation::Provision(p) => format!("provision-{}[{}]", p.claim, p.uid),
            Operation::CleanUp(p) => format!("clean-up-{}[{}]", p.claim, p.uid),
            Operation::DeleteStorage { proof, .. } => format!("delete-{}[{}]", proof.name(), proof.volume().uid),
            Operation::Recycle(r) => format!("recycle-{}[{}]", r.proof.name(), r.proof.volume().uid),
            Operation::Prepare(o) => format!("prepare-{}[{}]", o.claim, o.uid),
            Operation::Make(o, _) => format!("make-{}[{}]", o.claim, o.uid),
            Operation::Unmake(claim, made) => format!("unmake-{claim}[{}]", made["metadata"]["name"]),
            Operation::Remove(proof) => format!("remove-{}[{}]", proof.name(), proof.volume().uid),
        }
    }
}
