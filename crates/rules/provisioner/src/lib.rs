//! The rules of a provisioner: creating storage for claims, and deleting it again.
//!
//! ```text
//!  claim:  prepare ─▶ write record ─▶ create storage ─▶ save volume ─▶ remove record
//!                          │                 │
//!                          └── a restart here repeats the call with identical parameters, even if
//!                              the claim or its class was deleted
//!  volume: released ─▶ verify live ─▶ delete storage ─▶ delete volume ─▶ remove finalizer
//! ```
//!
//! The rules do not depend on the kind of storage, such as a CSI driver, directories or disks: they
//! request operations and receive the outcomes. They use no clock, queue or client, and share
//! nothing with the binder but the objects that both write.

mod claim;
mod clone;
mod config;
mod failure;
mod finish;
mod record;
mod requested;
pub mod rules;
mod ruleset;
mod spread;
mod topology;
mod volume;
mod wakes;

pub use config::{Config, OwnNode, TopologyConfig};
pub use ruleset::Provisioner;
