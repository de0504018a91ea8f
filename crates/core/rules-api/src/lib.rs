//! The contract between rule sets and the engine.
//!
//! A rule set is shown what is known (the mirror) and what was found out live for one key, and answers with a [`Verdict`]: the
//! rule that applies, at most one next request, and the events to publish. The engine carries it out and asks again.
//!
//! ```text
//!   Mirror ─┐
//!           ├─▶ RuleSet::decide(key) ─▶ Verdict { rule, action, notices } ─▶ engine
//! Findings ─┘
//! ```
//!
//! This room does not know any rule, and not how a request is sent. What it makes sure of is that a write cannot be made without
//! an object that was seen, nor a deletion without proof from live reads.

mod edit;
mod findings;
mod notice;
mod order;
mod proof;
mod protection;
mod report;
mod request;
mod rule;
mod ruleset;
mod verdict;

pub use edit::{ClaimEdit, ClaimStatusEdit, Edit, PatchType, PodStatusEdit, RefEdit, VolumeEdit, VolumeStatusEdit};
pub use findings::{After, Failure, Findings, Yield};
pub use notice::Notice;
pub use order::{Accessibility, Intent, Order, Term, Turn};
pub use proof::{NotReleased, ReleaseProof};
pub use protection::{Guarded, NotUnused, ProtectionEdit, UnusedProof, users};
pub use report::{ClaimReport, ConditionEdit, ConditionType, Growth};
pub use request::{Bind, Create, Delete, Listing, Operation, Plugin, Provision, Recycle, Regret, Request, Task, Write};
pub use rule::Rule;
pub use ruleset::{Profile, RuleSet, Tempo};
pub use verdict::{Action, Measure, Pace, Timed, Verdict};
