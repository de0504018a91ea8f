//! Which pods are where: on the nodes that they were given, or that are meant for them; and those that wait, in their order.

use std::collections::BTreeSet;

use bindery_volumes::{Name, Needs, Pod, PodKey, Turn};
use rustc_hash::FxHashMap;

/// How much is taken of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// How many pods.
    pub pods: i128,
    /// How much they ask for.
    pub needs: Needs,
    /// The same, with something for those that ask for nothing.
    pub usual: Needs,
}

impl Load {
    fn of(pod: &Pod) -> Load {
        let needs = pod.scheduling.needs;
        Load { pods: 1, needs, usual: needs.or_usual() }
    }

    /// With another's.
    #[must_use]
    pub fn with(self, other: Load) -> Load {
        Load { pods: self.pods + other.pods, needs: self.needs.plus(other.needs), usual: self.usual.plus(other.usual) }
    }

    /// Without another's.
    #[must_use]
    pub fn without(self, other: Load) -> Load {
        Load {
            pods: self.pods - other.pods,
            needs: self.needs.minus(other.needs),
            usual: self.usual.minus(other.usual),
        }
    }
}

/// The pods of a node.
#[derive(Debug, Default)]
struct Tenancy {
    pods: BTreeSet<PodKey>,
    load: Load,
}

/// How a pod stands, as it was last noted.
#[derive(Debug)]
struct Noted {
    node: Option<Name>,
    load: Load,
    turn: Option<Turn>,
    /// Whether it wants other pods to be elsewhere.
    is_apart: bool,
}

/// Which pods are where.
#[derive(Debug, Default)]
pub struct Tenants {
    noted: FxHashMap<PodKey, Noted>,
    by_node: FxHashMap<Name, Tenancy>,
    waiting: BTreeSet<Turn>,
    apart: BTreeSet<PodKey>,
}

impl Tenants {
    /// Notes a pod, and the node that is meant for it if it has none; or that it is gone.
    pub(crate) fn note(&mut self, key: &PodKey, pod: Option<(&Pod, Option<Name>)>) {
        if let Some(before) = self.noted.remove(key) {
            if let Some(turn) = &before.turn {
                self.waiting.remove(turn);
            }
            if before.is_apart {
                self.apart.remove(key);
            }
            if let Some(node) = &before.node
                && let Some(tenancy) = self.by_node.get_mut(node)
            {
                tenancy.pods.remove(key);
                tenancy.load = tenancy.load.without(before.load);
                if tenancy.pods.is_empty() {
                    self.by_node.remove(node);
                }
            }
        }
        let Some((pod, meant)) = pod.filter(|(pod, _)| !pod.is_over()) else { return };
        // Who is being deleted before it has a node gets none any more.
        let is_waiting = pod.node.is_empty() && !pod.deleting;
        let node = if pod.node.is_empty() { meant.filter(|_| is_waiting) } else { Some(pod.node.clone()) };
        let turn = is_waiting.then(|| pod.turn());
        let is_apart = node.is_some() && !pod.scheduling.apart.is_empty();
        if node.is_none() && turn.is_none() {
            return;
        }
        let load = Load::of(pod);
        if let Some(node) = &node {
            let tenancy = self.by_node.entry(node.clone()).or_default();
            tenancy.pods.insert(key.clone());
            tenancy.load = tenancy.load.with(load);
        }
        self.waiting.extend(turn.clone());
        if is_apart {
            self.apart.insert(key.clone());
        }
        self.noted.insert(key.clone(), Noted { node, load, turn, is_apart });
    }

    /// The pods of a node: those that were given it, and those that it is meant for; by key.
    pub fn of(&self, node: &Name) -> impl Iterator<Item = &PodKey> {
        self.by_node.get(node).into_iter().flat_map(|tenancy| &tenancy.pods)
    }

    /// How much they take.
    pub fn load(&self, node: &Name) -> Load {
        self.by_node.get(node).map(|tenancy| tenancy.load).unwrap_or_default()
    }

    /// The node of a pod, or the one that is meant for it, and what it takes there.
    pub fn place(&self, pod: &PodKey) -> Option<(&Name, Load)> {
        let noted = self.noted.get(pod)?;
        noted.node.as_ref().map(|node| (node, noted.load))
    }

    /// The pods that wait for a node, in their order.
    pub fn waiting(&self) -> impl Iterator<Item = &PodKey> {
        self.waiting.iter().map(|(_, _, key)| key)
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
