//! The rules of the controllers that work beside the binder.
//!
//! - [`Ephemeral`] makes the claims of pods' ephemeral volumes.
//! - [`ClaimProtection`], [`VolumeProtection`] and [`AttributesClassProtection`] keep what is in use from going.
//! - [`Expander`] says who makes a claim's volume grow, and does what is left to do for Flex volumes.
//!
//! Each is a rule set of its own, and can be left out. All rules are declared in [`rules`].
//!
//! This room does not know a clock, a queue or a client, nor the binder: they meet only in the objects that they write.

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
