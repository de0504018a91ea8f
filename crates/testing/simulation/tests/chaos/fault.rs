//! The faults of a chaos run.

use crate::storage_faults::StorageFault;

/// Something that happens: progress, a fault, or an action of a user. Numbers select an item.
#[derive(Debug, Clone)]
pub enum Fault {
    /// A request is carried out and answered.
    Answer(u8),
    /// A request is carried out, and its answer is delayed.
    AnswerLate(u8),
    /// A delayed answer is delivered.
    DeliverAnswer(u8),
    /// A request is carried out, and its answer is lost.
    LoseAnswer(u8),
    /// A request is lost.
    LoseRequest(u8),
    /// A request is rejected.
    RejectRequest(u8),
    /// The server is overloaded: a request is to be sent again after some seconds.
    RetryAfter(u8),
    /// The pod of a request to scrub a volume starts to run. The request is not answered yet.
    StartScrub(u8),
    /// An engine loses leadership, or becomes leader again.
    ChangeLeader(u8),
    /// The oldest watch event is delivered.
    DeliverEvent(u8),
    /// The oldest watch event of one kind is delivered: the order across kinds is not guaranteed.
    DeliverEventOfKind(u8),
    /// Time passes.
    Tick,
    /// An engine is replaced by a new one.
    Restart(u8),
    /// All kinds are listed again.
    Relist(u8),
    /// A user creates an object, if the name is free.
    Create(&'static str),
    /// A user deletes an object.
    Delete(u8),
    /// A user removes the `claimRef` of a volume.
    ClearClaimRef(u8),
    /// A user adds an unrelated annotation.
    Annotate(u8),
    /// Another scheduler assigns a pod to a node, unless a claim is missing or being deleted.
    Schedule(u8),
    /// A pod completes.
    CompletePod(u8),
    /// A user deletes a pod with a grace period.
    DeletePod(u8),
    /// A kubelet finishes the deletion of a pod.
    FinishPodDeletion(u8),
    /// The garbage collector deletes claims whose pods do not exist.
    CollectGarbage,
    /// The owner of a foreign finalizer removes it.
    RemoveFinalizer(u8),
    /// The external provisioner creates a requested volume.
    Provision(u8),
    /// The external provisioner fails.
    FailToProvision(u8),
    /// A node is cordoned or uncordoned.
    Cordon(u8),
    /// Something happens to the storage backend or its callers.
    Storage(StorageFault),
}
