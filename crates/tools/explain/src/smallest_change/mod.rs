//! The smallest change that would make a pod schedulable. For every node, each obstacle gets a
//! remedy. The smallest proposal is applied to a copy of the cache, and is reported only if the
//! scheduler then accepts the node. The cache is copied once for all proposals.

mod edit;
mod remedies;

use bindery_cache::Cache;
use bindery_model::{Name, PodKey};
use bindery_scheduler::Evaluation;

use crate::Change;
use crate::node_matrix::{NodeOutlook, PodPlacement};
use edit::Edit;

/// How many nodes get a proposal; those with the fewest obstacles come first.
const NODES_MAX: usize = 500;

/// How many proposals are tried. The first nearly always works, because all obstacles are known.
const TRIES_MAX: usize = 5;

/// Something to do: the text for the operator, and its effect on the objects.
struct Step {
    text: String,
    edits: Vec<Edit>,
    cost: Cost,
}

/// How much effort a step takes. Of two proposals with as many steps, the easier one is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// Edit an existing object.
    Edit,
    /// Delete a pod, or create it again.
    Pod,
    /// Create an object, or provide storage or hardware.
    Make,
}

/// What to do so that a pod can be scheduled on a node.
struct Proposal<'a> {
    node: &'a Name,
    steps: Vec<Step>,
}

impl Proposal<'_> {
    /// The order of proposals: first the number of edits, then their cost.
    fn size(&self) -> (usize, Vec<Cost>, &Name) {
        let mut costs: Vec<Cost> = self.steps.iter().map(|step| step.cost).collect();
        costs.sort_unstable_by_key(|cost| std::cmp::Reverse(*cost));
        (self.steps.iter().map(|step| step.edits.len()).sum(), costs, self.node)
    }
}

/// The smallest change that works, if any. `all` is ordered by the number of obstacles.
pub(crate) fn find(placement: &PodPlacement<'_>, all: &[NodeOutlook<'_>]) -> Option<Change> {
    let mut proposals: Vec<Proposal<'_>> =
        all.iter().take(NODES_MAX).filter_map(|outlook| remedies::proposal(placement, outlook)).collect();
    proposals.sort_by(|a, b| a.size().cmp(&b.size()));
    proposals.truncate(TRIES_MAX);
    if proposals.is_empty() {
        return None;
    }
    let mut draft = placement.known.draft();
    let smallest = proposals.iter().find(|proposal| works(&mut draft, &placement.pod.key(), proposal))?;
    Some(Change {
        node: smallest.node.to_string(),
        steps: smallest.steps.iter().map(|step| step.text.clone()).collect(),
    })
}

/// Whether the scheduler accepts the node after the change. The draft is as before afterwards.
fn works(draft: &mut Cache, pod: &PodKey, proposal: &Proposal<'_>) -> bool {
    let edits = || proposal.steps.iter().flat_map(|step| &step.edits);
    let before: Vec<_> = edits().map(Edit::target).map(|key| (draft.object(&key), key)).collect();
    edits().for_each(|edit| edit.apply(draft));
    let works = match (draft.pod(pod), draft.node(proposal.node)) {
        (Some(pod), Some(node)) => !pod.scheduling.is_gated && Evaluation::is_suitable(draft, pod, node),
        (None, _) | (_, None) => false,
    };
    before.into_iter().for_each(|(object, key)| edit::restore(draft, &key, object));
    works
}
