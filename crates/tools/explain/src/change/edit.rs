//! Changes of single objects, as somebody could make them.

use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::{
    Annotation, Capacity, ClaimKey, Class, CsiNode, Name, Node, NodeDriver, Object, Pod, PodKey, Taint, Topologies,
    Volume,
};

/// A change of one object.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    /// A node gets a label, or loses it.
    Label { node: Name, key: Name, value: Option<Name> },
    /// A node loses a taint.
    Untaint { node: Name, taint: Taint },
    /// A node is open for pods again.
    Uncordon(Name),
    /// A node has more of something.
    Enlarge { node: Name, what: Name, by: i128 },
    /// A pod ends.
    End(PodKey),
    /// A pod makes no demand of being near others.
    Detach(PodKey),
    /// A pod makes no demand of being spread over a label.
    Unspread(PodKey, Name),
    /// A pod is held back no more.
    Ungate(PodKey),
    /// A claim of a pod is in order: nothing more is asked about it.
    Settle { pod: PodKey, claim: Name },
    /// No node is selected for a claim any more.
    Unselect(ClaimKey),
    /// A volume is made.
    Volume(Box<Volume>),
    /// A driver has room.
    CapacityIndex(Box<Capacity>),
    /// A class makes volumes everywhere.
    Allow(Name),
    /// A driver is installed on a node.
    Install { node: Name, driver: Name },
    /// A node can have any number of volumes.
    Unlimit(Name),
}

impl Edit {
    /// Makes the change. What does not exist is not changed.
    pub fn apply(&self, draft: &mut Cache) {
        match self {
            Edit::Label { node, key, value } => {
                change_node(draft, node, |node| node.labels = node.labels.with(key, value.as_ref()));
            }
            Edit::Untaint { node, taint } => change_node(draft, node, |node| {
                node.taints = node.taints.iter().filter(|other| *other != taint).cloned().collect();
            }),
            Edit::Uncordon(node) => change_node(draft, node, |node| node.unschedulable = false),
            Edit::Enlarge { node, what, by } => change_node(draft, node, |node| match what.as_str() {
                "cpu" => node.allocatable.cpu_millis += by,
                "memory" => node.allocatable.memory_bytes += by,
                "pods" => node.allocatable.pods += by,
                _ => node.allocatable.others.add(what, *by),
            }),
            Edit::End(pod) => {
                draft.watched_deleted(&pod.clone().into(), 0);
            }
            Edit::Detach(pod) => change_pod(draft, pod, |pod| pod.scheduling.affinity = Box::default()),
            Edit::Unspread(pod, key) => change_pod(draft, pod, |pod| {
                let spread = &mut pod.scheduling.topology_spread;
                *spread = spread.iter().filter(|spread| spread.topology_key != *key).cloned().collect();
            }),
            Edit::Ungate(pod) => change_pod(draft, pod, |pod| pod.scheduling.is_gated = false),
            Edit::Settle { pod, claim } => change_pod(draft, pod, |pod| {
                pod.volumes = pod.volumes.iter().filter(|volume| volume.claim != *claim).cloned().collect();
            }),
            Edit::Unselect(claim) => {
                let Some(mut changed) = draft.claim(claim).map(|claim| (**claim).clone()) else { return };
                changed.annotations.remove(Annotation::SelectedNode);
                changed.meta.version = 0;
                draft.watched(Object::Claim(Arc::new(changed)));
            }
            Edit::Volume(volume) => {
                draft.watched(Object::Volume(Arc::new((**volume).clone())));
            }
            Edit::CapacityIndex(capacity) => {
                draft.watched(Object::Capacity(Arc::new((**capacity).clone())));
            }
            Edit::Allow(class) => {
                let Some(class) = draft.class(class).map(|class| (**class).clone()) else { return };
                let changed = Class { topologies: Topologies::default(), ..class };
                draft.watched(Object::Class(Arc::new(Class { meta: unversioned(&changed.meta), ..changed })));
            }
            Edit::Install { node, driver } => change_csi(draft, node, |csi| {
                let new = NodeDriver { name: driver.clone(), ..NodeDriver::default() };
                csi.drivers = csi.drivers.iter().cloned().chain([new]).collect();
            }),
            Edit::Unlimit(node) => change_csi(draft, node, |csi| {
                csi.drivers.iter_mut().for_each(|driver| driver.volumes_max = None);
            }),
        }
    }
}

/// An object that counts as news whatever was known of it.
fn unversioned(meta: &bindery_model::Meta) -> bindery_model::Meta {
    bindery_model::Meta { version: 0, ..meta.clone() }
}

fn change_node(draft: &mut Cache, name: &Name, change: impl FnOnce(&mut Node)) {
    let Some(mut node) = draft.node(name).map(|node| (**node).clone()) else { return };
    change(&mut node);
    node.meta.version = 0;
    draft.watched(Object::Node(Arc::new(node)));
}

fn change_pod(draft: &mut Cache, key: &PodKey, change: impl FnOnce(&mut Pod)) {
    let Some(mut pod) = draft.pod(key).map(|pod| (**pod).clone()) else { return };
    change(&mut pod);
    pod.meta.version = 0;
    draft.watched(Object::Pod(Arc::new(pod)));
}

fn change_csi(draft: &mut Cache, name: &Name, change: impl FnOnce(&mut CsiNode)) {
    let mut csi = draft.csi_node(name).map(|csi| (**csi).clone()).unwrap_or_default();
    change(&mut csi);
    csi.meta.name = name.clone();
    csi.meta.version = 0;
    draft.watched(Object::CsiNode(Arc::new(csi)));
}
