//! An explanation, as programs read it: its fields keep their names and meanings.

use bindery_model::Name;
use serde::Serialize;

use crate::Provisioning;

/// Why an object is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The kind of object: `PersistentVolumeClaim`, `PersistentVolume` or `Pod`.
    pub kind: &'static str,
    /// Its namespace; empty for a volume.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The phase that its status tells; of a pod whether it has a node, or how it ended.
    pub phase: String,
    /// Whether somebody deleted it.
    pub is_deleting: bool,
    /// The rule that applies.
    pub rule: &'static str,
    /// What the rule does, and why.
    pub reason: &'static str,
    /// What is particular about this case: an error, a flaw.
    pub note: Option<String>,
    /// What the rule tells as events.
    pub events: Vec<String>,
    /// What a claim asks for, or a volume offers; nothing when a field of it cannot be understood.
    pub terms: Option<Terms>,
    /// What is done next.
    pub next: Next,
    /// Who it is bound to, or would be.
    pub bind: Option<Bind>,
    /// What the controllers beside the binder say of it.
    pub beside: Vec<Beside>,
    /// For a claim that waits for its provisioner, how that goes. Whoever has events fills it in.
    pub provisioning: Option<Provisioning>,
    /// What has to happen for it to go on, in a sentence.
    pub waits_for: Option<String>,
    /// For a claim the volumes that it could have, for a volume the claims that could have it, the nearest first; for a pod the
    /// claims of its volumes, in order.
    pub candidates: Vec<Candidate>,
    /// Candidates that got no line, in groups.
    pub more: Vec<More>,
    /// For a pod, the nodes and what they have for its claims; for one that has its node, that node only.
    pub matrix: Option<Matrix>,
    /// The smallest change that would let a pod that waits be placed.
    pub change: Option<Change>,
}

/// What a claim asks for, or a volume offers. What is not there was not said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Terms {
    /// How much.
    pub storage: Option<String>,
    /// In which ways it can be mounted.
    pub access_modes: Vec<&'static str>,
    /// File system or block device.
    pub volume_mode: &'static str,
    /// Its class; empty for a claim that wants a volume without one.
    pub class: Option<Name>,
    /// Which labels, for a claim.
    pub selector: Option<String>,
    /// Its attributes class.
    pub attributes_class: Option<Name>,
    /// What becomes of a volume without its claim.
    pub reclaim_policy: Option<String>,
}

/// What is done next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Next {
    /// In a word: `nothing`, `write`, `create`, `delete`, `read`, `list`, `operate`, `offer` or `retry`.
    pub action: &'static str,
    /// Which step that is, by the name of its rule.
    pub step: Option<&'static str>,
    /// In words.
    pub text: String,
}

/// What a controller beside the binder says of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Beside {
    /// Which controller.
    pub controller: &'static str,
    /// The rule that applies.
    pub rule: &'static str,
    /// What the rule does, and why.
    pub reason: &'static str,
    /// What is particular about this case.
    pub note: Option<String>,
    /// What the rule tells as events.
    pub events: Vec<String>,
    /// What is done next.
    pub next: Next,
}

/// Who belongs to whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bind {
    /// The other one: a volume's name, or a claim's namespace and name.
    pub to: String,
    /// Whether everything is written. If not, the next step is one of the bind.
    pub is_done: bool,
    /// Claims that would take the same volume: who is decided about first has it.
    pub rivals: Vec<String>,
}

/// A volume that a claim could have, or a claim that could have a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Its name; of a claim with the namespace.
    pub name: String,
    /// Whether it passes every test.
    pub fits: bool,
    /// Why it is the one, or is not: first the first test that fails, and by how much.
    pub why: Vec<String>,
}

/// Candidates that got no line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct More {
    /// How many.
    pub count: usize,
    /// What they have in common.
    pub what: String,
}

/// What every node has for the claims of a pod that waits for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    /// The pod's claims: the columns.
    pub claims: Vec<String>,
    /// Nodes, the nearest first.
    pub rows: Vec<Row>,
    /// How many nodes got no row.
    pub hidden: usize,
}

/// A node, for all of its sort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The node.
    pub node: String,
    /// How many others there are of which the same is to be said.
    pub others: usize,
    /// Whether the pod can be placed there.
    pub fits: bool,
    /// What it has for each claim.
    pub claims: Vec<Cell>,
    /// What else stands against it.
    pub rest: Vec<String>,
}

/// What a node has for a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    /// Whether it has something.
    pub fits: bool,
    /// What it has, or why it has nothing.
    pub text: String,
}

/// The smallest change that was found to make a pod schedulable: it was tried, with the scheduler's own tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The node that the pod could be placed on then.
    pub node: String,
    /// What to do, all of it.
    pub steps: Vec<String>,
}
