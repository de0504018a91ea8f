//! The engine's indexed cache of watched objects.
//!
//! It stores objects by key, as last seen in a watch or an answer; shows the expected effect of our
//! writes that are still in flight on top of them; and maintains the indices that rules read,
//! updated with every change so that no rule scans all objects.
//!
//! This crate does not know any rule, clock or request. Where an index depends on a decision, such
//! as whether a volume satisfies a claim, the rules supply the test as an [`IndexPolicy`].

mod cache;
mod counts;
mod free_volumes;
mod indices;
mod label_index;
mod listing;
mod node_pods;
mod object_map;
mod object_store;
mod policy;
mod sized_volume;
mod snapshot;
mod topology_index;
mod unmatched_claims;

pub use cache::{Cache, Change};
pub use counts::{ClaimGroup, Counts, Plugin, VolumeGroup};
pub use free_volumes::{FreeVolumes, MatchKey};
pub use listing::ListInProgress;
pub use node_pods::{NodePods, NodeUsage, PodQueue};
pub use policy::IndexPolicy;
pub use snapshot::Snapshot;
pub use topology_index::{
    Candidate, Candidates, CapacityIndex, ClassCapacity, ReachableVolumes, TopologyIndex, VolumeRequirements,
};
pub use unmatched_claims::UnmatchedClaims;
