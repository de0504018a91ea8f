//! Why a node will not do for a pod, in upstream's words.

use std::fmt;

use bindery_placement::Obstacle;
use bindery_volumes::{Name, Taint};

/// Why a node will not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// New pods are kept away from it.
    Unschedulable,
    /// It has taints that the pod does not tolerate: these.
    Tainted(Vec<Taint>),
    /// The pod does not want it.
    NotWanted {
        /// Labels of the pod's node selector that it does not have.
        labels: Vec<(Name, Name)>,
        /// Whether the pod's node affinity is against it.
        is_by_affinity: bool,
    },
    /// A port that the pod needs is taken.
    PortTaken,
    /// It can have no more pods.
    TooManyPods,
    /// It has not enough of something.
    Lacks(Shortage),
    /// No pod is there that must be near.
    NotNear,
    /// A pod is there that must not be near.
    NotApart,
    /// A pod is there that wants others elsewhere.
    KeptApart,
    /// Its volumes.
    Volumes(Obstacle),
}

/// Not enough of something: cpu in thousandths, memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Of what.
    pub what: &'static str,
    /// How much the pod asks for.
    pub needs: i128,
    /// How much others take.
    pub taken: i128,
    /// How much there is in all.
    pub has: i128,
}

impl Reason {
    /// Whether the going of other pods could help.
    pub fn is_for_lack_of_space(&self) -> bool {
        match self {
            Reason::PortTaken | Reason::TooManyPods | Reason::NotApart | Reason::KeptApart => true,
            Reason::Lacks(shortage) => shortage.needs <= shortage.has,
            Reason::Volumes(obstacle) => obstacle.is_for_lack_of_space(),
            Reason::Unschedulable | Reason::Tainted(_) | Reason::NotWanted { .. } | Reason::NotNear => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Unschedulable => f.write_str("node(s) were unschedulable"),
            Reason::Tainted(_) => f.write_str("node(s) had untolerated taint(s)"),
            Reason::NotWanted { .. } => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Reason::PortTaken => f.write_str("node(s) didn't have free ports for the requested pod ports"),
            Reason::TooManyPods => f.write_str("Too many pods"),
            Reason::Lacks(shortage) => write!(f, "Insufficient {}", shortage.what),
            Reason::NotNear => f.write_str("node(s) didn't match pod affinity rules"),
            Reason::NotApart => f.write_str("node(s) didn't match pod anti-affinity rules"),
            Reason::KeptApart => f.write_str("node(s) didn't satisfy existing pods anti-affinity rules"),
            Reason::Volumes(obstacle) => obstacle.fmt(f),
        }
    }
}
