//! The fields of a pod that determine where it can run, apart from its volumes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::decode::FieldErrors;
use crate::node_selector::WireNodeSelector;
use crate::pod::WireVolume;
use crate::resources::WireResourceList;
use crate::selector::WireSelector;
use crate::{Labels, Name, NodeSelector, ResourceRequests, Selector, Taint, TaintEffect};

/// The scheduler of pods that do not specify one.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The field with the requests of containers.
const REQUESTS: &str = "spec.containers.resources.requests";

/// A toleration of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toleration {
    /// The key of the taint; empty for every key.
    key: Name,
    /// The value of the taint; `None` for every value.
    value: Option<Name>,
    /// The effect of the taint; `None` for every effect.
    effect: Option<TaintEffect>,
}

impl Toleration {
    /// Whether it tolerates a taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
    }
}

/// A required term of pod affinity or anti-affinity.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodAffinityTerm {
    /// The selector of the other pods; `None` for no pod.
    pub pods: Option<Selector>,
    /// Their namespaces; empty for the pod's own.
    pub namespaces: Box<[Name]>,
    /// Whether it applies to pods of all namespaces.
    pub all_namespaces: bool,
    /// The node label that defines the topology domains.
    pub topology_key: Name,
}

/// A topology spread constraint that must be met (`whenUnsatisfiable: DoNotSchedule`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopologySpreadConstraint {
    /// The selector of the pods to count in the namespace; `None` for no pod.
    pub pods: Option<Selector>,
    /// The node label that defines the topology domains.
    pub topology_key: Name,
    /// By how much the number of pods in a domain may exceed the minimum.
    pub skew_max: i64,
    /// With fewer domains than this, the minimum counts as zero.
    pub domains_min: i64,
    /// Whether nodes count that do not match the pod's node affinity.
    pub ignores_node_affinity: bool,
    /// Whether nodes count whose taints the pod does not tolerate.
    pub ignores_taints: bool,
}

/// The fields of a pod that determine where it can run, apart from its volumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// The name of its scheduler.
    pub scheduler: Name,
    /// Whether it has scheduling gates.
    pub is_gated: bool,
    /// Its priority: the higher, the sooner it is scheduled.
    pub priority: i32,
    /// When it was created, in a form that sorts by time.
    pub created: Name,
    /// Its labels.
    pub labels: Labels,
    /// Its resource requests.
    pub requests: ResourceRequests,
    /// The labels that its node must have.
    pub node_selector: Box<[(Name, Name)]>,
    /// The required node affinity.
    pub node_affinity: Option<NodeSelector>,
    /// The preferred node affinity, with weights.
    pub preferred_nodes: Box<[(i32, NodeSelector)]>,
    /// Its tolerations.
    pub tolerations: Box<[Toleration]>,
    /// The required pod affinity.
    pub affinity: Box<[PodAffinityTerm]>,
    /// The required pod anti-affinity.
    pub anti_affinity: Box<[PodAffinityTerm]>,
    /// The topology spread constraints that must be met.
    pub topology_spread: Box<[TopologySpreadConstraint]>,
    /// Whether it has resource claims (dynamic resource allocation), which are not supported.
    pub has_device_claims: bool,
    /// The host ports that it needs: protocol, address and number.
    pub ports: Box<[(Name, Name, i32)]>,
    /// `status.nominatedNodeName`: the node reserved for it while its volumes are being bound.
    pub nominated_node: Name,
    /// The message of the condition that it is unschedulable; `None` without that condition.
    pub unschedulable: Option<Name>,
}

/// The spec of a pod in JSON.
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
    overhead: Option<WireResourceList>,
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
    required_during_scheduling_ignored_during_execution: Option<Vec<WirePodAffinityTerm>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WirePodAffinityTerm {
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
    requests: Option<WireResourceList>,
}

impl WireContainer {
    fn requests(&mut self, errors: &mut FieldErrors) -> ResourceRequests {
        let requests = self.resources.take().and_then(|resources| resources.requests);
        requests.map(|requests| requests.requests(REQUESTS, errors)).unwrap_or_default()
    }
}

impl WirePodAffinityTerm {
    fn parse(self, errors: &mut FieldErrors) -> PodAffinityTerm {
        let field = "spec.affinity.podAffinity.labelSelector";
        PodAffinityTerm {
            pods: self.label_selector.map(|selector| errors.or_default(field, "", || selector.parse())),
            namespaces: self.namespaces.unwrap_or_default().into(),
            // Namespaces are not cached, so a selector of namespaces counts as all of them.
            all_namespaces: self.namespace_selector.is_some(),
            topology_key: self.topology_key,
        }
    }
}

impl WireSpread {
    /// Whether it must be met.
    fn is_required(&self) -> bool {
        self.when_unsatisfiable == "DoNotSchedule"
    }

    fn parse(self, labels: &Labels, errors: &mut FieldErrors) -> TopologySpreadConstraint {
        let field = "spec.topologySpreadConstraints.labelSelector";
        let mut pods = self.label_selector.map(|selector| errors.or_default(field, "", || selector.parse()));
        let own = self.match_label_keys.into_iter().flatten();
        for (key, value) in own.filter_map(|key| Some((key.clone(), labels.get(&key)?.clone()))) {
            pods.iter_mut().for_each(|pods| pods.require(key.clone(), value.clone()));
        }
        TopologySpreadConstraint {
            pods,
            topology_key: self.topology_key,
            skew_max: self.max_skew,
            domains_min: self.min_domains.unwrap_or(1),
            ignores_node_affinity: self.node_affinity_policy.as_deref() == Some("Ignore"),
            ignores_taints: self.node_taints_policy.as_deref() != Some("Honor"),
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
    /// The requests of the pod: the sum of its containers, or the largest init container if that is
    /// more, each with the sidecars; and the overhead.
    fn requests(&mut self, errors: &mut FieldErrors) -> ResourceRequests {
        let mut containers = self
            .containers
            .iter_mut()
            .flatten()
            .fold(ResourceRequests::default(), |sum, container| sum.plus(&container.requests(errors)));
        let (mut sidecars, mut init) = (ResourceRequests::default(), ResourceRequests::default());
        for container in self.init_containers.iter_mut().flatten() {
            let requests = container.requests(errors);
            if container.restart_policy.as_deref() == Some("Always") {
                sidecars = sidecars.plus(&requests);
                init = init.max(&sidecars);
            } else {
                init = init.max(&sidecars.plus(&requests));
            }
        }
        containers = containers.plus(&sidecars).max(&init);
        let pod_level = self.resources.take().and_then(|resources| resources.requests);
        if let Some(pod_level) = pod_level {
            containers = pod_level.requests("spec.resources.requests", errors).or(&containers);
        }
        let overhead = self.overhead.take().map(|overhead| overhead.requests("spec.overhead", errors));
        containers.plus(&overhead.unwrap_or_default())
    }

    fn ports(&mut self) -> Box<[(Name, Name, i32)]> {
        let ports =
            self.containers.iter_mut().flatten().flat_map(|container| container.ports.take().unwrap_or_default());
        let ports = ports.filter(|port| port.host_port > 0);
        ports.map(|port| (or(port.protocol, "TCP"), or(port.host_ip, "0.0.0.0"), port.host_port)).collect()
    }

    /// The scheduling fields of the spec, with labels and creation time from the metadata.
    pub fn parse(mut self, errors: &mut FieldErrors, labels: Labels, created: Name) -> Scheduling {
        let requests = self.requests(errors);
        let ports = self.ports();
        let WireAffinity { node_affinity, pod_affinity, pod_anti_affinity } = self.affinity.unwrap_or_default();
        let node_affinity = node_affinity.unwrap_or_default();
        let mut terms = |affinity: Option<WirePodAffinity>| -> Box<[PodAffinityTerm]> {
            let terms = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution);
            terms.unwrap_or_default().into_iter().map(|term| term.parse(errors)).collect()
        };
        let (affinity, anti_affinity) = (terms(pod_affinity), terms(pod_anti_affinity));
        let spread = self.topology_spread_constraints.into_iter().flatten().filter(WireSpread::is_required);
        let topology_spread = spread.map(|spread| spread.parse(&labels, errors)).collect();
        let preferred = |preferred: WirePreferred| {
            let terms = serde_json::json!({"nodeSelectorTerms": [preferred.preference]});
            let terms: WireNodeSelector = serde_json::from_value(terms).unwrap_or_default();
            (preferred.weight, terms.parse())
        };
        Scheduling {
            scheduler: or(self.scheduler_name.unwrap_or_default(), DEFAULT_SCHEDULER),
            is_gated: self.scheduling_gates.is_some_and(|gates| !gates.is_empty()),
            priority: self.priority.unwrap_or_default(),
            created,
            labels,
            requests,
            node_selector: self.node_selector.unwrap_or_default().into_iter().collect(),
            node_affinity: node_affinity
                .required_during_scheduling_ignored_during_execution
                .map(WireNodeSelector::parse),
            preferred_nodes: node_affinity
                .preferred_during_scheduling_ignored_during_execution
                .unwrap_or_default()
                .into_iter()
                .map(preferred)
                .collect(),
            tolerations: self.tolerations.unwrap_or_default().into_iter().map(WireToleration::parse).collect(),
            affinity,
            anti_affinity,
            topology_spread,
            has_device_claims: self.resource_claims.is_some_and(|claims| !claims.is_empty()),
            ports,
            nominated_node: Name::default(),
            unschedulable: None,
        }
    }
}

fn or(text: Name, default: &'static str) -> Name {
    if text.is_empty() { Name::new_static(default) } else { text }
}
