//! Local disks: creates PersistentVolumes for disks that are mounted or linked below a directory of
//! a node, and cleans released ones before they are used again. A drop-in replacement for
//! sig-storage-local-static-provisioner and its node-cleanup controller.
//!
//! ```text
//!   config ──┐
//!   disk ────┼─▶ discover ─▶ volumes to create, or why not
//!   volumes ─┘
//!   released volume ─▶ clean ─▶ volume deleted
//!   deleted node ─▶ deleted_nodes ─▶ claims and volumes to delete
//! ```
//!
//! Decisions are pure functions: [`discover`], [`clean::target`], [`deleted_nodes`]. Only [`disk`]
//! looks at the machine, and only [`clean`] changes it. [`agent`] runs them on a node.
//! [`node_cleanup`] runs once in a cluster and deletes claims and volumes of deleted nodes.
//!
//! When a released volume is reclaimed is decided by `bindery-provisioner`, not here.

pub mod agent;
pub mod clean;
pub mod config;
pub mod deleted_nodes;
pub mod discover;
pub mod disk;
pub mod naming;
pub mod node_cleanup;
pub mod pattern;
pub mod rules;

pub use config::{ClassConfig, Cleaner, Config, Wipe};
