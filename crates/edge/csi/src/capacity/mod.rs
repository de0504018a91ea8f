//! CSIStorageCapacity objects: one for every StorageClass and topology segment, read by the
//! scheduler.
//!
//! ```text
//!   classes × segments ─▶ GetCapacity for each ─▶ plan (pure) ─▶ create, patch, delete
//! ```

mod label;
mod owner;
mod plan;
mod publisher;
mod segments;

pub use label::managed_by;
pub use owner::owner;
pub use plan::{Capacity, CapacityWrite, Identity, plan};
pub use publisher::{CapacityPublisher, Counts, Targets};
pub use segments::{Segment, segments};
