//! The vocabulary of volumes.
//!
//! Lean claims, volumes, classes, pods, nodes and what CSI drivers say of themselves, decoded from the JSON that a Kubernetes API server sends; exact quantities;
//! access modes; every annotation key, finalizer, phase and event reason, written down once; and the tests that hold between
//! one claim and one volume.
//!
//! This room does not know that there is a cluster: no client, no clock, no collection of objects, no decision.
//! What it does not know about an object it skips, and never stores.

mod access;
mod annotation;
mod attachment;
mod attributes_class;
mod capacity;
mod choice;
mod claim;
mod class;
mod csi_driver;
mod csi_node;
mod decode;
mod disk;
pub mod event;
pub mod finalizer;
mod fit;
mod handle;
mod meta;
pub mod migration;
mod node;
mod node_selector;
mod object;
mod pod;
mod quantity;
mod resources;
mod scheduling;
mod selector;
mod topology;
mod volume;

pub use access::{AccessMode, AccessModes, AccessSet};
pub use annotation::{Annotation, Annotations};
pub use attachment::Attachment;
pub use attributes_class::AttributesClass;
pub use capacity::Capacity;
pub use choice::{Choice, Reservation, choose, is_delayed, reservation};
pub use claim::{Claim, ClaimChange, ClaimKey, ClaimPhase, ClaimStatus, Condition, DataSource};
pub use class::{BindingMode, Class};
pub use csi_driver::CsiDriver;
pub use csi_node::{CsiNode, NodeDriver};
pub use disk::Disk;
pub use fit::{Mismatch, Request, mismatch, mismatches, points_to, reserved_mismatch, satisfies};
pub use handle::{Attacher, Handle};
pub use meta::{FieldError, Labels, Meta};
pub use node::{Node, Taint, TaintEffect};
pub use node_selector::{Anchors, NodeSelector};
pub use object::{Kind, Object, ObjectKey};
pub use pod::{Pod, PodKey, PodPhase, PodVolume, QueueOrder};
pub use quantity::{Quantity, QuantityError};
pub use resources::{Allocatable, Amounts, Needs};
pub use scheduling::{DEFAULT_SCHEDULER, Nearness, Scheduling, Toleration, TopologySpread};
pub use selector::{Requirement, Selector};
pub use topology::Topologies;
pub use volume::{ClaimRef, ReclaimPolicy, Source, Volume, VolumeMode, VolumePhase};

/// A name, a UID or another short string: cheap to clone, and without a heap block when it is short.
pub type Name = smol_str::SmolStr;

/// The class, or attributes class, of whoever has none.
static NONE: Name = Name::new_static("");
