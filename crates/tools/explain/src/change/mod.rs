//! The smallest change that would make a pod schedulable. For every node it is proposed how each thing that stands against it could
//! be removed; the smallest proposal is tried on a copy of what is known, and only what the scheduler then accepts is told.

mod edit;
mod propose;

use bindery_cache::Cache;
use bindery_model::{Kind, Name, Object, PodKey};
use bindery_scheduler::Evaluation;

use crate::Change;
use crate::matrix::{Asked, Asking};
use edit::Edit;

/// Of how many nodes, the nearest first, proposals are made.
const NODES_MAX: usize = 500;

/// How many proposals are tried. The first is nearly always accepted: what stands against a node is known in full.
const TRIES_MAX: usize = 5;

/// Something to do, in words, and what comes of it.
struct Step {
    text: String,
    edits: Vec<Edit>,
    cost: Cost,
}

/// How much a step asks of whoever takes it. Of two that are as many, the easier is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// A word on an object.
    Mark,
    /// A pod must end, or be made anew.
    Pod,
    /// Something must be made or bought.
    Make,
}

/// What to do so that a pod can be placed on a node.
struct Proposal<'a> {
    node: &'a Name,
    steps: Vec<Step>,
}

impl Proposal<'_> {
    /// How small it is: by how many things must change, then by what they ask.
    fn size(&self) -> (usize, Vec<Cost>, &Name) {
        let mut costs: Vec<Cost> = self.steps.iter().map(|step| step.cost).collect();
        costs.sort_unstable_by_key(|cost| std::cmp::Reverse(*cost));
        (self.steps.iter().map(|step| step.edits.len()).sum(), costs, self.node)
    }
}

/// The smallest change that was found, if one was. `all` is what every node says, the nearest first.
pub(crate) fn smallest(asked: &Asked<'_>, all: &[Asking<'_>]) -> Option<Change> {
    let mut proposals: Vec<Proposal<'_>> =
        all.iter().take(NODES_MAX).filter_map(|asking| propose::proposal(asked, asking)).collect();
    proposals.sort_by(|a, b| a.size().cmp(&b.size()));
    let works = |proposal: &&Proposal<'_>| works(asked.known, &asked.pod.key(), proposal);
    let smallest = proposals.iter().take(TRIES_MAX).find(works)?;
    Some(Change {
        node: smallest.node.to_string(),
        steps: smallest.steps.iter().map(|step| step.text.clone()).collect(),
    })
}

/// Whether the pod could be placed on the node after the change: by the tests that place pods.
fn works(known: &Cache, pod: &PodKey, proposal: &Proposal<'_>) -> bool {
    let mut draft = copy(known);
    for edit in proposal.steps.iter().flat_map(|step| &step.edits) {
        edit.apply(&mut draft);
    }
    let (Some(pod), Some(node)) = (draft.pod(pod), draft.node(proposal.node)) else { return false };
    !pod.scheduling.is_gated && Evaluation::is_suitable(&draft, pod, node)
}

/// All that is known, to be changed.
fn copy(known: &Cache) -> Cache {
    let mut copy = Cache::new(known.policy());
    for kind in Kind::ALL {
        let objects: Vec<Object> = known.keys(kind).iter().filter_map(|key| known.object(key)).collect();
        copy.listed(kind, known.watched_version(kind), objects);
    }
    copy
}
