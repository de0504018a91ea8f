//! Which pods are where: on the nodes that they were given, or that are meant for them; and those that wait, in their order.

use std::collections::BTreeSet;

use bindery_model::{Name, Needs, Pod, PodKey, QueueOrder};
use rustc_hash::FxHashMap;

/// How much is taken of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeUsage {
    /// How many pods.
    pub pods: i128,
    /// How much they ask for.
    pub needs: Needs,
    /// Of processors and memory the same, with something for those that ask for none.
    pub usual: Needs,
}

impl NodeUsage {
    fn of(pod: &Pod) -> NodeUsage {
        let needs = &pod.scheduling.needs;
        NodeUsage { pods: 1, needs: needs.clone(), usual: needs.usual() }
    }

    /// With another's.
    #[must_use]
    pub fn with(&self, other: &NodeUsage) -> NodeUsage {
        NodeUsage {
            pods: self.pods + other.pods,
            needs: self.needs.plus(&other.needs),
            usual: self.usual.plus(&other.usual),
        }
    }

    /// Without another's.
    #[must_use]
    pub fn without(&self, other: &NodeUsage) -> NodeUsage {
        NodeUsage {
            pods: self.pods - other.pods,
            needs: self.needs.minus(&other.needs),
            usual: self.usual.minus(&other.usual),
        }
    }
}

/// The pods of a node.
#[derive(Debug, Default)]
struct Tenancy {
    pods: BTreeSet<PodKey>,
    load: NodeUsage,
}

/// How a pod stands, as it was last noted.
#[derive(Debug)]
struct Noted {
    node: Option<Name>,
    load: NodeUsage,
    turn: Option<QueueOrder>,
    /// Whether it waits and was not looked at yet.
    is_new: bool,
    /// The classes of its claims that are not bound, while it waits; each once.
    classes: Box<[Name]>,
    /// Whether it wants other pods to be elsewhere.
    is_apart: bool,
}

/// A pod, and what is known of it beside.
pub(crate) struct Standing<'a> {
    pub pod: &'a Pod,
    /// The node that is meant for it, if it has none.
    pub meant: Option<Name>,
    /// The classes of its claims that are not bound; each once.
    pub classes: Box<[Name]>,
}

/// Whether nobody has looked at a pod yet that can be placed.
fn is_new(pod: &Pod) -> bool {
    let scheduling = &pod.scheduling;
    let was_looked_at = scheduling.unschedulable.is_some() || !scheduling.nominated.is_empty();
    pod.flaw.is_none() && !scheduling.is_gated && !was_looked_at
}

/// Which pods are where.
#[derive(Debug, Default)]
pub struct NodePods {
    noted: FxHashMap<PodKey, Noted>,
    by_node: FxHashMap<Name, Tenancy>,
    waiting: BTreeSet<QueueOrder>,
    new: BTreeSet<QueueOrder>,
    by_class: FxHashMap<Name, BTreeSet<QueueOrder>>,
    apart: BTreeSet<PodKey>,
}

impl NodePods {
    /// Notes a pod; or that it is gone.
    pub(crate) fn note(&mut self, key: &PodKey, standing: Option<Standing<'_>>) {
        if let Some(before) = self.noted.remove(key) {
            self.forget_turn(&before);
            if before.is_apart {
                self.apart.remove(key);
            }
            if let Some(node) = &before.node
                && let Some(tenancy) = self.by_node.get_mut(node)
            {
                tenancy.pods.remove(key);
                tenancy.load = tenancy.load.without(&before.load);
                if tenancy.pods.is_empty() {
                    self.by_node.remove(node);
                }
            }
        }
        let Some(Standing { pod, meant, classes }) = standing.filter(|standing| !standing.pod.is_over()) else {
            return;
        };
        // Who is being deleted before it has a node gets none any more.
        let is_waiting = pod.node.is_empty() && !pod.deleting;
        let node = if pod.node.is_empty() { meant.filter(|_| is_waiting) } else { Some(pod.node.clone()) };
        let turn = is_waiting.then(|| pod.turn());
        let is_apart = node.is_some() && !pod.scheduling.apart.is_empty();
        if node.is_none() && turn.is_none() {
            return;
        }
        let load = NodeUsage::of(pod);
        if let Some(node) = &node {
            let tenancy = self.by_node.entry(node.clone()).or_default();
            tenancy.pods.insert(key.clone());
            tenancy.load = tenancy.load.with(&load);
        }
        if is_apart {
            self.apart.insert(key.clone());
        }
        let classes = if is_waiting { classes } else { Box::default() };
        let noted = Noted { node, load, is_new: is_waiting && is_new(pod), turn, classes, is_apart };
        self.note_turn(&noted);
        self.noted.insert(key.clone(), noted);
    }

    fn note_turn(&mut self, noted: &Noted) {
        let Some(turn) = &noted.turn else { return };
        self.waiting.insert(turn.clone());
        if noted.is_new {
            self.new.insert(turn.clone());
        }
        for class in &noted.classes {
            self.by_class.entry(class.clone()).or_default().insert(turn.clone());
        }
    }

    fn forget_turn(&mut self, noted: &Noted) {
        let Some(turn) = &noted.turn else { return };
        self.waiting.remove(turn);
        self.new.remove(turn);
        for class in &noted.classes {
            let Some(turns) = self.by_class.get_mut(class) else { continue };
            turns.remove(turn);
            if turns.is_empty() {
                self.by_class.remove(class);
            }
        }
    }

    /// The pods of a node: those that were given it, and those that it is meant for; by key.
    pub fn of(&self, node: &Name) -> impl Iterator<Item = &PodKey> {
        self.by_node.get(node).into_iter().flat_map(|tenancy| &tenancy.pods)
    }

    /// How much they take.
    pub fn load(&self, node: &Name) -> NodeUsage {
        self.by_node.get(node).map(|tenancy| tenancy.load.clone()).unwrap_or_default()
    }

    /// The node of a pod, or the one that is meant for it, and what it takes there.
    pub fn place(&self, pod: &PodKey) -> Option<(&Name, &NodeUsage)> {
        let noted = self.noted.get(pod)?;
        noted.node.as_ref().map(|node| (node, &noted.load))
    }

    /// The pods that wait for a node, in their order.
    pub fn waiting(&self) -> impl Iterator<Item = &PodKey> {
        self.waiting.iter().map(|(_, _, key)| key)
    }

    /// Whether a pod waits for a node.
    pub fn is_waiting(&self, pod: &PodKey) -> bool {
        self.noted.get(pod).is_some_and(|noted| noted.turn.is_some())
    }

    /// The pods that wait and that nobody has looked at yet, before a turn, in their order: those that can be placed, for whom no
    /// node is meant, and of whom nobody said that none will do.
    pub fn new_before(&self, turn: &QueueOrder) -> impl Iterator<Item = &PodKey> {
        self.new.range(..turn).map(|(_, _, key)| key)
    }

    /// The pods that wait and have a claim of a class that is not bound, in their order.
    pub fn waiting_for_class(&self, class: &Name) -> impl Iterator<Item = &PodKey> {
        self.by_class.get(class).into_iter().flatten().map(|(_, _, key)| key)
    }

    /// The pods with a node that want others to be elsewhere; by key.
    pub fn apart(&self) -> impl Iterator<Item = &PodKey> {
        self.apart.iter()
    }

    /// All nodes that have pods, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = &Name> {
        self.by_node.keys()
    }
}
