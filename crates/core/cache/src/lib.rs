//! What is known of the cluster.
//!
//! Lean objects by key, as they were last seen in a watch or an answer; an overlay of what our own unanswered writes will make of
//! them; and the indices that rules look things up by, kept current with every change, so that no rule ever scans.
//!
//! This room does not know any rule, any clock or any request. It decides nothing: it remembers, and says what a change touched.

mod cache;
mod demand;
mod indices;
mod node_pods;
mod object_store;
mod pool;
mod ranked;
mod topology_index;

pub use cache::{Cache, Change};
pub use demand::Demand;
pub use node_pods::{NodePods, NodeUsage};
pub use pool::{Pool, PoolKey};
pub use topology_index::{
    Candidate, Candidates, CapacityIndex, ClassCapacity, Near, TopologyIndex, VolumeRequirements,
};
