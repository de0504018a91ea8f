//! The rules of the lifecycle controllers.
//!
//! - [`Ephemeral`] creates the claims of pods' ephemeral volumes.
//! - [`ClaimProtection`], [`VolumeProtection`] and [`AttributesClassProtection`] protect objects in
//!   use from deletion.
//! - [`Expander`] requests the expansion of volumes from external resizers, and expands
//!   FlexVolumes.
//!
//! Each is a separate rule set and can be disabled. All rules are declared in [`rules`].
//!
//! The rules use no clock, queue or client, and share nothing with the binder but the objects that
//! both write.

mod attributes_class_protection;
mod claim_protection;
mod ephemeral;
mod expander;
mod flex;
pub mod rules;
mod volume_protection;

pub use attributes_class_protection::AttributesClassProtection;
pub use claim_protection::ClaimProtection;
pub use ephemeral::Ephemeral;
pub use expander::Expander;
pub use volume_protection::VolumeProtection;
