//! Why a claim, a volume or a pod is as it is.
//!
//! An [`Explanation`] comes from the very functions that decide: the rule and what is next from the rule sets' `decide`, the
//! reasons against a volume from the tests that matching makes. So it says that a claim would bind to a volume exactly when the
//! binder would bind it. [`explain_claim`], [`explain_volume`] and [`explain_pod`] make one, its `Display` is what a person reads, and it can be
//! serialized for programs.
//!
//! This room does not know where objects come from, nor any rule of its own: it has no client, no clock and no file, and whatever
//! it says is read off a verdict. It changes nothing and sends nothing. What it is shown counts as read just now: where a rule
//! wants a live read, it is told what is shown.

mod beside;
mod candidates;
mod cells;
mod change;
mod claim;
mod explanation;
mod matrix;
mod next;
mod pod;
mod provisioning;
mod table;
mod terms;
mod text;
mod volume;
mod waits;

use bindery_model::ObjectKey;

pub use claim::explain_claim;
pub use explanation::{Beside, Bind, Candidate, Cell, Change, Explanation, Matrix, More, Next, Row, Terms};
pub use pod::explain_pod;
pub use provisioning::{Provisioning, Said, provisioning};
pub use volume::explain_volume;

/// How many lines candidates get, unless all are asked for.
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
