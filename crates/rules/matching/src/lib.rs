//! Which volume satisfies a claim.
//!
//! [`mismatch`](fn@mismatch) and its relatives test one volume against one claim;
//! [`choose`](fn@choose) picks a volume among the candidates; [`reservation`] says what to write so
//! that the chosen volume belongs to the claim. The binder uses them for claims that are bound
//! immediately, and placement for claims whose pod is being scheduled. [`INDEX_POLICY`] applies the
//! same tests to the indices of the cache.
//!
//! This crate does not know clocks, requests or rule names: it compares objects, and other rule
//! crates turn the result into verdicts.

mod choose;
mod index_policy;
mod mismatch;

pub use choose::{Choice, Reservation, choose, is_delayed, reservation};
pub use index_policy::INDEX_POLICY;
pub use mismatch::{MatchCriteria, Mismatch, check_satisfies, mismatch, mismatches, reserved_mismatch};
