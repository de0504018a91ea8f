//! What a node must have for a pod, beside its volumes: the pod wants it and puts up with it, and there is room.

use bindery_mirror::{Load, Mirror};
use bindery_volumes::{Name, Node, Pod, Taint, TaintEffect};

use crate::reason::Reason;

/// The taint that stands for a node which is marked as unschedulable.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A port of a node: protocol, address and number.
type Port = (Name, Name, i32);

/// What stands against a node, up to where upstream looks at volumes. The first test that fails tells all that it has.
pub(crate) fn before_volumes(known: &Mirror, pod: &Pod, node: &Node) -> Vec<Reason> {
    if node.unschedulable && !tolerates(pod, &unschedulable()) {
        return vec![Reason::Unschedulable];
    }
    let keeps_away = |taint: &&Taint| match taint.effect {
        TaintEffect::NoSchedule | TaintEffect::NoExecute => !tolerates(pod, taint),
        TaintEffect::PreferNoSchedule => false,
    };
    if node.taints.iter().find(keeps_away).is_some() {
        return vec![Reason::Tainted];
    }
    if !is_wanted(pod, node) {
        return vec![Reason::NotWanted];
    }
    if is_port_taken(known, pod, node) {
        return vec![Reason::PortTaken];
    }
    lacking(known, pod, node)
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
fn is_wanted(pod: &Pod, node: &Node) -> bool {
    let scheduling = &pod.scheduling;
    let has = |(key, value): &(Name, Name)| node.labels.get(key) == Some(value);
    scheduling.selector.iter().all(has)
        && scheduling.nodes.as_ref().is_none_or(|nodes| nodes.matches(&node.labels, Some(node.name())))
}

fn is_port_taken(known: &Mirror, pod: &Pod, node: &Node) -> bool {
    const ANY: &str = "0.0.0.0";
    let wanted = &pod.scheduling.ports;
    let clash = |(protocol, address, port): &Port, taken: &Port| {
        *protocol == taken.0 && *port == taken.2 && (*address == taken.1 || *address == ANY || taken.1 == ANY)
    };
    !wanted.is_empty()
        && known
            .tenants()
            .of(node.name())
            .filter(|key| **key != pod.key())
            .filter_map(|key| known.pod(key))
            .any(|other| other.scheduling.ports.iter().any(|taken| wanted.iter().any(|wanted| clash(wanted, taken))))
}

/// How much is taken of a node by others.
pub(crate) fn load_of_others(known: &Mirror, pod: &Pod, node: &Node) -> Load {
    let load = known.tenants().load(node.name());
    match known.tenants().place(&pod.key()) {
        Some((place, own)) if place == node.name() => load.without(own),
        Some(_) | None => load,
    }
}

fn lacking(known: &Mirror, pod: &Pod, node: &Node) -> Vec<Reason> {
    let (taken, has, needs) = (load_of_others(known, pod, node), &node.allocatable, pod.scheduling.needs);
    let mut reasons = Vec::new();
    if taken.pods + 1 > has.pods {
        reasons.push(Reason::TooManyPods);
    }
    if needs.cpu_millis > 0 && taken.needs.cpu_millis + needs.cpu_millis > has.cpu_millis {
        reasons.push(Reason::Lacks("cpu", needs.cpu_millis > has.cpu_millis));
    }
    if needs.memory_bytes > 0 && taken.needs.memory_bytes + needs.memory_bytes > has.memory_bytes {
        reasons.push(Reason::Lacks("memory", needs.memory_bytes > has.memory_bytes));
    }
    reasons
}
