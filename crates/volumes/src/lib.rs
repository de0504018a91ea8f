//! The vocabulary of volumes.
//!
//! Lean claims, volumes, classes, pods and nodes, decoded from the JSON that a Kubernetes API server sends; exact quantities;
//! access modes; every annotation key, finalizer, phase and event reason, written down once; and the tests that hold between
//! one claim and one volume.
//!
//! This room does not know that there is a cluster: no client, no clock, no collection of objects, no decision.
//! What it does not know about an object it skips, and never stores.

mod access;
mod annotation;
mod attributes_class;
mod claim;
mod class;
mod decode;
pub mod event;
pub mod finalizer;
mod fit;
mod meta;
pub mod migration;
mod node;
mod object;
mod pod;
mod quantity;
mod selector;
mod volume;

pub use access::{AccessMode, AccessModes, AccessSet};
pub use annotation::{Annotation, Annotations};
pub use attributes_class::AttributesClass;
pub use claim::{Claim, ClaimChange, ClaimKey, ClaimPhase, ClaimStatus, Condition};
pub use class::{BindingMode, Class};
pub use fit::{Misfit, Request, misfit, misfits, points_to, reserved_misfit, satisfies};
pub use meta::{Flaw, Labels, Meta};
pub use node::Node;
pub use object::{Kind, Object, ObjectKey};
pub use pod::{Pod, PodKey, PodPhase, PodVolume};
pub use quantity::{Quantity, QuantityError};
pub use selector::{Requirement, Selector};
pub use volume::{ClaimRef, ReclaimPolicy, Source, Volume, VolumeMode, VolumePhase};

/// A name, a UID or another short string: cheap to clone, and without a heap block when it is short.
pub type Name = smol_str::SmolStr;

/// The class, or attributes class, of whoever has none.
static NONE: Name = Name::new_static("");
