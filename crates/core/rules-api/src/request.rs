//! Requests are values first and sent later. Each carries its preconditions.

use bindery_model::event::{EventType, Reason};
use bindery_model::{Claim, Kind, Meta, Name, ObjectKey, Pod, ReclaimPolicy, Record, Volume};
use serde_json::{Value, json};

use crate::{
    ClaimReport, Edit, Event, Operation, PodStatusEdit, ProtectedObject, ProtectionEdit, RecordEdit, ReleaseProof,
    Rule, Task, UnusedProof,
};

/// A request that a verdict contains. A key has at most one in flight.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Patch an object, if its UID and resourceVersion are unchanged.
    Write(Box<Write>),
    /// Create an object, if none has its name.
    Create(Create),
    /// Bind a pod to a node, if the pod's UID and resourceVersion are unchanged.
    Bind(Bind),
    /// Delete a volume, if its UID and resourceVersion are unchanged.
    Delete(Delete),
    /// Get an object from the API server, bypassing the cache.
    Read(ObjectKey),
    /// List objects from the API server, bypassing the cache. Concurrent requests share one list.
    List(Listing),
    /// Run an operation outside the API server.
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

    /// Whether no other request of this instance may change the target while this one is in flight.
    pub fn locks_target(&self) -> bool {
        match self {
            Request::Write(_) | Request::Create(_) | Request::Bind(_) | Request::Delete(_) => true,
            Request::RunOperation(operation) => operation.locks_target(),
            Request::Read(_) | Request::List(_) => false,
        }
    }
}

/// All objects of a kind, in one namespace or in all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listing {
    /// The kind.
    pub kind: Kind,
    /// The namespace; empty for all namespaces.
    pub namespace: Name,
}

impl Listing {
    /// A key with an empty name, which no object has.
    pub fn target(&self) -> ObjectKey {
        ObjectKey { kind: self.kind, namespace: self.namespace.clone(), name: Name::default() }
    }
}

/// A conditional change of one object. It is built from an observed object and carries its UID and
/// resourceVersion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    target: ObjectKey,
    uid: Name,
    version: u64,
    edit: Edit,
    /// The rule that names this step.
    pub purpose: &'static Rule,
    /// The event to publish when the API server rejects the write.
    pub rejection_event: Option<RejectionEvent>,
    /// Events to publish once the write has succeeded.
    pub then: Vec<Event>,
}

/// An event that reports why a write was rejected. The API server's error is appended to its
/// message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectionEvent(Event);

impl RejectionEvent {
    /// A warning about a claim. The message starts with `prefix`.
    pub fn claim(claim: &Claim, reason: Reason, prefix: &str) -> RejectionEvent {
        RejectionEvent(Event::claim(claim, EventType::Warning, reason, prefix))
    }

    /// The event with the error appended.
    pub fn with_error(&self, error: &str) -> Event {
        let mut event = self.0.clone();
        event.message.push_str(error);
        event
    }
}

impl Write {
    /// Changes a claim or its status.
    pub fn claim(purpose: &'static Rule, claim: &Claim, edit: Edit) -> Write {
        debug_assert!(matches!(edit, Edit::Claim(_) | Edit::ClaimStatus(_)), "the edit must be for a claim");
        Write::new(purpose, claim.key().into(), &claim.meta, edit)
    }

    /// Changes part of a claim's status.
    pub fn report(purpose: &'static Rule, claim: &Claim, report: ClaimReport) -> Write {
        Write::new(purpose, claim.key().into(), &claim.meta, Edit::ClaimReport(report))
    }

    /// Adds the protection finalizer.
    pub fn add_finalizer(purpose: &'static Rule, object: ProtectedObject<'_>) -> Write {
        Write::new(purpose, object.key(), object.meta(), Edit::Protection(ProtectionEdit::add_finalizer(object)))
    }

    /// Removes the protection finalizer, on proof that the object is unused.
    pub fn remove_finalizer(purpose: &'static Rule, object: ProtectedObject<'_>, proof: &UnusedProof) -> Write {
        let edit = Edit::Protection(ProtectionEdit::remove_finalizer(object, proof));
        Write::new(purpose, object.key(), object.meta(), edit)
    }

    /// Changes a pod's status.
    pub fn pod(purpose: &'static Rule, pod: &Pod, edit: PodStatusEdit) -> Write {
        Write::new(purpose, pod.key().into(), &pod.meta, Edit::PodStatus(edit))
    }

    /// Changes a volume or its status.
    pub fn volume(purpose: &'static Rule, volume: &Volume, edit: Edit) -> Write {
        debug_assert!(matches!(edit, Edit::Volume(_) | Edit::VolumeStatus(_)), "the edit must be for a volume");
        Write::new(purpose, ObjectKey::volume(volume.name().clone()), &volume.meta, edit)
    }

    /// Changes or removes a provisioning record.
    pub fn record(purpose: &'static Rule, record: &Record, edit: RecordEdit) -> Write {
        Write::new(purpose, ObjectKey::record(record.meta.name.clone()), &record.meta, Edit::Record(edit))
    }

    fn new(purpose: &'static Rule, target: ObjectKey, meta: &Meta, edit: Edit) -> Write {
        Write {
            target,
            uid: meta.uid.clone(),
            version: meta.version,
            edit,
            purpose,
            rejection_event: None,
            then: Vec::new(),
        }
    }

    /// Publishes an event once the write has succeeded.
    #[must_use]
    pub fn then(mut self, event: Event) -> Write {
        self.then.push(event);
        self
    }

    /// Publishes an event when the API server rejects the write.
    #[must_use]
    pub fn on_rejection(mut self, event: RejectionEvent) -> Write {
        self.rejection_event = Some(event);
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

    /// The resourceVersion that the object must have.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The change.
    pub fn edit(&self) -> &Edit {
        &self.edit
    }

    /// The patch to send, with its preconditions. `now` (RFC 3339) is the time of the change;
    /// [`Edit::patch_type`] is the patch's type.
    pub fn patch(&self, now: &str) -> Value {
        let mut patch = self.edit.patch(now);
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        metadata["uid"] = self.uid.as_str().into();
        metadata["resourceVersion"] = self.version.to_string().into();
        patch.into()
    }
}

/// The binding of a pod to a node. It is built from an observed pod and carries its UID and
/// resourceVersion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    target: ObjectKey,
    uid: Name,
    version: u64,
    node: Name,
    /// The rule that names this step.
    pub purpose: &'static Rule,
    /// Events to publish once the binding has succeeded.
    pub then: Vec<Event>,
}

impl Bind {
    /// Binds a pod to a node.
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

    /// Publishes an event once the binding has succeeded.
    #[must_use]
    pub fn then(mut self, event: Event) -> Bind {
        self.then.push(event);
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

    /// The resourceVersion that the pod must have.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The node.
    pub fn node(&self) -> &Name {
        &self.node
    }

    /// The Binding to send, with its preconditions.
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

/// The creation of an object. It fails when an object of that name exists.
#[derive(Debug, Clone, PartialEq)]
pub struct Create {
    /// The object's key.
    pub key: ObjectKey,
    /// The object as JSON.
    pub body: Value,
    /// The rule that names this step.
    pub purpose: &'static Rule,
    /// The task that the outcome is recorded under.
    pub task: Task,
    /// Events to publish once the object exists.
    pub then: Vec<Event>,
}

/// The deletion of a volume object. It requires proof, and carries the UID and resourceVersion that
/// the proof is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    proof: ReleaseProof,
    /// The rule that names this step.
    pub purpose: &'static Rule,
}

impl Delete {
    /// Deletes a volume whose reclaim policy is Delete; `None` for any other policy.
    pub fn volume(purpose: &'static Rule, proof: ReleaseProof) -> Option<Delete> {
        proof.has_policy(&ReclaimPolicy::Delete).then_some(Delete { proof, purpose })
    }

    /// The proof that the volume's claim no longer needs it.
    pub fn proof(&self) -> &ReleaseProof {
        &self.proof
    }
}
