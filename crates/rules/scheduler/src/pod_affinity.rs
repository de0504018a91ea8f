//! Required pod affinity and anti-affinity.

use std::collections::{BTreeMap, BTreeSet};

use bindery_cache::Cache;
use bindery_model::{Name, Node, Pod, PodAffinityTerm, PodKey};

use crate::reason::Reason;

/// A topology domain: a node label and its value.
type Domain = (Name, Name);

/// Pods by topology domain.
type PodsByDomain = BTreeMap<Domain, Vec<PodKey>>;

/// The pods that matter to the affinity of a pod. Computed once for all nodes.
pub(crate) struct PodAffinity {
    /// For each affinity term: the label, and the domains with matching pods.
    affinity: Vec<(Name, BTreeSet<Name>)>,
    /// Whether no pod matches yet and the pod matches its own terms: then it may be the first.
    is_first: bool,
    /// Pods that match the pod's anti-affinity.
    anti_affinity: PodsByDomain,
    /// Pods whose anti-affinity matches the pod.
    existing_anti_affinity: PodsByDomain,
}

impl PodAffinity {
    pub fn of(cache: &Cache, pod: &Pod) -> PodAffinity {
        let scheduling = &pod.scheduling;
        let mut this = PodAffinity {
            affinity: scheduling.affinity.iter().map(|term| (term.topology_key.clone(), BTreeSet::new())).collect(),
            is_first: false,
            anti_affinity: PodsByDomain::new(),
            existing_anti_affinity: PodsByDomain::new(),
        };
        if !scheduling.affinity.is_empty() || !scheduling.anti_affinity.is_empty() {
            this.find_matching_pods(cache, pod);
        }
        let others = cache.node_pods().with_anti_affinity().filter(|key| **key != pod.key());
        for other in others.filter_map(|key| cache.pod(key)) {
            for term in other.scheduling.anti_affinity.iter().filter(|term| matches(term, other, pod)) {
                insert(&mut this.existing_anti_affinity, domain(cache, other, &term.topology_key), other);
            }
        }
        let has_no_match = this.affinity.iter().all(|(_, values)| values.is_empty());
        this.is_first = has_no_match && scheduling.affinity.iter().all(|term| matches(term, pod, pod));
        this
    }

    fn find_matching_pods(&mut self, cache: &Cache, pod: &Pod) {
        let scheduling = &pod.scheduling;
        let all = cache.node_pods().nodes().flat_map(|node| cache.node_pods().on(node));
        for other in all.filter(|key| **key != pod.key()).filter_map(|key| cache.pod(key)) {
            // A pod counts for affinity only if it matches all terms.
            if !scheduling.affinity.is_empty() && scheduling.affinity.iter().all(|term| matches(term, pod, other)) {
                for (key, values) in &mut self.affinity {
                    values.extend(domain(cache, other, key).map(|(_, value)| value));
                }
            }
            for term in scheduling.anti_affinity.iter().filter(|term| matches(term, pod, other)) {
                insert(&mut self.anti_affinity, domain(cache, other, &term.topology_key), other);
            }
        }
    }

    /// The first reason against a node.
    pub fn check(&self, node: &Node) -> Option<Reason> {
        self.check_all(node).next()
    }

    /// All reasons against a node.
    pub fn check_all(&self, node: &Node) -> impl Iterator<Item = Reason> {
        let tests: [fn(&PodAffinity, &Node) -> Option<Reason>; 3] = [
            |this, node| (!this.has_affinity(node)).then_some(Reason::Affinity),
            |this, node| (!this.excluded_by_pod(node).is_empty()).then_some(Reason::AntiAffinity),
            |this, node| (!this.excluding_pod(node).is_empty()).then_some(Reason::ExistingAntiAffinity),
        ];
        tests.into_iter().filter_map(move |test| test(self, node))
    }

    /// The pods in the domains of a node that the pod's anti-affinity excludes.
    pub fn excluded_by_pod(&self, node: &Node) -> BTreeSet<&PodKey> {
        in_domains(&self.anti_affinity, node)
    }

    /// The pods in the domains of a node whose anti-affinity excludes the pod.
    pub fn excluding_pod(&self, node: &Node) -> BTreeSet<&PodKey> {
        in_domains(&self.existing_anti_affinity, node)
    }

    fn has_affinity(&self, node: &Node) -> bool {
        let has_match =
            |(key, values): &(Name, BTreeSet<Name>)| node.labels.get(key).is_some_and(|value| values.contains(value));
        let has_labels = || self.affinity.iter().all(|(key, _)| node.labels.get(key).is_some());
        self.affinity.iter().all(has_match) || self.is_first && has_labels()
    }
}

/// The pods in the topology domains of a node.
fn in_domains<'a>(pods: &'a PodsByDomain, node: &Node) -> BTreeSet<&'a PodKey> {
    pods.iter().filter(|((key, value), _)| node.labels.get(key) == Some(value)).flat_map(|(_, pods)| pods).collect()
}

fn insert(pods: &mut PodsByDomain, domain: Option<Domain>, pod: &Pod) {
    if let Some(domain) = domain {
        pods.entry(domain).or_default().push(pod.key());
    }
}

/// Whether a term of a pod matches another pod.
fn matches(term: &PodAffinityTerm, of: &Pod, other: &Pod) -> bool {
    let namespace = &other.meta.namespace;
    let matches_namespace = term.all_namespaces
        || term.namespaces.contains(namespace)
        || term.namespaces.is_empty() && *namespace == of.meta.namespace;
    matches_namespace && term.pods.as_ref().is_some_and(|pods| pods.matches(&other.scheduling.labels))
}

/// The topology domain of a pod, by a label of its node.
fn domain(cache: &Cache, pod: &Pod, key: &Name) -> Option<Domain> {
    let (node, _) = cache.node_pods().node_of(&pod.key())?;
    let value = cache.node(node)?.labels.get(key)?;
    Some((key.clone(), value.clone()))
}
