//! The rules that give pods their nodes.
//!
//! ```text
//!   a pod ─▶ which nodes will do (fit, volumes, neighbours) ─▶ the best of them (score)
//!         ─▶ its volumes are reserved or asked for ─▶ it is nominated ─▶ its claims are bound ─▶ it is given its node
//! ```
//!
//! Nothing is held in memory between these steps: what was written tells how far it has come. A volume that is reserved, or a
//! node that is selected for a claim, ties the pod to where that is; and the node that is written on the pod says where the
//! rest goes on, or where it failed.
//!
//! It is whole where volumes are concerned (by the room `placement`), and honest about the rest: node selectors and affinity,
//! taints, cpu, memory, pods and ports, pods that must or must not be near each other, priorities without driving anybody out.
//! Topology spread constraints, images, devices and pre-emption it does not know.
//!
//! This room does not know a clock, a queue or a client, and remembers nothing.

mod decision;
mod fit;
mod look;
mod message;
mod neighbours;
mod reason;
pub mod rules;
mod score;
mod spread;
mod wakes;

pub use look::{Look, Outlook};
pub use reason::{Crowd, Reason, Shortage};

use bindery_cache::{Cache, Change};
use bindery_model::{DEFAULT_SCHEDULER, Kind, Name, ObjectKey, Pod, PodKey};
use bindery_placement::Shape;
use bindery_rules_api::{LiveReads, Profile, ResyncInterval, RuleSet, Verdict};

/// The rule set of the scheduler.
#[derive(Debug, Clone)]
pub struct Scheduler {
    name: Name,
    component: &'static str,
    shape: Shape,
}

impl Scheduler {
    /// Its name among the rule sets.
    pub const NAME: &'static str = "scheduler";

    /// A scheduler of the pods that name it.
    pub fn new(name: impl Into<Name>) -> Scheduler {
        Scheduler { name: name.into(), component: DEFAULT_SCHEDULER, shape: Shape::default() }
    }

    /// The same, whose events name a component as their source.
    #[must_use]
    pub fn telling_as(self, component: &'static str) -> Scheduler {
        Scheduler { component, ..self }
    }

    /// The node that a pod which has none would be given as things are, or is on its way to.
    pub fn node_for(&self, known: &Cache, pod: &Pod) -> Option<Name> {
        decision::node_for(self, known, pod)
    }

    /// What would be decided about a pod if it were its turn.
    pub fn decide_out_of_turn(&self, known: &Cache, key: &PodKey) -> Verdict {
        decision::decide_out_of_turn(self, known, key)
    }

    /// Whether a pod names this scheduler.
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
