//! Which of several nodes is best: the one with most room, then the one that its volumes and its owner like better.

use bindery_cache::Cache;
use bindery_model::{Node, Pod};

use crate::fit;

/// The most that a test gives.
const MOST: i128 = 100;
/// How much each test weighs, as upstream.
const TAINTS: i128 = 3;
const LIKES: i128 = 2;

/// What speaks for a node, before it is compared with others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merits {
    /// Room, balance and volumes.
    own: i128,
    /// How many taints would rather not have the pod.
    dislikes: i128,
    /// How much the pod likes it.
    likes: i128,
}

/// What speaks for a node. `volumes` is what its volumes give, up to 100.
pub(crate) fn merits(known: &Cache, pod: &Pod, node: &Node, volumes: i64) -> Merits {
    let taken = fit::load_of_others(known, pod, node).usual.plus(&pod.scheduling.needs.usual());
    let has = &node.allocatable;
    let amounts = [(taken.cpu_millis, has.cpu_millis), (taken.memory_bytes, has.memory_bytes)];
    let counted: Vec<(i128, i128)> = amounts.into_iter().filter(|(_, has)| *has > 0).collect();
    let free = |(taken, has): &(i128, i128)| if taken > has { 0 } else { (has - taken) * MOST / has };
    let room = counted.iter().map(free).sum::<i128>() / counted.len().max(1) as i128;
    // In thousandths, so that two nodes that differ a little differ.
    let used = |(taken, has): &(i128, i128)| (taken * 1000 / has).min(1000);
    let balance = match counted.as_slice() {
        [cpu, memory] => (1000 - (used(cpu) - used(memory)).abs() / 2) * MOST / 1000,
        _ => MOST,
    };
    let likes = pod.scheduling.likes.iter().filter(|(_, nodes)| nodes.matches(&node.labels, Some(node.name())));
    Merits {
        own: room + balance + i128::from(volumes),
        dislikes: i128::try_from(fit::dislikes(pod, node)).unwrap_or(i128::MAX),
        likes: likes.map(|(weight, _)| i128::from(*weight)).sum(),
    }
}

/// The scores of nodes: what is comparable only among them is put in relation to the best of them.
pub(crate) fn scores(all: &[Merits]) -> Vec<i128> {
    let worst = all.iter().map(|merits| merits.dislikes).max().unwrap_or_default();
    let best = all.iter().map(|merits| merits.likes).max().unwrap_or_default();
    let taints = |merits: &Merits| if worst == 0 { MOST } else { MOST - merits.dislikes * MOST / worst };
    let likes = |merits: &Merits| if best == 0 { 0 } else { merits.likes * MOST / best };
    all.iter().map(|merits| merits.own + TAINTS * taints(merits) + LIKES * likes(merits)).collect()
}
