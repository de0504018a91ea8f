//! Why a node is not suitable for a pod, with upstream's messages.

use std::fmt;

use bindery_model::{Name, Taint};
use bindery_placement::NodeRejection;

/// Why a node is not suitable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It is cordoned.
    Unschedulable,
    /// It has these taints that the pod does not tolerate.
    Tainted(Vec<Taint>),
    /// It does not match the pod's node selector or node affinity.
    NodeAffinity {
        /// Labels of the node selector that it does not have.
        labels: Vec<(Name, Name)>,
        /// Whether the node affinity excludes it.
        is_by_affinity: bool,
    },
    /// A host port that the pod needs is in use.
    PortInUse,
    /// It has its maximum number of pods.
    TooManyPods,
    /// It does not have enough of a resource.
    Insufficient(ResourceShortage),
    /// No pod that the pod's affinity requires runs in its topology domain.
    Affinity,
    /// A pod that the pod's anti-affinity excludes runs in its topology domain.
    AntiAffinity,
    /// A pod whose anti-affinity excludes this pod runs in its topology domain.
    ExistingAntiAffinity,
    /// It does not have this label of a topology spread constraint.
    MissingSpreadLabel(Name),
    /// A topology spread constraint would be violated.
    TopologySpread(SpreadViolation),
    /// A reason related to volumes.
    Volumes(NodeRejection),
}

/// Not enough of a resource: CPU in millicores, memory and storage in bytes, others in units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceShortage {
    /// The resource.
    pub resource: Name,
    /// The pod's request.
    pub requested: i128,
    /// The requests of other pods on the node.
    pub used: i128,
    /// The node's allocatable amount.
    pub allocatable: i128,
}

/// A topology domain with too many pods for a topology spread constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpreadViolation {
    /// The node label that defines the topology domains.
    pub key: Name,
    /// The domain of the node.
    pub value: Name,
    /// The number of matching pods in it.
    pub count: i64,
    /// The minimum over all domains.
    pub minimum: i64,
    /// By how much the count may exceed the minimum.
    pub skew_max: i64,
}

impl Reason {
    /// Whether the eviction of other pods could resolve it.
    pub fn could_preemption_help(&self) -> bool {
        match self {
            Reason::PortInUse
            | Reason::TooManyPods
            | Reason::AntiAffinity
            | Reason::ExistingAntiAffinity
            | Reason::TopologySpread(_) => true,
            Reason::Insufficient(shortage) => shortage.requested <= shortage.allocatable,
            Reason::Volumes(rejection) => rejection.could_preemption_help(),
            Reason::Unschedulable
            | Reason::Tainted(_)
            | Reason::NodeAffinity { .. }
            | Reason::Affinity
            | Reason::MissingSpreadLabel(_) => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Unschedulable => f.write_str("node(s) were unschedulable"),
            Reason::Tainted(_) => f.write_str("node(s) had untolerated taint(s)"),
            Reason::NodeAffinity { .. } => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Reason::PortInUse => f.write_str("node(s) didn't have free ports for the requested pod ports"),
            Reason::TooManyPods => f.write_str("Too many pods"),
            Reason::Insufficient(shortage) => write!(f, "Insufficient {}", shortage.resource),
            Reason::Affinity => f.write_str("node(s) didn't match pod affinity rules"),
            Reason::AntiAffinity => f.write_str("node(s) didn't match pod anti-affinity rules"),
            Reason::ExistingAntiAffinity => f.write_str("node(s) didn't satisfy existing pods anti-affinity rules"),
            Reason::MissingSpreadLabel(_) => {
                f.write_str("node(s) didn't match pod topology spread constraints (missing required label)")
            }
            Reason::TopologySpread(_) => f.write_str("node(s) didn't match pod topology spread constraints"),
            Reason::Volumes(rejection) => rejection.fmt(f),
        }
    }
}
