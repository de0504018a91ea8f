//! The tests of a node that do not involve volumes or other pods' affinity: taints, node affinity,
//! host ports and resources.

use bindery_cache::{Cache, NodeUsage};
use bindery_model::{Name, Node, Pod, PodKey, Taint, TaintEffect};

use crate::reason::{Reason, ResourceShortage};

/// The taint that corresponds to a cordoned node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A host port: protocol, address and number.
type Port = (Name, Name, i32);

/// A test of a node: the reasons against it.
type Test = fn(&Cache, &Pod, &Node) -> Vec<Reason>;

/// The tests that precede those of volumes, in upstream's order.
const TESTS: [Test; 5] = [check_cordoned, check_taints, check_node_affinity, check_ports, check_resources];

/// All reasons of the first test that fails.
pub(crate) fn check(cache: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let failed = TESTS.iter().map(|test| test(cache, pod, node)).find(|reasons| !reasons.is_empty());
    failed.unwrap_or_default()
}

/// The reasons of all tests.
pub(crate) fn check_all(cache: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    TESTS.iter().flat_map(|test| test(cache, pod, node)).collect()
}

fn check_cordoned(_: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let taint = || Taint { key: UNSCHEDULABLE.into(), value: "".into(), effect: TaintEffect::NoSchedule };
    let is_rejected = node.unschedulable && !tolerates(pod, &taint());
    is_rejected.then_some(Reason::Unschedulable).into_iter().collect()
}

fn check_taints(_: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let taints: Vec<Taint> = untolerated_taints(pod, node).cloned().collect();
    (!taints.is_empty()).then_some(Reason::Tainted(taints)).into_iter().collect()
}

/// The taints of a node because of which the pod cannot run there.
pub(crate) fn untolerated_taints<'a>(pod: &'a Pod, node: &'a Node) -> impl Iterator<Item = &'a Taint> {
    node.taints.iter().filter(|taint| match taint.effect {
        TaintEffect::NoSchedule | TaintEffect::NoExecute => !tolerates(pod, taint),
        TaintEffect::PreferNoSchedule => false,
    })
}

fn tolerates(pod: &Pod, taint: &Taint) -> bool {
    pod.scheduling.tolerations.iter().any(|toleration| toleration.tolerates(taint))
}

/// The number of untolerated taints of a node with effect PreferNoSchedule.
pub(crate) fn soft_taints(pod: &Pod, node: &Node) -> usize {
    let is_soft = |taint: &&Taint| taint.effect == TaintEffect::PreferNoSchedule && !tolerates(pod, taint);
    node.taints.iter().filter(is_soft).count()
}

/// Whether a node matches the pod's node selector and required node affinity.
pub(crate) fn check_node_affinity(_: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let scheduling = &pod.scheduling;
    let is_missing = |(key, value): &&(Name, Name)| node.labels.get(key) != Some(value);
    let labels: Vec<(Name, Name)> = scheduling.node_selector.iter().filter(is_missing).cloned().collect();
    let affinity = scheduling.node_affinity.as_ref();
    let is_by_affinity = affinity.is_some_and(|nodes| !nodes.matches(&node.labels, Some(node.name())));
    let is_rejected = !labels.is_empty() || is_by_affinity;
    is_rejected.then_some(Reason::NodeAffinity { labels, is_by_affinity }).into_iter().collect()
}

fn check_ports(cache: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let is_in_use = port_users(cache, pod, node).next().is_some();
    is_in_use.then_some(Reason::PortInUse).into_iter().collect()
}

/// The pods on a node that use a host port which the pod needs.
pub(crate) fn port_users<'a>(cache: &'a Cache, pod: &'a Pod, node: &Node) -> impl Iterator<Item = &'a PodKey> {
    const ANY: &str = "0.0.0.0";
    let needed = &pod.scheduling.ports;
    let conflict = |(protocol, address, port): &Port, used: &Port| {
        *protocol == used.0 && *port == used.2 && (*address == used.1 || *address == ANY || used.1 == ANY)
    };
    let conflicts =
        move |other: &Pod| other.scheduling.ports.iter().any(|used| needed.iter().any(|port| conflict(port, used)));
    let others = (!needed.is_empty()).then(|| cache.node_pods().on(node.name()).filter(|key| **key != pod.key()));
    others.into_iter().flatten().filter(move |key| cache.pod(key).is_some_and(|other| conflicts(other)))
}

/// How much of a node other pods use.
pub(crate) fn usage_by_others(cache: &Cache, pod: &Pod, node: &Node) -> NodeUsage {
    let usage = cache.node_pods().usage(node.name());
    match cache.node_pods().node_of(&pod.key()) {
        Some((planned, own)) if planned == node.name() => usage.minus(own),
        Some(_) | None => usage,
    }
}

fn check_resources(cache: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let usage = usage_by_others(cache, pod, node);
    let (allocatable, requests) = (&node.allocatable, &pod.scheduling.requests);
    let mut reasons = Vec::new();
    if usage.pods + 1 > allocatable.pods {
        reasons.push(Reason::TooManyPods);
    }
    let mut check = |resource: &str, requested: i128, used: i128, allocatable: i128| {
        if requested > 0 && used + requested > allocatable {
            let shortage = ResourceShortage { resource: resource.into(), requested, used, allocatable };
            reasons.push(Reason::Insufficient(shortage));
        }
    };
    check("cpu", requests.cpu_millis, usage.requests.cpu_millis, allocatable.cpu_millis);
    check("memory", requests.memory_bytes, usage.requests.memory_bytes, allocatable.memory_bytes);
    for (resource, requested) in requests.others.iter() {
        check(resource, requested, usage.requests.others.of(resource), allocatable.others.of(resource));
    }
    reasons
}
