//! A framework for volume provisioners.
//!
//! ```text
//!   rules (bindery-provisioner) ─▶ engine ─▶ ProvisioningWorker ─▶ your Storage
//!                                               └─ reads the claim, class and volume live
//! ```
//!
//! Implement [`Storage`] and call [`serve`]. Claims whose StorageClass names your provisioner get
//! volumes, and the backing storage of released volumes is deleted. The rules and the engine ensure
//! that no storage is lost or leaked when a process crashes; a storage only has to be idempotent.
//!
//! [`HostPath`] is the in-tree host-path plugin as a `Storage`; [`InTreeWorker`] runs it and the
//! recycler for the controller.
//!
//! This crate contains no rules.

mod host_path;
mod in_tree;
mod serve;
mod storage;
mod worker;

pub use bindery_provisioner::{Config, OwnNode, Provisioner, TopologyConfig};
pub use bindery_rules_api::{Accessibility, Failure, FailureEffect, ProvisionRequest, Term};
pub use host_path::HostPath;
pub use in_tree::InTreeWorker;
pub use serve::serve;
pub use storage::{ProvisionContext, Storage};
pub use worker::{ProvisioningWorker, claim_path, class_path, volume_path};
