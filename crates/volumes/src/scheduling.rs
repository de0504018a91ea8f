//! What decides where a pod runs, beside its volumes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::decode::{Flaws, WireQuantity};
use crate::node_selector::WireNodeSelector;
use crate::pod::WireVolume;
use crate::selector::WireSelector;
use crate::{Labels, Name, NodeSelector, Quantity, Selector, Taint, TaintEffect};

/// The scheduler of pods that name none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// How much a pod asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Processors, in thousandths.
    pub cpu_millis: i128,
    /// Memory, in bytes.
    pub memory_bytes: i128,
}

impl Needs {
    /// What is counted for a pod that asks for nothing when nodes are compared: it will use something all the same.
    pub fn or_usual(self) -> Needs {
        const USUAL: Needs = Needs { cpu_millis: 100, memory_bytes: 200 * 1024 * 1024 };
        Needs {
            cpu_millis: if self.cpu_millis == 0 { USUAL.cpu_millis } else { self.cpu_millis },
            memory_bytes: if self.memory_bytes == 0 { USUAL.memory_bytes } else { self.memory_bytes },
        }
    }

    /// With another's.
    #[must_use]
    pub fn plus(self, other: Needs) -> Needs {
        Needs {
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_add(other.memory_bytes),
        }
    }

    /// Without another's.
    #[must_use]
    pub fn minus(self, other: Needs) -> Needs {
        Needs {
            cpu_millis: self.cpu_millis.saturating_sub(other.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_sub(other.memory_bytes),
        }
    }

    fn max(self, other: Needs) -> Needs {
        Needs {
            cpu_millis: self.cpu_millis.max(other.cpu_millis),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
        }
    }
}

/// What a pod puts up with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toleration {
    /// The taint's key; empty for every key.
    key: Name,
    /// The taint's value; `None` for every value.
    value: Option<Name>,
    /// The taint's effect; `None` for every effect.
    effect: Option<TaintEffect>,
}

impl Toleration {
    /// Whether a taint is put up with.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
    }
}

/// Other pods, and how near: on nodes with the same value of a label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nearness {
    /// Which pods; `None` for no pod at all.
    pub pods: Option<Selector>,
    /// In which namespaces; empty for the pod's own.
    pub namespaces: Box<[Name]>,
    /// Whether pods of all namespaces are meant.
    pub is_everywhere: bool,
    /// The label of nodes by which nearness is told.
    pub topology_key: Name,
}

/// What decides where a pod runs, beside its volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Who places it.
    pub scheduler: Name,
    /// Whether somebody still holds it back from being placed.
    pub is_gated: bool,
    /// Who goes first: the higher, the sooner.
    pub priority: i32,
    /// When it was created, in a form that sorts by time.
    pub created: Name,
    /// What other pods select it by.
    pub labels: Labels,
    /// How much it asks for.
    pub needs: Needs,
    /// The labels that its node must have.
    pub selector: Box<[(Name, Name)]>,
    /// Which nodes will do.
    pub nodes: Option<NodeSelector>,
    /// Which nodes it likes better, and by how much.
    pub likes: Box<[(i32, NodeSelector)]>,
    /// What it puts up with.
    pub tolerations: Box<[Toleration]>,
    /// Pods that must be near.
    pub near: Box<[Nearness]>,
    /// Pods that must not be near.
    pub apart: Box<[Nearness]>,
    /// The ports of the node that it needs: protocol, address and number.
    pub ports: Box<[(Name, Name, i32)]>,
    /// The node that is meant for it, while its volumes are made ready there.
    pub nominated: Name,
    /// Why no node will do, as far as was said; `None` when nobody said that none does.
    pub unschedulable: Option<Name>,
}

/// The spec of a pod, as it is on the wire.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WireSpec {
    pub node_name: Option<Name>,
    pub volumes: Option<Vec<WireVolume>>,
    scheduler_name: Option<Name>,
    scheduling_gates: Option<Vec<IgnoredAny>>,
    priority: Option<i32>,
    node_selector: Option<BTreeMap<Name, Name>>,
    affinity: Option<WireAffinity>,
    tolerations: Option<Vec<WireToleration>>,
    containers: Option<Vec<WireContainer>>,
    init_containers: Option<Vec<WireContainer>>,
    overhead: Option<WireAmounts>,
    resources: Option<WireResources>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireAffinity {
    node_affinity: Option<WireNodeAffinity>,
    pod_affinity: Option<WirePodAffinity>,
    pod_anti_affinity: Option<WirePodAffinity>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireNodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<WireNodeSelector>,
    preferred_during_scheduling_ignored_during_execution: Option<Vec<WirePreferred>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WirePreferred {
    weight: i32,
    preference: serde_json::Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WirePodAffinity {
    required_during_scheduling_ignored_during_execution: Option<Vec<WireNearness>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireNearness {
    label_selector: Option<WireSelector>,
    namespaces: Option<Vec<Name>>,
    namespace_selector: Option<IgnoredAny>,
    topology_key: Name,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireToleration {
    key: Name,
    operator: Name,
    value: Name,
    effect: Name,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireContainer {
    resources: Option<WireResources>,
    restart_policy: Option<Name>,
    ports: Option<Vec<WirePort>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WirePort {
    host_port: i32,
    #[serde(rename = "hostIP")]
    host_ip: Name,
    protocol: Name,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireResources {
    requests: Option<WireAmounts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireAmounts {
    cpu: Option<WireQuantity>,
    memory: Option<WireQuantity>,
}

impl WireAmounts {
    fn parse(self, flaws: &mut Flaws) -> Needs {
        let mut amount = |field: &str, wire| flaws.quantity(field, wire).unwrap_or_else(|| Quantity::zero().clone());
        Needs {
            cpu_millis: amount("spec.containers.resources.requests.cpu", self.cpu).millis(),
            memory_bytes: amount("spec.containers.resources.requests.memory", self.memory).units(),
        }
    }
}

impl WireContainer {
    fn needs(&mut self, flaws: &mut Flaws) -> Needs {
        let requests = self.resources.take().and_then(|resources| resources.requests);
        requests.map(|requests| requests.parse(flaws)).unwrap_or_default()
    }
}

impl WireNearness {
    fn parse(self, flaws: &mut Flaws) -> Nearness {
        let field = "spec.affinity.podAffinity.labelSelector";
        Nearness {
            pods: self.label_selector.map(|selector| flaws.or_default(field, "", || selector.parse())),
            namespaces: self.namespaces.unwrap_or_default().into(),
            // One that selects by labels of namespaces, which are not known here, is taken to mean all of them.
            is_everywhere: self.namespace_selector.is_some(),
            topology_key: self.topology_key,
        }
    }
}

impl WireToleration {
    fn parse(self) -> Toleration {
        Toleration {
            value: (self.operator != "Exists").then_some(self.value),
            effect: TaintEffect::parse(&self.effect),
            key: self.key,
        }
    }
}

impl WireSpec {
    /// How much the pod asks for: its containers together, or the largest of those that run before them, with those that go on
    /// running beside; and what it takes to run it at all.
    fn needs(&mut self, flaws: &mut Flaws) -> Needs {
        let mut containers = self
            .containers
            .iter_mut()
            .flatten()
            .fold(Needs::default(), |sum, container| sum.plus(container.needs(flaws)));
        let (mut beside, mut before) = (Needs::default(), Needs::default());
        for container in self.init_containers.iter_mut().flatten() {
            let needs = container.needs(flaws);
            if container.restart_policy.as_deref() == Some("Always") {
                beside = beside.plus(needs);
                before = before.max(beside);
            } else {
                before = before.max(beside.plus(needs));
            }
        }
        containers = containers.plus(beside).max(before);
        let whole = self.resources.take().and_then(|resources| resources.requests);
        if let Some(whole) = whole {
            let whole = whole.parse(flaws);
            containers = Needs {
                cpu_millis: if whole.cpu_millis > 0 { whole.cpu_millis } else { containers.cpu_millis },
                memory_bytes: if whole.memory_bytes > 0 { whole.memory_bytes } else { containers.memory_bytes },
            };
        }
        containers.plus(self.overhead.take().map(|overhead| overhead.parse(flaws)).unwrap_or_default())
    }

    fn ports(&mut self) -> Box<[(Name, Name, i32)]> {
        let ports =
            self.containers.iter_mut().flatten().flat_map(|container| container.ports.take().unwrap_or_default());
        let ports = ports.filter(|port| port.host_port > 0);
        ports.map(|port| (or(port.protocol, "TCP"), or(port.host_ip, "0.0.0.0"), port.host_port)).collect()
    }

    /// What it comes to. What is said in metadata and status is handed in by whoever reads those.
    pub fn parse(mut self, flaws: &mut Flaws, labels: Labels, created: Name) -> Scheduling {
        let needs = self.needs(flaws);
        let ports = self.ports();
        let WireAffinity { node_affinity, pod_affinity, pod_anti_affinity } = self.affinity.unwrap_or_default();
        let node_affinity = node_affinity.unwrap_or_default();
        let mut near = |affinity: Option<WirePodAffinity>| -> Box<[Nearness]> {
            let terms = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution);
            terms.unwrap_or_default().into_iter().map(|term| term.parse(flaws)).collect()
        };
        let like = |like: WirePreferred| {
            let terms = serde_json::json!({"nodeSelectorTerms": [like.preference]});
            let terms: WireNodeSelector = serde_json::from_value(terms).unwrap_or_default();
            (like.weight, terms.parse())
        };
        Scheduling {
            scheduler: or(self.scheduler_name.unwrap_or_default(), DEFAULT_SCHEDULER),
            is_gated: self.scheduling_gates.is_some_and(|gates| !gates.is_empty()),
            priority: self.priority.unwrap_or_default(),
            created,
            labels,
            needs,
            selector: self.node_selector.unwrap_or_default().into_iter().collect(),
            nodes: node_affinity.required_during_scheduling_ignored_during_execution.map(WireNodeSelector::parse),
            likes: node_affinity
                .preferred_during_scheduling_ignored_during_execution
                .unwrap_or_default()
                .into_iter()
                .map(like)
                .collect(),
            tolerations: self.tolerations.unwrap_or_default().into_iter().map(WireToleration::parse).collect(),
            near: near(pod_affinity),
            apart: near(pod_anti_affinity),
            ports,
            nominated: Name::default(),
            unschedulable: None,
        }
    }
}

fn or(text: Name, default: &'static str) -> Name {
    if text.is_empty() { Name::new_static(default) } else { text }
}
