//! CSIStorageCapacity objects: one for every StorageClass and topology segment, read by the
//! scheduler.
//!
//! ```text
//!   classes × segments ─▶ schedule (pure) ─▶ GetCapacity for what is due ─▶ plan (pure) ─▶ create, patch, delete
//!   volume created or deleted ─┘
//! ```
//!
//! Objects are deleted only when their class or segment does not exist any more. While a class
//! cannot be read, or the driver does not answer, they stay as they are.

mod changes;
mod label;
mod owner;
mod plan;
mod publisher;
mod schedule;
mod segments;

pub use changes::CapacityChanges;
pub use label::managed_by;
pub use owner::owner;
pub use plan::Identity;
pub use publisher::{CapacityPublisher, Counts, Targets};
pub use schedule::RetryDelays;
pub use segments::{Segment, segments};
