//! How much room there is, told to schedulers: a CSIStorageCapacity for every class and every place.
//!
//! ```text
//!   classes × places ─▶ GetCapacity for each ─▶ plan (pure) ─▶ create, change, delete
//! ```
//!
//! Everything is keyed by what it is, a class and a place, so that nothing is asked or written twice.

mod keeper;
mod label;
mod owner;
mod plan;
mod segments;

pub use keeper::{Counts, Keeper, Wanted};
pub use label::managed_by;
pub use owner::owner;
pub use plan::{Deed, Identity, Room, plan};
pub use segments::{Place, segments};
