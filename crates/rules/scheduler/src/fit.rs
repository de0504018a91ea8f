//! What a node must have for a pod, beside its volumes: the pod wants it and puts up with it, and there is room.

use bindery_cache::{Cache, NodeUsage};
use bindery_model::{Name, Node, Pod, PodKey, Taint, TaintEffect};

use crate::reason::{Reason, Shortage};

/// The taint that stands for a node which is marked as unschedulable.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A port of a node: protocol, address and number.
type Port = (Name, Name, i32);

/// A test of a node: what it has against it.
type Test = fn(&Cache, &Pod, &Node) -> Vec<Reason>;

/// The tests up to where upstream looks at volumes, in its order.
const TESTS: [Test; 5] = [is_open, is_untainted, is_wanted, has_ports, has_room];

/// What stands against a node, up to where upstream looks at volumes. The first test that fails tells all that it has.
pub(crate) fn before_volumes(known: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let failed = TESTS.iter().map(|test| test(known, pod, node)).find(|against| !against.is_empty());
    failed.unwrap_or_default()
}

/// The same, by all tests.
pub(crate) fn all_before_volumes(known: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    TESTS.iter().flat_map(|test| test(known, pod, node)).collect()
}

fn is_open(_: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let is_closed = node.unschedulable && !tolerates(pod, &unschedulable());
    is_closed.then_some(Reason::Unschedulable).into_iter().collect()
}

fn is_untainted(_: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let taints: Vec<Taint> = repelling(pod, node).cloned().collect();
    (!taints.is_empty()).then_some(Reason::Tainted(taints)).into_iter().collect()
}

/// The taints of a node that keep the pod away.
pub(crate) fn repelling<'a>(pod: &'a Pod, node: &'a Node) -> impl Iterator<Item = &'a Taint> {
    node.taints.iter().filter(|taint| match taint.effect {
        TaintEffect::NoSchedule | TaintEffect::NoExecute => !tolerates(pod, taint),
        TaintEffect::PreferNoSchedule => false,
    })
}

fn unschedulable() -> Taint {
    Taint { key: UNSCHEDULABLE.into(), value: "".into(), effect: TaintEffect::NoSchedule }
}

fn tolerates(pod: &Pod, taint: &Taint) -> bool {
    pod.scheduling.tolerations.iter().any(|toleration| toleration.tolerates(taint))
}

/// How many taints of a node would rather not have the pod.
pub(crate) fn dislikes(pod: &Pod, node: &Node) -> usize {
    let is_mild = |taint: &&Taint| taint.effect == TaintEffect::PreferNoSchedule && !tolerates(pod, taint);
    node.taints.iter().filter(is_mild).count()
}

/// Whether the pod wants the node, by its labels and its name.
pub(crate) fn is_wanted(_: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let scheduling = &pod.scheduling;
    let lacks = |(key, value): &&(Name, Name)| node.labels.get(key) != Some(value);
    let labels: Vec<(Name, Name)> = scheduling.selector.iter().filter(lacks).cloned().collect();
    let is_by_affinity = scheduling.nodes.as_ref().is_some_and(|nodes| !nodes.matches(&node.labels, Some(node.name())));
    let is_unwanted = !labels.is_empty() || is_by_affinity;
    is_unwanted.then_some(Reason::NotWanted { labels, is_by_affinity }).into_iter().collect()
}

fn has_ports(known: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let is_taken = port_takers(known, pod, node).next().is_some();
    is_taken.then_some(Reason::PortTaken).into_iter().collect()
}

/// The pods on a node that have a port which the pod needs.
pub(crate) fn port_takers<'a>(known: &'a Cache, pod: &'a Pod, node: &Node) -> impl Iterator<Item = &'a PodKey> {
    const ANY: &str = "0.0.0.0";
    let wanted = &pod.scheduling.ports;
    let clash = |(protocol, address, port): &Port, taken: &Port| {
        *protocol == taken.0 && *port == taken.2 && (*address == taken.1 || *address == ANY || taken.1 == ANY)
    };
    let takes =
        move |other: &Pod| other.scheduling.ports.iter().any(|taken| wanted.iter().any(|wanted| clash(wanted, taken)));
    let others = (!wanted.is_empty()).then(|| known.tenants().of(node.name()).filter(|key| **key != pod.key()));
    others.into_iter().flatten().filter(move |key| known.pod(key).is_some_and(|other| takes(other)))
}

/// How much is taken of a node by others.
pub(crate) fn load_of_others(known: &Cache, pod: &Pod, node: &Node) -> NodeUsage {
    let load = known.tenants().load(node.name());
    match known.tenants().place(&pod.key()) {
        Some((place, own)) if place == node.name() => load.without(own),
        Some(_) | None => load,
    }
}

fn has_room(known: &Cache, pod: &Pod, node: &Node) -> Vec<Reason> {
    let (taken, has, needs) = (load_of_others(known, pod, node), &node.allocatable, &pod.scheduling.needs);
    let mut reasons = Vec::new();
    if taken.pods + 1 > has.pods {
        reasons.push(Reason::TooManyPods);
    }
    let mut weigh = |what: &str, needs: i128, taken: i128, has: i128| {
        if needs > 0 && taken + needs > has {
            reasons.push(Reason::Lacks(Shortage { what: what.into(), needs, taken, has }));
        }
    };
    weigh("cpu", needs.cpu_millis, taken.needs.cpu_millis, has.cpu_millis);
    weigh("memory", needs.memory_bytes, taken.needs.memory_bytes, has.memory_bytes);
    for (what, needs) in needs.others.iter() {
        weigh(what, needs, taken.needs.others.of(what), has.others.of(what));
    }
    reasons
}
