//! The contract between rule sets and the engine.
//!
//! A rule set is shown what is known (the mirror) and what was found out live for one key, and answers with a [`Verdict`]: the
//! rule that applies, at most one next request, and the events to publish. The engine carries it out and asks again.
//!
//! ```text
//!   Cache ─┐
//!           ├─▶ RuleSet::decide(key) ─▶ Verdict { rule, action, events } ─▶ engine
//! LiveReads ─┘
//! ```
//!
//! This room does not know any rule, and not how a request is sent. What it makes sure of is that a write cannot be made without
//! an object that was seen, nor a deletion without proof from live reads.

mod edit;
mod event;
mod live_reads;
mod proof;
mod protection;
mod provisioning;
mod report;
mod request;
mod rule;
mod ruleset;
mod verdict;

pub use edit::{ClaimEdit, ClaimStatusEdit, Edit, PatchType, PodStatusEdit, RefEdit, VolumeEdit, VolumeStatusEdit};
pub use event::Event;
pub use live_reads::{Failure, FailureEffect, LiveReads, OperationOutput};
pub use proof::{NotReleased, ReleaseProof};
pub use protection::{NotUnused, ProtectedObject, ProtectionEdit, UnusedProof, users};
pub use provisioning::{Accessibility, Attempt, Intent, ProvisionRequest, Term};
pub use report::{ClaimReport, ConditionEdit, ConditionType, Growth};
pub use request::{
    Bind, Create, Delete, Listing, Operation, Plugin, Provision, Recycle, RejectionEvent, Request, Task, Write,
};
pub use rule::Rule;
pub use ruleset::{Profile, ResyncInterval, RuleSet};
pub use verdict::{Action, Backoff, Measure, Timed, Verdict};
