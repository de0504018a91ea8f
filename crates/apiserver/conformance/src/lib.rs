//! The same requests to two API servers, and what differs in their answers.
//!
//! A *shape* is a named kind of request in a situation, such as `pvc.update.spec-immutable`. Shapes are data: they stand in
//! `shapes/*.yaml` (the notation is told in [`notation`]), are expanded into runs by a seed, and each run has names of its
//! own, so that they can be run beside each other and again. [`run`] sends a run's requests to one server and keeps the
//! answers; [`normalise`] takes away what must differ (UIDs, times, revisions); [`compare`] says what else does.
//!
//! This room does not know how either server works, nor which of the two is right.

pub mod compare;
pub mod dice;
pub mod endpoint;
pub mod known;
pub mod normalise;
pub mod notation;
pub mod real;
pub mod report;
pub mod run;
pub mod suite;
pub mod values;
pub mod walk;
