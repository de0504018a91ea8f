//! Scoring of suitable nodes: by free resources, taints, preferred node affinity, and volumes.

use bindery_cache::Cache;
use bindery_model::{Node, Pod};

use crate::fit;

/// The best score of a criterion.
const SCORE_MAX: i128 = 100;
/// Upstream's weights.
const TAINTS_WEIGHT: i128 = 3;
const PREFERENCE_WEIGHT: i128 = 2;

/// The raw scores of a node, before it is compared with others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawScore {
    /// Free resources, their balance, and volumes.
    absolute: i128,
    /// The number of untolerated PreferNoSchedule taints.
    soft_taints: i128,
    /// The sum of the weights of matching preferences.
    preference: i128,
}

/// The raw scores of a node. `volumes` is the score of its volumes, from 0 to 100.
pub(crate) fn raw_score(cache: &Cache, pod: &Pod, node: &Node, volumes: i64) -> RawScore {
    let used = fit::usage_by_others(cache, pod, node).nonzero_requests.plus(&pod.scheduling.requests.nonzero());
    let allocatable = &node.allocatable;
    let resources = [(used.cpu_millis, allocatable.cpu_millis), (used.memory_bytes, allocatable.memory_bytes)];
    let resources: Vec<(i128, i128)> = resources.into_iter().filter(|(_, total)| *total > 0).collect();
    let free = |(used, total): &(i128, i128)| if used > total { 0 } else { (total - used) * SCORE_MAX / total };
    let free = resources.iter().map(free).sum::<i128>() / resources.len().max(1) as i128;
    // In thousandths, so that small differences between nodes count.
    let fraction = |(used, total): &(i128, i128)| (used * 1000 / total).min(1000);
    let balance = match resources.as_slice() {
        [cpu, memory] => (1000 - (fraction(cpu) - fraction(memory)).abs() / 2) * SCORE_MAX / 1000,
        _ => SCORE_MAX,
    };
    let preferred = pod.scheduling.preferred_nodes.iter();
    let preferred = preferred.filter(|(_, nodes)| nodes.matches(&node.labels, Some(node.name())));
    RawScore {
        absolute: free + balance + i128::from(volumes),
        soft_taints: i128::try_from(fit::soft_taints(pod, node)).unwrap_or(i128::MAX),
        preference: preferred.map(|(weight, _)| i128::from(*weight)).sum(),
    }
}

/// The scores of nodes. Taints and preferences are normalized by the largest value among them.
pub(crate) fn scores(all: &[RawScore]) -> Vec<i128> {
    let most_taints = all.iter().map(|raw| raw.soft_taints).max().unwrap_or_default();
    let best = all.iter().map(|raw| raw.preference).max().unwrap_or_default();
    let taints = |raw: &RawScore| match most_taints {
        0 => SCORE_MAX,
        most => SCORE_MAX - raw.soft_taints * SCORE_MAX / most,
    };
    let preference = |raw: &RawScore| if best == 0 { 0 } else { raw.preference * SCORE_MAX / best };
    all.iter().map(|raw| raw.absolute + TAINTS_WEIGHT * taints(raw) + PREFERENCE_WEIGHT * preference(raw)).collect()
}
