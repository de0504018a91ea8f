//! Topology spread constraints.

use std::collections::BTreeMap;

use bindery_cache::Cache;
use bindery_model::{Name, Node, Pod, TopologySpreadConstraint};

use crate::fit;
use crate::reason::{Reason, SpreadViolation};

/// The current spread for each constraint of a pod. Computed once for all nodes.
pub(crate) struct TopologySpread<'a>(Vec<DomainCounts<'a>>);

/// The number of matching pods in each topology domain, for one constraint.
struct DomainCounts<'a> {
    constraint: &'a TopologySpreadConstraint,
    counts: BTreeMap<&'a Name, i64>,
    minimum: i64,
    /// Whether the constraint counts the pod itself.
    counts_self: bool,
}

impl<'a> TopologySpread<'a> {
    pub fn of(cache: &'a Cache, pod: &'a Pod) -> TopologySpread<'a> {
        let constraints = &pod.scheduling.topology_spread;
        if constraints.is_empty() {
            return TopologySpread(Vec::new());
        }
        // A node without one of the labels is ignored for all constraints.
        let has_labels =
            |node: &&Node| constraints.iter().all(|spread| node.labels.get(&spread.topology_key).is_some());
        let nodes: Vec<&Node> = cache.nodes().map(|node| &**node).filter(has_labels).collect();
        TopologySpread(constraints.iter().map(|spread| DomainCounts::of(cache, pod, spread, &nodes)).collect())
    }

    /// The first constraint that a pod on the node would violate.
    pub fn check(&self, node: &Node) -> Option<Reason> {
        self.0.iter().find_map(|counts| counts.check(node))
    }
}

impl<'a> DomainCounts<'a> {
    fn of(
        cache: &'a Cache,
        pod: &Pod,
        constraint: &'a TopologySpreadConstraint,
        nodes: &[&'a Node],
    ) -> DomainCounts<'a> {
        let mut counts = BTreeMap::new();
        for node in nodes.iter().filter(|node| is_counted(cache, pod, constraint, node)) {
            let Some(domain) = node.labels.get(&constraint.topology_key) else { continue };
            *counts.entry(domain).or_default() += matching_pods(cache, pod, constraint, node.name());
        }
        let domains = i64::try_from(counts.len()).unwrap_or(i64::MAX);
        let minimum = match counts.values().min() {
            Some(minimum) if domains >= constraint.domains_min => *minimum,
            Some(_) | None => 0,
        };
        let counts_self = constraint.pods.as_ref().is_some_and(|pods| pods.matches(&pod.scheduling.labels));
        DomainCounts { constraint, counts, minimum, counts_self }
    }

    fn check(&self, node: &Node) -> Option<Reason> {
        let &TopologySpreadConstraint { topology_key: ref key, skew_max, .. } = self.constraint;
        let Some(value) = node.labels.get(key) else { return Some(Reason::MissingSpreadLabel(key.clone())) };
        let (count, minimum) = (self.counts.get(value).copied().unwrap_or_default(), self.minimum);
        let is_met = count + i64::from(self.counts_self) - minimum <= skew_max;
        let violation = || SpreadViolation { key: key.clone(), value: value.clone(), count, minimum, skew_max };
        (!is_met).then(|| Reason::TopologySpread(violation()))
    }
}

/// Whether a node is one of those over which the pods are to be spread.
fn is_counted(cache: &Cache, pod: &Pod, constraint: &TopologySpreadConstraint, node: &Node) -> bool {
    let matches_affinity = || fit::check_node_affinity(cache, pod, node).is_empty();
    let is_tolerated = || fit::untolerated_taints(pod, node).next().is_none();
    (constraint.ignores_node_affinity || matches_affinity()) && (constraint.ignores_taints || is_tolerated())
}

/// The number of matching pods on a node. An empty selector matches no pod here, as upstream.
fn matching_pods(cache: &Cache, pod: &Pod, constraint: &TopologySpreadConstraint, node: &Name) -> i64 {
    let selector = constraint.pods.as_ref().filter(|pods| pods.requirements().next().is_some());
    let Some(selector) = selector else { return 0 };
    let own = pod.key();
    let matches = |other: &&std::sync::Arc<Pod>| {
        !other.deleting && other.meta.namespace == pod.meta.namespace && selector.matches(&other.scheduling.labels)
    };
    let others = cache.pods_on(node).filter(|other| other.key() != own);
    i64::try_from(others.filter(matches).count()).unwrap_or(i64::MAX)
}
