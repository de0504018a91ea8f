//! A provisioner of your own: say how storage is made and removed, and the rest is done.
//!
//! ```text
//!   rules (bindery-provisioner) ─▶ engine ─▶ ProvisioningWorker ─▶ your Storage
//!                                               │ reads live what it is handed: the claim, its class, the volume
//! ```
//!
//! Implement [`Storage`] and call [`serve`]: claims of classes that name your provisioner get volumes, and what lies behind
//! released volumes is removed. That nothing is lost or forgotten, whatever crashes when, is not yours to look after: a storage
//! must only be such that doing the same twice does it once.
//!
//! This room does not know any rule, and no storage.

mod serve;
mod storage;
mod worker;

pub use bindery_provisioner::{Config, OwnNode, Provisioner, TopologyConfig};
pub use bindery_rules_api::{Accessibility, Failure, FailureEffect, ProvisionRequest, Term};
pub use serve::serve;
pub use storage::{Ask, Storage};
pub use worker::{ProvisioningWorker, claim_path, class_path, volume_path};
