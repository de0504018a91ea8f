//! An explanation as data. Its JSON form is an interface: field names and meanings are stable.

use bindery_model::Name;
use serde::{Deserialize, Serialize};

use crate::Provisioning;

/// Why an object is in its current state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The kind of object: `PersistentVolumeClaim`, `PersistentVolume` or `Pod`.
    pub kind: &'static str,
    /// Its namespace; empty for a volume.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The phase in its status; for a pod whether it has a node, or how it ended.
    pub phase: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// The rule that applies.
    pub rule: &'static str,
    /// The rule's sentence: what it does, and why.
    pub reason: &'static str,
    /// Details of this case, such as an error or an invalid field.
    pub note: Option<String>,
    /// The events that the rule publishes.
    pub events: Vec<String>,
    /// What a claim requests, or a volume provides; `None` when a field is invalid.
    pub terms: Option<Terms>,
    /// The next step.
    pub next: NextStep,
    /// The claim or volume that it is bound to, or would be.
    pub bind: Option<Bind>,
    /// What the lifecycle controllers decide about it.
    pub controllers: Vec<ControllerDecision>,
    /// The state of provisioning, for a claim. Filled in by callers that have events.
    pub provisioning: Option<Provisioning>,
    /// The last request about it that the API server rejected. Filled in by callers that asked a
    /// controller, or have events.
    pub rejected: Option<RejectedRequest>,
    /// What it waits for, as one sentence.
    pub waits_for: Option<String>,
    /// For a claim the candidate volumes, for a volume the candidate claims, the best first; for a
    /// pod the claims of its volumes, in order.
    pub candidates: Vec<Candidate>,
    /// Groups of candidates that got no line.
    pub more: Vec<More>,
    /// For a pod, what each node offers its claims; for a pod with a node, only that node.
    pub matrix: Option<Matrix>,
    /// For a waiting pod, the smallest change that would make it schedulable.
    pub change: Option<Change>,
}

/// A request that the API server rejected. An event has only the message and the time; a controller
/// knows the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedRequest {
    /// The server's error.
    pub error: String,
    /// The step that the request was sent for.
    pub step: Option<String>,
    /// The HTTP status; 0 without a response.
    pub status: Option<u16>,
    /// How often it was rejected in a row.
    pub failures: Option<u32>,
    /// When it was last reported.
    pub last_seen: Option<String>,
}

impl RejectedRequest {
    pub(crate) fn text(&self) -> String {
        let step = self.step.iter().map(|step| format!("{step}: ")).collect::<String>();
        let details: Vec<String> = [
            self.status.map(|status| format!("status {status}")),
            self.failures.map(|failures| format!("{failures} times")),
            self.last_seen.as_ref().map(|at| format!("last reported at {at}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        format!("{step}{}{details}", self.error)
    }
}

/// What a claim requests, or a volume provides. Unset fields were not specified.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Terms {
    /// The requested size, or the capacity.
    pub storage: Option<String>,
    /// The access modes.
    pub access_modes: Vec<&'static str>,
    /// `Filesystem` or `Block`.
    pub volume_mode: &'static str,
    /// The class; empty for a claim that requires a volume without a class.
    pub class: Option<Name>,
    /// The label selector of a claim.
    pub selector: Option<String>,
    /// The VolumeAttributesClass.
    pub attributes_class: Option<Name>,
    /// The reclaim policy of a volume.
    pub reclaim_policy: Option<String>,
}

/// The next step of the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextStep {
    /// One of `nothing`, `write`, `create`, `bind`, `delete`, `read`, `list`, `operation`,
    /// `hand-off` and `retry`.
    pub action: &'static str,
    /// The name of the rule that describes the step.
    pub step: Option<&'static str>,
    /// The step as text.
    pub text: String,
}

/// What a lifecycle controller decides about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerDecision {
    /// The name of the controller.
    pub controller: &'static str,
    /// The rule that applies.
    pub rule: &'static str,
    /// The rule's sentence: what it does, and why.
    pub reason: &'static str,
    /// Details of this case.
    pub note: Option<String>,
    /// The events that the rule publishes.
    pub events: Vec<String>,
    /// The next step.
    pub next: NextStep,
}

/// A bind of a claim and a volume, complete or expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bind {
    /// The name of the volume, or the namespace and name of the claim.
    pub to: String,
    /// Whether the bind is complete. If not, the next step is one of its writes.
    pub is_done: bool,
    /// Claims that would bind to the same volume: the claim that is decided first gets it.
    pub rivals: Vec<String>,
}

/// A volume that a claim could bind to, or a claim that could bind to a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Its name; for a claim with the namespace.
    pub name: String,
    /// Whether it passes every check.
    pub fits: bool,
    /// Why it is chosen or rejected: the failed checks, in order.
    pub why: Vec<String>,
}

/// A group of candidates that got no line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct More {
    /// How many.
    pub count: usize,
    /// What they have in common.
    pub what: String,
}

/// What each node offers the claims of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    /// The pod's claims: the columns.
    pub claims: Vec<String>,
    /// The nodes; those with the fewest obstacles come first.
    pub rows: Vec<Row>,
    /// How many nodes are not in any row.
    pub hidden: usize,
}

/// A node, representing all nodes with the same obstacles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The node.
    pub node: String,
    /// How many other nodes this row stands for.
    pub similar_nodes: usize,
    /// Whether the pod can be scheduled there.
    pub fits: bool,
    /// What it offers each claim.
    pub claims: Vec<ClaimOnNode>,
    /// Failed checks that are not about claims.
    pub other_reasons: Vec<String>,
}

/// What a node offers a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimOnNode {
    /// Whether the claim can be bound or provisioned on the node.
    pub fits: bool,
    /// The volume, or why there is none.
    pub text: String,
}

/// The smallest known change that makes a pod schedulable, verified with the scheduler's own
/// checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The node that the pod could then be scheduled on.
    pub node: String,
    /// The steps; all of them are necessary.
    pub steps: Vec<String>,
}
