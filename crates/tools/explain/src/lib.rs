//! Explains the state of a claim, a volume or a pod.
//!
//! An [`Explanation`] is derived from the functions that decide: the rule and the next step come
//! from the rule sets' `decide`, the reasons against a volume from the checks of matching. A claim
//! is therefore said to bind to a volume exactly when the binder would bind it. [`explain_claim`],
//! [`explain_volume`] and [`explain_pod`] create explanations; `Display` is the text for operators,
//! and serde the form for programs.
//!
//! This crate has no client, no clock, no files and no rules. It changes nothing. The given cache
//! counts as current: live reads of a rule are answered from it.

mod candidates;
mod cell_text;
mod claim;
mod explanation;
mod lifecycle;
mod next_step;
mod node_matrix;
mod pod;
mod provisioning;
mod smallest_change;
mod table;
mod terms;
mod text;
mod volume;
mod waiting;

use bindery_model::ObjectKey;

pub use claim::explain_claim;
pub use explanation::{
    Bind, Candidate, Change, ClaimOnNode, ControllerDecision, Explanation, Matrix, More, NextStep, RejectedRequest,
    Row, Terms,
};
pub use pod::explain_pod;
pub use provisioning::{LastEvent, Provisioning, provisioning};
pub use volume::explain_volume;

/// The default number of candidate lines and table rows.
pub const LINES: usize = 10;

/// There is no such object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound(pub ObjectKey);

impl std::fmt::Display for NotFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} does not exist", self.0)
    }
}

impl std::error::Error for NotFound {}
