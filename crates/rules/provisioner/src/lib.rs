//! The rules of a provisioner: having storage made for claims, and removed again.
//!
//! ```text
//!  claim names us ─▶ find out what to ask for ─▶ put the intent on the claim ─▶ ask ─▶ create the volume ─▶ take the intent off
//!                                                       │                        │
//!                                                       └── whoever restarts here asks for just the same again
//!  volume is Released ─▶ prove by live reads that nobody has it ─▶ remove its storage ─▶ delete the volume ─▶ let go of it
//! ```
//!
//! What the storage is, this room does not know: a CSI driver, directories, disks. It orders, and hears how it went. It does not
//! know a clock, a queue or a client, nor the binder: they meet only in the objects that they write.

mod claim;
mod clone;
mod config;
mod failure;
mod intent;
pub mod rules;
mod set;
mod spread;
mod topology;
mod volume;
mod wakes;

pub use config::{Config, OwnNode, TopologyConfig};
pub use set::Provisioner;
