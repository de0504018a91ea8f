//! The object model: claims, volumes, classes, pods, nodes and CSI objects.
//!
//! Objects are decoded from the JSON of a Kubernetes API server; only the fields that rules read
//! are kept. The crate also has exact quantities, access modes, selectors, and every annotation
//! key, finalizer, phase and event reason in one place. [`for_each_kind`] is the table of kinds.
//!
//! This crate does not know that there is a cluster: it has no client, no clock, no collection of
//! objects and no decision.

mod access;
mod annotation;
mod attachment;
mod attributes_class;
mod capacity;
mod claim;
mod class;
mod csi_driver;
mod csi_node;
mod decode;
mod disk;
pub mod event;
pub mod finalizer;
mod handle;
pub mod hash;
mod meta;
pub mod migration;
pub mod names;
mod node;
mod node_selector;
mod object;
mod pod;
mod quantity;
mod record;
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
pub use claim::{Claim, ClaimChange, ClaimKey, ClaimPhase, ClaimStatus, Condition, DataSource};
pub use class::{BindingMode, Class};
pub use csi_driver::CsiDriver;
pub use csi_node::{CsiNode, NodeDriver};
pub use disk::Disk;
pub use handle::{Attacher, Handle};
pub use meta::{FieldError, Labels, Meta};
pub use node::{Node, Taint, TaintEffect};
pub use node_selector::{NodeSelector, RequiredLabels};
pub use object::{Kind, Object, ObjectKey, ObjectType};
pub use pod::{Pod, PodKey, PodPhase, PodVolume, QueueOrder};
pub use quantity::{Quantity, QuantityError};
pub use record::{Attempt, Record};
pub use resources::{Allocatable, ResourceList, ResourceRequests};
pub use scheduling::{DEFAULT_SCHEDULER, PodAffinityTerm, Scheduling, Toleration, TopologySpreadConstraint};
pub use selector::{Requirement, Selector};
pub use topology::Topologies;
pub use volume::{ClaimRef, ReclaimPolicy, Source, Volume, VolumeMode, VolumePhase};

/// A name, a UID or another short string: cheap to clone, and stored inline when it is short.
pub type Name = smol_str::SmolStr;

/// The class, or attributes class, of objects that have none.
static NONE: Name = Name::new_static("");
