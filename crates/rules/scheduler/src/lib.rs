//! The scheduler: rules that assign pods to nodes.
//!
//! ```text
//!   pod ─▶ suitable nodes (fit, volumes, topology_spread, pod_affinity) ─▶ the best one (score)
//!       ─▶ nominate the node ─▶ reserve or request volumes ─▶ claims are bound ─▶ assign the pod
//! ```
//!
//! Nothing is kept in memory between these steps: the objects show the progress. A reserved volume,
//! or a node selected for a claim, ties the pod to a node; `status.nominatedNodeName` shows where
//! to continue, or where provisioning failed.
//!
//! Volumes are handled completely (by the crate `placement`). Also supported are node selectors and
//! node affinity, taints, resources, host ports, required pod affinity and anti-affinity, required
//! topology spread constraints, and priorities. Not supported are preemption, image locality and
//! dynamic resource allocation.
//!
//! This crate does not know a clock, a queue or a client, and has no memory.

mod decision;
mod evaluation;
mod fit;
mod message;
mod pod_affinity;
mod reason;
pub mod rules;
mod score;
mod topology_spread;
mod wakes;

pub use evaluation::{Evaluation, NodeAssessment};
pub use reason::{Reason, ResourceShortage, SpreadViolation};

use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_matching::INDEX_POLICY;
use bindery_model::{DEFAULT_SCHEDULER, Kind, Name, ObjectKey, Pod, PodKey};
use bindery_placement::UtilizationShape;
use bindery_rules_api::{LiveReads, Profile, ResyncInterval, RuleSet, Verdict};

/// The rule set of the scheduler.
#[derive(Debug, Clone)]
pub struct Scheduler {
    name: Name,
    component: &'static str,
    shape: UtilizationShape,
}

impl Scheduler {
    /// The name of the rule set.
    pub const NAME: &'static str = "scheduler";

    /// A scheduler for pods with that `spec.schedulerName`.
    pub fn new(name: impl Into<Name>) -> Scheduler {
        Scheduler { name: name.into(), component: DEFAULT_SCHEDULER, shape: UtilizationShape::default() }
    }

    /// The same scheduler with another component as the source of its events.
    #[must_use]
    pub fn with_component(self, component: &'static str) -> Scheduler {
        Scheduler { component, ..self }
    }

    /// The node to which a pod without one would be scheduled now, or is being scheduled.
    pub fn node_for(&self, known: &Cache, pod: &Pod) -> Option<Name> {
        decision::node_for(self, known, pod)
    }

    /// The verdict about a pod, regardless of pods before it in the queue.
    pub fn decide_ignoring_queue(&self, known: &Cache, key: &PodKey) -> Verdict {
        decision::decide_ignoring_queue(self, known, key)
    }

    /// Whether this scheduler is responsible for a pod.
    fn is_ours(&self, pod: &Pod) -> bool {
        pod.scheduling.scheduler == self.name
    }
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler::new(DEFAULT_SCHEDULER)
    }
}

impl RuleSet for Scheduler {
    fn index_policy(&self) -> Option<IndexPolicy> {
        Some(INDEX_POLICY)
    }

    fn profile(&self) -> Profile {
        Profile {
            name: Scheduler::NAME,
            component: self.component,
            resync: ResyncInterval::Rarely,
            watches: &[
                Kind::Pod,
                Kind::Node,
                Kind::Claim,
                Kind::Volume,
                Kind::Class,
                Kind::CsiDriver,
                Kind::CsiNode,
                Kind::Capacity,
                Kind::Attachment,
            ],
            queues: &[(Kind::Pod, "scheduler")],
        }
    }

    fn hands_off(&self) -> bool {
        true
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        if key.kind != Kind::Pod {
            return Verdict::idle(&rules::NOT_OURS);
        }
        decision::decide(self, known, &key.pod_key(), live_reads)
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        wakes::wake(self, known, change, wake);
    }
}
