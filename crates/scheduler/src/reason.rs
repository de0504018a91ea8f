//! Why a node will not do for a pod, in upstream's words.

use std::fmt;

use bindery_placement::Obstacle;

/// Why a node will not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// New pods are kept away from it.
    Unschedulable,
    /// It has a taint that the pod does not tolerate.
    Tainted,
    /// The pod does not want it.
    NotWanted,
    /// A port that the pod needs is taken.
    PortTaken,
    /// It can have no more pods.
    TooManyPods,
    /// It has not enough of something; whether it never had is in the second.
    Lacks(&'static str, bool),
    /// No pod is there that must be near.
    NotNear,
    /// A pod is there that must not be near.
    NotApart,
    /// A pod is there that wants others elsewhere.
    KeptApart,
    /// Its volumes.
    Volumes(Obstacle),
}

impl Reason {
    /// Whether the going of other pods could help.
    pub fn is_for_lack_of_space(&self) -> bool {
        match self {
            Reason::PortTaken | Reason::TooManyPods | Reason::NotApart | Reason::KeptApart => true,
            Reason::Lacks(_, is_too_small) => !is_too_small,
            Reason::Volumes(obstacle) => obstacle.is_for_lack_of_space(),
            Reason::Unschedulable | Reason::Tainted | Reason::NotWanted | Reason::NotNear => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Unschedulable => f.write_str("node(s) were unschedulable"),
            Reason::Tainted => f.write_str("node(s) had untolerated taint(s)"),
            Reason::NotWanted => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Reason::PortTaken => f.write_str("node(s) didn't have free ports for the requested pod ports"),
            Reason::TooManyPods => f.write_str("Too many pods"),
            Reason::Lacks(what, _) => write!(f, "Insufficient {what}"),
            Reason::NotNear => f.write_str("node(s) didn't match pod affinity rules"),
            Reason::NotApart => f.write_str("node(s) didn't match pod anti-affinity rules"),
            Reason::KeptApart => f.write_str("node(s) didn't satisfy existing pods anti-affinity rules"),
            Reason::Volumes(obstacle) => obstacle.fmt(f),
        }
    }
}
