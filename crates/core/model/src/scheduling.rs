//! What decides where a pod runs, beside its volumes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::decode::FieldErrors;
use crate::node_selector::WireNodeSelector;
use crate::pod::WireVolume;
use crate::resources::WireAmounts;
use crate::selector::WireSelector;
use crate::{Labels, Name, Needs, NodeSelector, Selector, Taint, TaintEffect};

/// The scheduler of pods that name none.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Where a container says how much it asks for.
const REQUESTS: &str = "spec.containers.resources.requests";

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

/// How evenly pods must be spread: over the values of a label of nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopologySpread {
    /// Which pods of the namespace are counted; `None` for no pod at all.
    pub pods: Option<Selector>,
    /// The label of nodes by which places are told.
    pub topology_key: Name,
    /// By how much a place may have more of them than the place that has fewest.
    pub skew_max: i64,
    /// Where there are fewer places than this, it counts as if there were another with none.
    pub places_min: i64,
    /// Whether nodes count that the pod does not want.
    pub is_over_unwanted: bool,
    /// Whether nodes count whose taints the pod does not tolerate.
    pub is_over_tainted: bool,
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
    /// How evenly it must be spread with others.
    pub spread: Box<[TopologySpread]>,
    /// Whether it asks for devices by claims of their own, which nobody here allocates.
    pub has_device_claims: bool,
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
    topology_spread_constraints: Option<Vec<WireSpread>>,
    resource_claims: Option<Vec<IgnoredAny>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSpread {
    label_selector: Option<WireSelector>,
    match_label_keys: Option<Vec<Name>>,
    max_skew: i64,
    min_domains: Option<i64>,
    node_affinity_policy: Option<Name>,
    node_taints_policy: Option<Name>,
    topology_key: Name,
    when_unsatisfiable: Name,
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

impl WireContainer {
    fn needs(&mut self, flaws: &mut FieldErrors) -> Needs {
        let requests = self.resources.take().and_then(|resources| resources.requests);
        requests.map(|requests| requests.needs(REQUESTS, flaws)).unwrap_or_default()
    }
}

impl WireNearness {
    fn parse(self, flaws: &mut FieldErrors) -> Nearness {
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

impl WireSpread {
    /// Whether it is a demand, and not a wish.
    fn is_strict(&self) -> bool {
        self.when_unsatisfiable == "DoNotSchedule"
    }

    fn parse(self, labels: &Labels, flaws: &mut FieldErrors) -> TopologySpread {
        let field = "spec.topologySpreadConstraints.labelSelector";
        let mut pods = self.label_selector.map(|selector| flaws.or_default(field, "", || selector.parse()));
        let own = self.match_label_keys.into_iter().flatten();
        for (key, value) in own.filter_map(|key| Some((key.clone(), labels.get(&key)?.clone()))) {
            pods.iter_mut().for_each(|pods| pods.require(key.clone(), value.clone()));
        }
        TopologySpread {
            pods,
            topology_key: self.topology_key,
            skew_max: self.max_skew,
            places_min: self.min_domains.unwrap_or(1),
            is_over_unwanted: self.node_affinity_policy.as_deref() == Some("Ignore"),
            is_over_tainted: self.node_taints_policy.as_deref() != Some("Honor"),
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
    fn needs(&mut self, flaws: &mut FieldErrors) -> Needs {
        let mut containers = self
            .containers
            .iter_mut()
            .flatten()
            .fold(Needs::default(), |sum, container| sum.plus(&container.needs(flaws)));
        let (mut beside, mut before) = (Needs::default(), Needs::default());
        for container in self.init_containers.iter_mut().flatten() {
            let needs = container.needs(flaws);
            if container.restart_policy.as_deref() == Some("Always") {
                beside = beside.plus(&needs);
                before = before.max(&beside);
            } else {
                before = before.max(&beside.plus(&needs));
            }
        }
        containers = containers.plus(&beside).max(&before);
        let whole = self.resources.take().and_then(|resources| resources.requests);
        if let Some(whole) = whole {
            containers = whole.needs("spec.resources.requests", flaws).or(&containers);
        }
        let overhead = self.overhead.take().map(|overhead| overhead.needs("spec.overhead", flaws));
        containers.plus(&overhead.unwrap_or_default())
    }

    fn ports(&mut self) -> Box<[(Name, Name, i32)]> {
        let ports =
            self.containers.iter_mut().flatten().flat_map(|container| container.ports.take().unwrap_or_default());
        let ports = ports.filter(|port| port.host_port > 0);
        ports.map(|port| (or(port.protocol, "TCP"), or(port.host_ip, "0.0.0.0"), port.host_port)).collect()
    }

    /// What it comes to. What is said in metadata and status is handed in by whoever reads those.
    pub fn parse(mut self, flaws: &mut FieldErrors, labels: Labels, created: Name) -> Scheduling {
        let needs = self.needs(flaws);
        let ports = self.ports();
        let WireAffinity { node_affinity, pod_affinity, pod_anti_affinity } = self.affinity.unwrap_or_default();
        let node_affinity = node_affinity.unwrap_or_default();
        let mut near = |affinity: Option<WirePodAffinity>| -> Box<[Nearness]> {
            let terms = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution);
            terms.unwrap_or_default().into_iter().map(|term| term.parse(flaws)).collect()
        };
        let (near, apart) = (near(pod_affinity), near(pod_anti_affinity));
        let spread = self.topology_spread_constraints.into_iter().flatten().filter(WireSpread::is_strict);
        let spread = spread.map(|spread| spread.parse(&labels, flaws)).collect();
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
            near,
            apart,
            spread,
            has_device_claims: self.resource_claims.is_some_and(|claims| !claims.is_empty()),
            ports,
            nominated: Name::default(),
            unschedulable: None,
        }
    }
}

fn or(text: Name, default: &'static str) -> Name {
    if text.is_empty() { Name::new_static(default) } else { text }
}
