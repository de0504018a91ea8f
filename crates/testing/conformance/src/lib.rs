//! Sends the same requests to two API servers and compares their responses.
//!
//! A *shape* is a named sequence of requests, such as `pvc.update.spec-immutable`. Shapes are data
//! in `shapes/*.yaml` ([`notation`] documents the format). A shape is expanded into runs by a seed.
//! Each run uses its own object names, so that runs can be concurrent and repeated. [`run`] sends
//! the requests of a run to one server and records the responses, [`normalise`] removes what must
//! differ (UIDs, times, revisions), and [`compare`] lists the remaining differences.
//!
//! This crate does not know how either server works, nor which one is right.

pub mod compare;
pub mod endpoint;
pub mod known;
pub mod normalise;
pub mod notation;
pub mod reference;
pub mod report;
pub mod rng;
pub mod run;
pub mod suite;
pub mod values;
pub mod walk;
