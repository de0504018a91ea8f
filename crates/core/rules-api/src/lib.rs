//! The contract between rule sets and the engine.
//!
//! For one key, a rule set receives the [cache](bindery_cache::Cache) and the results of live
//! reads, and returns a [`Verdict`]: the rule that applies, at most one request, and the events to
//! publish. The engine sends the request and asks the rule set again when the answer arrives.
//!
//! ```text
//!    Cache ──┐
//!            ├─▶ RuleSet::decide(key) ─▶ Verdict { rule, action, events } ─▶ engine
//! LiveReads ─┘
//! ```
//!
//! This crate contains no rule and sends no request. Its types guarantee that every write is
//! conditional on an object that was observed, and that every deletion carries proof from live
//! reads.

mod edit;
mod event;
mod live_reads;
mod operation;
mod proof;
mod protection;
mod provisioning;
mod report;
mod request;
mod rule;
mod ruleset;
mod verdict;

pub use bindery_model::Attempt;
pub use edit::{
    ClaimEdit, ClaimStatusEdit, Edit, PatchType, PodStatusEdit, RecordEdit, RefEdit, VolumeEdit, VolumeStatusEdit,
};
pub use event::Event;
pub use live_reads::{Failure, FailureEffect, LiveReads, OperationOutput};
pub use operation::{HOST_PATH_PLUGIN, Operation, Recycle, RecycleStep, RecyclerPod, Task, check_deletable_path};
pub use proof::{NotReleased, ReleaseProof};
pub use protection::{NotUnused, ProtectedObject, ProtectionEdit, UnusedProof, users};
pub use provisioning::{Accessibility, ProvisionRequest, Recorded, Term};
pub use report::{ClaimReport, ConditionEdit, ConditionType, Expansion};
pub use request::{Bind, Create, Delete, Listing, RejectionEvent, Request, Write};
pub use rule::Rule;
pub use ruleset::{Profile, ResyncInterval, RuleSet};
pub use verdict::{Action, Backoff, Measure, Timed, Verdict};
