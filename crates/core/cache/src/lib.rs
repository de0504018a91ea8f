//! What is known of the cluster.
//!
//! Lean objects by key, as they were last seen in a watch or an answer; an overlay of what our own unanswered writes will make of
//! them; and the indices that rules look things up by, kept current with every change, so that no rule ever scans.
//!
//! This room does not know any rule, any clock or any request. It decides nothing: it remembers, and says what a change touched.

mod demand;
mod indices;
mod mirror;
mod pool;
mod ranked;
mod reach;
mod shelf;
mod tenants;

pub use demand::Demand;
pub use mirror::{Change, Mirror};
pub use pool::{Place, Pool};
pub use reach::{Candidate, Candidates, ClassRoom, Near, Reach, Room, Wish};
pub use tenants::{Load, Tenants};
