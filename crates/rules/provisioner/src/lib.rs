//! The rules of a provisioner: creating storage for claims, and deleting it again.
//!
//! ```text
//!  claim requests a volume ─▶ prepare ─▶ record the intent ─▶ create storage ─▶ save the volume ─▶ remove the intent
//!                                              │                   │
//!                                              └── after a restart, the call is repeated with identical parameters
//!  volume is Released ─▶ verify by live reads ─▶ delete storage ─▶ delete the volume ─▶ remove the finalizer
//! ```
//!
//! The rules do not depend on the kind of storage, such as a CSI driver, directories or disks: they
//! request operations and receive the outcomes. They use no clock, queue or client, and share
//! nothing with the binder but the objects that both write.

mod claim;
mod clone;
mod config;
mod failure;
mod intent;
pub mod rules;
mod ruleset;
mod spread;
mod topology;
mod volume;
mod wakes;

pub use config::{Config, OwnNode, TopologyConfig};
pub use intent::{Intent, is_current};
pub use ruleset::Provisioner;
