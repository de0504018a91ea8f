//! The decisions that indices depend on.

use bindery_model::{Claim, Name, Pod, Volume};

use crate::Cache;

/// The tests by which a cache decides what to index. The rules supply them, because they are
/// matching and scheduling decisions.
///
/// The cache evaluates a test again only when one of the objects changes that it may read: the
/// claim and the volume; for `planned_node` the pod, its claims, and the volumes that refer to
/// these.
#[derive(Debug, Clone, Copy)]
pub struct IndexPolicy {
    /// Whether a claim that names a volume reserves it, so that other claims do not get it.
    pub is_requested_by_name: fn(&Claim, &Volume) -> bool,
    /// Whether a volume is reserved for a claim and satisfies it, so that it needs no other.
    pub is_served_by: fn(&Claim, &Volume) -> bool,
    /// The node on which a pod that has none yet is expected to run.
    pub planned_node: fn(&Cache, &Pod) -> Option<Name>,
}

impl IndexPolicy {
    /// Ignores everything but what objects state, for users that read neither free volumes nor
    /// unmatched claims nor planned pods.
    pub const NONE: IndexPolicy =
        IndexPolicy { is_requested_by_name: |_, _| false, is_served_by: |_, _| false, planned_node: |_, _| None };
}
