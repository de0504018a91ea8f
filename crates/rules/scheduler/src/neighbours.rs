//! Pods that must be near, and pods that must not: by a label of their nodes.

use std::collections::{BTreeMap, BTreeSet};

use bindery_cache::Cache;
use bindery_model::{Name, Nearness, Node, Pod, PodKey};

use crate::reason::Reason;

/// A label of nodes, and a value.
type Topology = (Name, Name);

/// Places, and the pods there.
type Places = BTreeMap<Topology, Vec<PodKey>>;

/// Where the pods are that matter to a pod. Found once for all nodes.
pub(crate) struct Neighbours {
    /// For each term of who must be near: the label, and where they are.
    near: Vec<(Name, BTreeSet<Name>)>,
    /// Whether nobody is there yet, and the pod itself is one of those that must be near each other: it comes first.
    is_first: bool,
    /// Where pods are that must not be near.
    apart: Places,
    /// Where pods are that want this one elsewhere.
    kept_apart: Places,
}

impl Neighbours {
    pub fn of(known: &Cache, pod: &Pod) -> Neighbours {
        let scheduling = &pod.scheduling;
        let mut neighbours = Neighbours {
            near: scheduling.near.iter().map(|term| (term.topology_key.clone(), BTreeSet::new())).collect(),
            is_first: false,
            apart: Places::new(),
            kept_apart: Places::new(),
        };
        if !scheduling.near.is_empty() || !scheduling.apart.is_empty() {
            neighbours.look_around(known, pod);
        }
        for other in known.tenants().apart().filter(|key| **key != pod.key()).filter_map(|key| known.pod(key)) {
            for term in other.scheduling.apart.iter().filter(|term| means(term, other, pod)) {
                note(&mut neighbours.kept_apart, topology(known, other, &term.topology_key), other);
            }
        }
        let is_nobody_near = neighbours.near.iter().all(|(_, values)| values.is_empty());
        neighbours.is_first = is_nobody_near && scheduling.near.iter().all(|term| means(term, pod, pod));
        neighbours
    }

    fn look_around(&mut self, known: &Cache, pod: &Pod) {
        let scheduling = &pod.scheduling;
        let all = known.tenants().nodes().flat_map(|node| known.tenants().of(node));
        for other in all.filter(|key| **key != pod.key()).filter_map(|key| known.pod(key)) {
            // Who must be near must be so by all terms.
            if !scheduling.near.is_empty() && scheduling.near.iter().all(|term| means(term, pod, other)) {
                for (key, values) in &mut self.near {
                    values.extend(topology(known, other, key).map(|(_, value)| value));
                }
            }
            for term in scheduling.apart.iter().filter(|term| means(term, pod, other)) {
                note(&mut self.apart, topology(known, other, &term.topology_key), other);
            }
        }
    }

    /// What stands against a node: the first of it.
    pub fn check(&self, node: &Node) -> Option<Reason> {
        self.check_all(node).next()
    }

    /// All that stands against a node.
    pub fn check_all(&self, node: &Node) -> impl Iterator<Item = Reason> {
        let tests: [fn(&Neighbours, &Node) -> Option<Reason>; 3] = [
            |this, node| (!this.is_near(node)).then_some(Reason::NotNear),
            |this, node| among(&this.apart, node).next().is_some().then_some(Reason::NotApart),
            |this, node| among(&this.kept_apart, node).next().is_some().then_some(Reason::KeptApart),
        ];
        tests.into_iter().filter_map(move |test| test(self, node))
    }

    /// The pods near a node that must not be.
    pub fn not_apart(&self, node: &Node) -> BTreeSet<&PodKey> {
        among(&self.apart, node).flatten().collect()
    }

    /// The pods near a node that want this one elsewhere.
    pub fn keeping_apart(&self, node: &Node) -> BTreeSet<&PodKey> {
        among(&self.kept_apart, node).flatten().collect()
    }

    fn is_near(&self, node: &Node) -> bool {
        let is_near =
            |(key, values): &(Name, BTreeSet<Name>)| node.labels.get(key).is_some_and(|value| values.contains(value));
        let has_labels = || self.near.iter().all(|(key, _)| node.labels.get(key).is_some());
        self.near.iter().all(is_near) || self.is_first && has_labels()
    }
}

/// The pods of places that a node is in.
fn among<'a>(places: &'a Places, node: &Node) -> impl Iterator<Item = &'a Vec<PodKey>> {
    places.iter().filter(|((key, value), _)| node.labels.get(key) == Some(value)).map(|(_, pods)| pods)
}

fn note(places: &mut Places, place: Option<Topology>, pod: &Pod) {
    if let Some(place) = place {
        places.entry(place).or_default().push(pod.key());
    }
}

/// Whether a term of a pod means another.
fn means(term: &Nearness, of: &Pod, other: &Pod) -> bool {
    let namespace = &other.meta.namespace;
    let is_there = term.is_everywhere
        || term.namespaces.contains(namespace)
        || term.namespaces.is_empty() && *namespace == of.meta.namespace;
    is_there && term.pods.as_ref().is_some_and(|pods| pods.matches(&other.scheduling.labels))
}

/// Where a pod is, by a label of its node.
fn topology(known: &Cache, pod: &Pod, key: &Name) -> Option<Topology> {
    let (place, _) = known.tenants().place(&pod.key())?;
    let value = known.node(place)?.labels.get(key)?;
    Some((key.clone(), value.clone()))
}
