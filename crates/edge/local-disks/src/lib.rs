//! Local disks: what is mounted under a directory of a node, or linked there, is offered as volumes; and cleaned before it is
//! offered again. A drop-in for the local static provisioner and its node-cleanup.
//!
//! ```text
//!   config ──┐
//!   disk ────┼─▶ discover ─▶ volumes to create, or why not      a released volume ─▶ clean ─▶ its object may go
//!   known ───┘                                                  a node that is gone ─▶ orphans: what may go with it
//! ```
//!
//! What is decided, is decided by pure functions: [`discover`], [`clean::target`], [`orphans`]. Only [`disk`] looks at the machine,
//! and only [`clean`] changes it. [`agent`] runs on a node and puts these to work; [`caretaker`] runs once in a cluster, and sees
//! to what was on nodes that are gone.
//!
//! This room does not know when a released volume may go, nor how a claim gets one: it orders nothing, and is asked.

pub mod agent;
pub mod clean;
pub mod config;
pub mod discover;
pub mod disk;
pub mod naming;
pub mod node_cleanup;
pub mod orphans;
pub mod pattern;
pub mod rules;

pub use config::{ClassConfig, Cleaner, Config, Wipe};
