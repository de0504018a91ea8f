//! Provisioning with a CSI driver.
//!
//! ```text
//!   claim, class ─▶ prepare (pure) ─▶ CreateVolume ─▶ volume (pure) ─▶ PersistentVolume
//!                     │    ▲                            └─▶ or DeleteVolume, if it is unusable
//!                     ▼    │
//!                  ObjectClient: live objects
//! ```
//!
//! This crate does not decide when a volume is provisioned or deleted, nor which claim a volume is
//! bound to. It writes no volumes, and of other objects only finalizers on data sources,
//! CSIStorageCapacity objects, and the selected node of claims. Secrets are read when they are
//! passed to the driver, and neither stored nor logged.

pub mod capacity;
mod coalesced;
mod connection;
mod delete;
mod driver;
mod facts;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod fields;
mod grpc_status;
mod migration;
mod node_assignment;
mod objects;
mod path;
mod prepare;
mod setup;
mod snapshot_finalizers;
mod storage;
mod volume;

pub use driver::{CallObserver, Driver, DriverInfo, FinishedCall};
pub use facts::{Facts, Patch, ReadResult, WriteResult};
pub use grpc_status::code_name;
pub use node_assignment::{NodeAssignment, TouchedClaims, UnassignedClaim};
pub use objects::{ApiObjects, ObjectClient};
pub use prepare::{Prepared, SecretRef, Secrets, Source, Step, next};
pub use setup::{Capabilities, Setup};
pub use snapshot_finalizers::remove_stale_snapshot_finalizers;
pub use storage::Csi;

/// The CSI protocol, generated from `proto/csi.proto`.
#[allow(missing_docs, unused_qualifications, clippy::all)]
pub mod proto {
    tonic::include_proto!("csi.v1");
}
