//! Pods that are to be spread evenly: over the values of a label of their nodes.

use std::collections::BTreeMap;

use bindery_cache::Cache;
use bindery_model::{Name, Node, Pod, TopologySpread};

use crate::fit;
use crate::reason::{Crowd, Reason};

/// How the pods are spread with which a pod is to be. Found once for all nodes.
pub(crate) struct Evenness<'a>(Vec<Count<'a>>);

/// How many pods are in each place, by one demand.
struct Count<'a> {
    demand: &'a TopologySpread,
    places: BTreeMap<&'a Name, i64>,
    /// How many are where there are fewest.
    fewest: i64,
    /// Whether the pod itself is one of them.
    is_counted: bool,
}

impl<'a> Evenness<'a> {
    pub fn of(known: &'a Cache, pod: &'a Pod) -> Evenness<'a> {
        let demands = &pod.scheduling.spread;
        if demands.is_empty() {
            return Evenness(Vec::new());
        }
        // A node that lacks one of the labels is in no place by any of them.
        let is_placed = |node: &&Node| demands.iter().all(|demand| node.labels.get(&demand.topology_key).is_some());
        let nodes: Vec<&Node> = known.nodes().map(|node| &**node).filter(is_placed).collect();
        Evenness(demands.iter().map(|demand| Count::of(known, pod, demand, &nodes)).collect())
    }

    /// What stands against a node: the first of it.
    pub fn check(&self, node: &Node) -> Option<Reason> {
        self.0.iter().find_map(|count| count.check(node))
    }
}

impl<'a> Count<'a> {
    fn of(known: &'a Cache, pod: &Pod, demand: &'a TopologySpread, nodes: &[&'a Node]) -> Count<'a> {
        let mut places = BTreeMap::new();
        for node in nodes.iter().filter(|node| is_counted(known, pod, demand, node)) {
            let Some(place) = node.labels.get(&demand.topology_key) else { continue };
            *places.entry(place).or_default() += kin(known, pod, demand, node.name());
        }
        let places_count = i64::try_from(places.len()).unwrap_or(i64::MAX);
        let fewest = match places.values().min() {
            Some(fewest) if places_count >= demand.places_min => *fewest,
            Some(_) | None => 0,
        };
        let is_counted = demand.pods.as_ref().is_some_and(|pods| pods.matches(&pod.scheduling.labels));
        Count { demand, places, fewest, is_counted }
    }

    fn check(&self, node: &Node) -> Option<Reason> {
        let &TopologySpread { topology_key: ref key, skew_max, .. } = self.demand;
        let Some(value) = node.labels.get(key) else { return Some(Reason::NoPlace(key.clone())) };
        let here = self.places.get(value).copied().unwrap_or_default();
        let is_even = here + i64::from(self.is_counted) - self.fewest <= skew_max;
        let crowd = || Crowd { key: key.clone(), value: value.clone(), here, fewest: self.fewest, skew_max };
        (!is_even).then(|| Reason::Uneven(crowd()))
    }
}

/// Whether a node is one of those over which the pods are to be spread.
fn is_counted(known: &Cache, pod: &Pod, demand: &TopologySpread, node: &Node) -> bool {
    let is_wanted = || fit::is_wanted(known, pod, node).is_empty();
    let is_open = || fit::repelling(pod, node).next().is_none();
    (demand.is_over_unwanted || is_wanted()) && (demand.is_over_tainted || is_open())
}

/// How many of the pods are on a node. A selector that demands nothing counts nobody, as upstream.
fn kin(known: &Cache, pod: &Pod, demand: &TopologySpread, node: &Name) -> i64 {
    let Some(selector) = demand.pods.as_ref().filter(|pods| pods.requirements().next().is_some()) else { return 0 };
    let others = known.tenants().of(node).filter(|key| **key != pod.key()).filter_map(|key| known.pod(key));
    let is_kin = |other: &&std::sync::Arc<Pod>| {
        !other.deleting && other.meta.namespace == pod.meta.namespace && selector.matches(&other.scheduling.labels)
    };
    i64::try_from(others.filter(is_kin).count()).unwrap_or(i64::MAX)
}
