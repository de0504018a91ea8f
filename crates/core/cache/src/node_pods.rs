//! The pods of each node, including those planned for it; and the pods that wait for a node, in
//! queue order.

use std::collections::BTreeSet;

use bindery_model::{Name, Pod, PodKey, QueueOrder, ResourceRequests};
use rustc_hash::FxHashMap;

use crate::Counts;

/// How much of a node is in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeUsage {
    /// The number of pods.
    pub pods: i128,
    /// The sum of their requests.
    pub requests: ResourceRequests,
    /// The sum of their CPU and memory requests, with a default for pods that request none.
    pub nonzero_requests: ResourceRequests,
}

impl NodeUsage {
    fn of(pod: &Pod) -> NodeUsage {
        let requests = &pod.scheduling.requests;
        NodeUsage { pods: 1, requests: requests.clone(), nonzero_requests: requests.nonzero() }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &NodeUsage) -> NodeUsage {
        NodeUsage {
            pods: self.pods + other.pods,
            requests: self.requests.plus(&other.requests),
            nonzero_requests: self.nonzero_requests.plus(&other.nonzero_requests),
        }
    }

    /// The difference of both.
    #[must_use]
    pub fn minus(&self, other: &NodeUsage) -> NodeUsage {
        NodeUsage {
            pods: self.pods - other.pods,
            requests: self.requests.minus(&other.requests),
            nonzero_requests: self.nonzero_requests.minus(&other.nonzero_requests),
        }
    }
}

/// The pods of one node.
#[derive(Debug, Clone, Default)]
struct PodsOnNode {
    pods: BTreeSet<PodKey>,
    usage: NodeUsage,
}

/// The queue in which kube-scheduler would keep a pod that waits for a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodQueue {
    /// It is to be scheduled.
    Active,
    /// It has scheduling gates.
    Gated,
    /// It was reported as unschedulable.
    Unschedulable,
}

impl PodQueue {
    fn of(pod: &Pod) -> PodQueue {
        let scheduling = &pod.scheduling;
        if scheduling.is_gated {
            PodQueue::Gated
        } else if scheduling.unschedulable.is_some() && scheduling.nominated_node.is_empty() {
            PodQueue::Unschedulable
        } else {
            PodQueue::Active
        }
    }
}

/// How a pod is indexed.
#[derive(Debug, Clone)]
struct IndexedPod {
    node: Option<Name>,
    usage: NodeUsage,
    /// Its place in the queue, while it waits for a node.
    queue_order: Option<QueueOrder>,
    /// The queue that it is counted in, while it waits for a node.
    queue: Option<PodQueue>,
    /// Whether it waits, is not deferred, and scheduling was not attempted yet.
    is_unattempted: bool,
    /// The classes of its unbound claims, while it waits; each once.
    classes: Box<[Name]>,
    has_anti_affinity: bool,
}

/// A pod, and what its claims and volumes say about it.
pub(crate) struct PodState<'a> {
    pub pod: &'a Pod,
    /// The node on which it is expected to run, if it has none.
    pub planned_node: Option<Name>,
    /// The classes of its unbound claims; each once.
    pub unbound_classes: Box<[Name]>,
    /// Whether the claim of one of its ephemeral volumes does not exist yet.
    pub lacks_ephemeral_claim: bool,
    /// Whether it is backed off or waits.
    pub is_deferred: bool,
}

/// Whether a pod is schedulable and scheduling left no trace on it yet.
fn is_unattempted(pod: &Pod) -> bool {
    let scheduling = &pod.scheduling;
    let was_attempted = scheduling.unschedulable.is_some() || !scheduling.nominated_node.is_empty();
    pod.field_error.is_none() && !scheduling.is_gated && !was_attempted
}

/// Pods by node, and pods that wait for one.
#[derive(Debug, Clone, Default)]
pub struct NodePods {
    indexed: FxHashMap<PodKey, IndexedPod>,
    by_node: FxHashMap<Name, PodsOnNode>,
    waiting: BTreeSet<QueueOrder>,
    queues: Counts<PodQueue>,
    unattempted: BTreeSet<QueueOrder>,
    by_class: FxHashMap<Name, BTreeSet<QueueOrder>>,
    with_anti_affinity: BTreeSet<PodKey>,
}

impl NodePods {
    /// Indexes a pod; removes it from the index when there is no state.
    pub(crate) fn update(&mut self, key: &PodKey, state: Option<PodState<'_>>) {
        if let Some(before) = self.indexed.remove(key) {
            self.dequeue(&before);
            if before.has_anti_affinity {
                self.with_anti_affinity.remove(key);
            }
            if let Some(node) = &before.node
                && let Some(on_node) = self.by_node.get_mut(node)
            {
                on_node.pods.remove(key);
                on_node.usage = on_node.usage.minus(&before.usage);
                if on_node.pods.is_empty() {
                    self.by_node.remove(node);
                }
            }
        }
        let Some(state) = state.filter(|state| !state.pod.is_finished()) else { return };
        let PodState { pod, planned_node, unbound_classes, lacks_ephemeral_claim, is_deferred } = state;
        // A pod that is deleted before it has a node will not get one.
        let is_waiting = pod.node.is_empty() && !pod.deleting;
        let node = if pod.node.is_empty() { planned_node.filter(|_| is_waiting) } else { Some(pod.node.clone()) };
        let queue_order = is_waiting.then(|| pod.queue_order());
        let has_anti_affinity = node.is_some() && !pod.scheduling.anti_affinity.is_empty();
        if node.is_none() && queue_order.is_none() {
            return;
        }
        let usage = NodeUsage::of(pod);
        if let Some(node) = &node {
            let on_node = self.by_node.entry(node.clone()).or_default();
            on_node.pods.insert(key.clone());
            on_node.usage = on_node.usage.plus(&usage);
        }
        if has_anti_affinity {
            self.with_anti_affinity.insert(key.clone());
        }
        let classes = if is_waiting { unbound_classes } else { Box::default() };
        let is_unattempted = is_waiting && !lacks_ephemeral_claim && !is_deferred && is_unattempted(pod);
        let queue = is_waiting.then(|| PodQueue::of(pod));
        let indexed = IndexedPod { node, usage, queue_order, queue, is_unattempted, classes, has_anti_affinity };
        self.enqueue(&indexed);
        self.indexed.insert(key.clone(), indexed);
    }

    fn enqueue(&mut self, pod: &IndexedPod) {
        let Some(order) = &pod.queue_order else { return };
        self.waiting.insert(order.clone());
        self.queues.update(None, pod.queue);
        if pod.is_unattempted {
            self.unattempted.insert(order.clone());
        }
        for class in &pod.classes {
            self.by_class.entry(class.clone()).or_default().insert(order.clone());
        }
    }

    fn dequeue(&mut self, pod: &IndexedPod) {
        let Some(order) = &pod.queue_order else { return };
        self.waiting.remove(order);
        self.queues.update(pod.queue, None);
        self.unattempted.remove(order);
        for class in &pod.classes {
            let Some(orders) = self.by_class.get_mut(class) else { continue };
            orders.remove(order);
            if orders.is_empty() {
                self.by_class.remove(class);
            }
        }
    }

    /// The pods on a node and those planned for it; by key.
    pub fn on(&self, node: &Name) -> impl Iterator<Item = &PodKey> {
        self.by_node.get(node).into_iter().flat_map(|on_node| &on_node.pods)
    }

    /// How much of a node these pods use.
    pub fn usage(&self, node: &Name) -> NodeUsage {
        self.by_node.get(node).map(|on_node| on_node.usage.clone()).unwrap_or_default()
    }

    /// The node of a pod, or the one planned for it, and how much the pod uses there.
    pub fn node_of(&self, pod: &PodKey) -> Option<(&Name, &NodeUsage)> {
        let indexed = self.indexed.get(pod)?;
        indexed.node.as_ref().map(|node| (node, &indexed.usage))
    }

    /// The pods that wait for a node, in queue order.
    pub fn waiting(&self) -> impl Iterator<Item = &PodKey> {
        self.waiting.iter().map(|(_, _, key)| key)
    }

    /// The number of pods that wait for a node, by queue.
    pub fn queues(&self) -> &Counts<PodQueue> {
        &self.queues
    }

    /// Whether a pod waits for a node.
    pub fn is_waiting(&self, pod: &PodKey) -> bool {
        self.indexed.get(pod).is_some_and(|indexed| indexed.queue_order.is_some())
    }

    /// The waiting pods ahead of a place in the queue that are schedulable and for which scheduling
    /// was not attempted yet: they have no nominated node and were not reported as unschedulable.
    pub fn unattempted_before(&self, order: &QueueOrder) -> impl Iterator<Item = &PodKey> {
        self.unattempted.range(..order).map(|(_, _, key)| key)
    }

    /// The waiting pods with an unbound claim of a class, in queue order.
    pub fn waiting_for_class(&self, class: &Name) -> impl Iterator<Item = &PodKey> {
        self.by_class.get(class).into_iter().flatten().map(|(_, _, key)| key)
    }

    /// The pods with a node that have required anti-affinity terms; by key.
    pub fn with_anti_affinity(&self) -> impl Iterator<Item = &PodKey> {
        self.with_anti_affinity.iter()
    }

    /// All nodes that have pods, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = &Name> {
        self.by_node.keys()
    }
}
