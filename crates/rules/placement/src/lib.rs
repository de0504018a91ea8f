//! Volume placement: which nodes can run a pod with its claims, and what to reserve or provision
//! there. This is the scheduler's part of delayed binding (WaitForFirstConsumer).
//!
//! ```text
//!  pod ──prepare──▶ VolumePlacement ──find(node)──▶ NodeVolumes ──▶ BindingPlan ──next──▶ Step
//!        once             │            for each node     │ score                  until done
//!   or PodRejection       └── or PlacementError          └── or NodeRejections
//! ```
//!
//! [`VolumePlacement::prepare`] reads the pod's claims once; [`VolumePlacement::find`] is then
//! called for every node, and reads only what that node can reach; [`UtilizationShape::score`]
//! compares the suitable nodes. For the chosen node a [`BindingPlan`] says, step by step, what to
//! write. [`VolumePlacement::report`] evaluates each claim on a node separately, to explain all
//! reasons instead of the first. [`zone`], [`restrictions`] and [`limits`] are upstream's plugins
//! VolumeZone, VolumeRestrictions and NodeVolumeLimits.
//!
//! Everything here is a pure function of the cache. This crate does not know clocks, queues or
//! clients, nor scheduling criteria other than volumes. It has no memory: what a restart loses is
//! planned again.

pub mod limits;
mod migration;
mod node_volumes;
mod placement;
mod plan;
pub mod prepare;
mod provision;
mod reason;
mod report;
pub mod restrictions;
pub mod rules;
mod score;
pub mod zone;

pub use node_volumes::{Binding, NewVolume, NodeVolumes, UnusableVolume};
pub use placement::VolumePlacement;
pub use plan::{BindError, BindingPlan, Step};
pub use prepare::{ClaimRejection, PreparedClaims};
pub use provision::CannotProvision;
pub use reason::{NodeRejection, PlacementError, PodRejection};
pub use report::{ClaimFailure, ClaimOutcome, NodeReport};
pub use restrictions::other_users;
pub use score::{ShapeError, ShapePoint, UtilizationShape};
