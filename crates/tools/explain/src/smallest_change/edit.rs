//! Edits of single objects, as an operator could make them.

use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::{
    Annotation, Capacity, ClaimKey, Class, CsiNode, Name, Node, NodeDriver, Object, Pod, PodKey, Taint, Topologies,
    Volume,
};

/// An edit of one object.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    /// Sets or removes a label of a node.
    Label { node: Name, key: Name, value: Option<Name> },
    /// Removes a taint from a node.
    Untaint { node: Name, taint: Taint },
    /// Makes a node schedulable again.
    Uncordon(Name),
    /// Raises an allocatable resource of a node.
    RaiseAllocatable { node: Name, what: Name, by: i128 },
    /// Deletes a pod.
    DeletePod(PodKey),
    /// Removes the pod affinity of a pod.
    DropPodAffinity(PodKey),
    /// Removes the topology spread constraints of a pod that use this key.
    DropSpread(PodKey, Name),
    /// Removes the scheduling gates of a pod.
    Ungate(PodKey),
    /// Treats a claim of a pod as bound: the volume is dropped from the pod.
    AssumeBound { pod: PodKey, claim: Name },
    /// Removes the selected node from a claim.
    UnselectNode(ClaimKey),
    /// Creates a volume.
    CreateVolume(Box<Volume>),
    /// Publishes storage capacity.
    PublishCapacity(Box<Capacity>),
    /// Removes allowedTopologies from a class.
    AllowAllTopologies(Name),
    /// Installs a CSI driver on a node.
    InstallDriver { node: Name, driver: Name },
    /// Removes the volume limits of a node.
    DropVolumeLimits(Name),
}

impl Edit {
    /// Applies the edit. Objects that do not exist are skipped.
    pub fn apply(&self, draft: &mut Cache) {
        match self {
            Edit::Label { node, key, value } => {
                change_node(draft, node, |node| node.labels = node.labels.with(key, value.as_ref()));
            }
            Edit::Untaint { node, taint } => change_node(draft, node, |node| {
                node.taints = node.taints.iter().filter(|other| *other != taint).cloned().collect();
            }),
            Edit::Uncordon(node) => change_node(draft, node, |node| node.unschedulable = false),
            Edit::RaiseAllocatable { node, what, by } => change_node(draft, node, |node| match what.as_str() {
                "cpu" => node.allocatable.cpu_millis += by,
                "memory" => node.allocatable.memory_bytes += by,
                "pods" => node.allocatable.pods += by,
                _ => node.allocatable.others.add(what, *by),
            }),
            Edit::DeletePod(pod) => {
                draft.watched_deleted(&pod.clone().into(), 0);
            }
            Edit::DropPodAffinity(pod) => change_pod(draft, pod, |pod| pod.scheduling.affinity = Box::default()),
            Edit::DropSpread(pod, key) => change_pod(draft, pod, |pod| {
                let spread = &mut pod.scheduling.topology_spread;
                *spread = spread.iter().filter(|spread| spread.topology_key != *key).cloned().collect();
            }),
            Edit::Ungate(pod) => change_pod(draft, pod, |pod| pod.scheduling.is_gated = false),
            Edit::AssumeBound { pod, claim } => change_pod(draft, pod, |pod| {
                pod.volumes = pod.volumes.iter().filter(|volume| volume.claim != *claim).cloned().collect();
            }),
            Edit::UnselectNode(claim) => {
                let Some(mut changed) = draft.claim(claim).map(|claim| (**claim).clone()) else { return };
                changed.annotations.remove(Annotation::SelectedNode);
                changed.meta.version = 0;
                draft.watched(Object::Claim(Arc::new(changed)));
            }
            Edit::CreateVolume(volume) => {
                draft.watched(Object::Volume(Arc::new((**volume).clone())));
            }
            Edit::PublishCapacity(capacity) => {
                draft.watched(Object::Capacity(Arc::new((**capacity).clone())));
            }
            Edit::AllowAllTopologies(class) => {
                let Some(class) = draft.class(class).map(|class| (**class).clone()) else { return };
                let changed = Class { topologies: Topologies::default(), ..class };
                draft.watched(Object::Class(Arc::new(Class { meta: unversioned(&changed.meta), ..changed })));
            }
            Edit::InstallDriver { node, driver } => change_csi(draft, node, |csi| {
                let new = NodeDriver { name: driver.clone(), ..NodeDriver::default() };
                csi.drivers = csi.drivers.iter().cloned().chain([new]).collect();
            }),
            Edit::DropVolumeLimits(node) => change_csi(draft, node, |csi| {
                csi.drivers.iter_mut().for_each(|driver| driver.volumes_max = None);
            }),
        }
    }
}

/// Metadata without a version, which always replaces the cached object.
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
