//! Why a node will not do for a pod, in upstream's words.

use std::fmt;

use bindery_model::{Name, Taint};
use bindery_placement::Obstacle;

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
    /// It has not the label over whose values pods are to be spread: this one.
    NoPlace(Name),
    /// There are too many pods there already with which it is to be spread.
    Uneven(Crowd),
    /// Its volumes.
    Volumes(Obstacle),
}

/// Not enough of something: cpu in thousandths, memory and disk in bytes, devices by their number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// Of what.
    pub what: Name,
    /// How much the pod asks for.
    pub needs: i128,
    /// How much others take.
    pub taken: i128,
    /// How much there is in all.
    pub has: i128,
}

/// A place that has too many pods of those that are to be spread evenly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crowd {
    /// The label of nodes by which places are told.
    pub key: Name,
    /// The place.
    pub value: Name,
    /// How many of the pods there are.
    pub here: i64,
    /// How many there are where there are fewest.
    pub fewest: i64,
    /// How much more than that there may be.
    pub skew_max: i64,
}

impl Reason {
    /// Whether the going of other pods could help.
    pub fn is_for_lack_of_space(&self) -> bool {
        match self {
            Reason::PortTaken | Reason::TooManyPods | Reason::NotApart | Reason::KeptApart | Reason::Uneven(_) => true,
            Reason::Lacks(shortage) => shortage.needs <= shortage.has,
            Reason::Volumes(obstacle) => obstacle.is_for_lack_of_space(),
            Reason::Unschedulable
            | Reason::Tainted(_)
            | Reason::NotWanted { .. }
            | Reason::NotNear
            | Reason::NoPlace(_) => false,
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
            Reason::NoPlace(_) => {
                f.write_str("node(s) didn't match pod topology spread constraints (missing required label)")
            }
            Reason::Uneven(_) => f.write_str("node(s) didn't match pod topology spread constraints"),
            Reason::Volumes(obstacle) => obstacle.fmt(f),
        }
    }
}
