//! Edits of single objects, as an operator could make them.

use std::sync::Arc;

use bindery_cache::Cache;
use bindery_model::{
    Annotation, Capacity, ClaimKey, Class, CsiNode, Kind, Name, Node, NodeDriver, Object, ObjectKey, Pod, PodKey,
    Taint, Topologies, Volume,
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
    /// The object that it changes.
    pub fn target(&self) -> ObjectKey {
        match self {
            Edit::Label { node, .. }
            | Edit::Untaint { node, .. }
            | Edit::Uncordon(node)
            | Edit::RaiseAllocatable { node, .. } => ObjectKey::cluster(Kind::Node, node.clone()),
            Edit::DeletePod(pod)
            | Edit::DropPodAffinity(pod)
            | Edit::DropSpread(pod, _)
            | Edit::Ungate(pod)
            | Edit::AssumeBound { pod, .. } => pod.clone().into(),
            Edit::UnselectNode(claim) => claim.clone().into(),
            Edit::CreateVolume(volume) => ObjectKey::volume(volume.name().clone()),
            Edit::PublishCapacity(capacity) => ObjectKey {
                kind: Kind::Capacity,
                namespace: capacity.meta.namespace.clone(),
                name: capacity.meta.name.clone(),
            },
            Edit::AllowAllTopologies(class) => ObjectKey::cluster(Kind::Class, class.clone()),
            Edit::InstallDriver { node, .. } | Edit::DropVolumeLimits(node) => {
                ObjectKey::cluster(Kind::CsiNode, node.clone())
            }
        }
    }

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

/// Undoes the edits of an object, given in the state before them; `None` if it did not exist.
pub(super) fn restore(draft: &mut Cache, key: &ObjectKey, before: Option<Object>) {
    match before {
        // An edited object has no version, so that every state replaces it.
        Some(object) => draft.answered(object),
        None => draft.watched_deleted(key, 0),
    };
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

#[cfg(test)]
mod tests {
    use bindery_model::Kind;

    use super::*;

    fn cluster() -> Cache {
        let mut known = Cache::new(bindery_matching::INDEX_POLICY);
        let objects = [
            (Kind::Node, r#"{"metadata":{"name":"n","uid":"n","resourceVersion":"3"},"spec":{"unschedulable":true}}"#),
            (Kind::Class, r#"{"metadata":{"name":"s","uid":"s","resourceVersion":"4"},"provisioner":"p"}"#),
            (
                Kind::Pod,
                r#"{"metadata":{"namespace":"d","name":"p","uid":"p","resourceVersion":"5"},"spec":{"schedulingGates":[{"name":"g"}]}}"#,
            ),
            (Kind::Pod, r#"{"metadata":{"namespace":"d","name":"q","uid":"q","resourceVersion":"9"}}"#),
        ];
        for (kind, json) in objects {
            known.watched(Object::from_json(kind, json.as_bytes()).expect("a valid object"));
        }
        known
    }

    fn objects(known: &Cache) -> Vec<Object> {
        let keys = Kind::ALL.into_iter().flat_map(|kind| known.keys_after(kind, None, usize::MAX));
        keys.filter_map(|key| known.object(&key)).collect()
    }

    #[test]
    fn restored_objects_are_as_before_the_edit() {
        let known = cluster();
        let (node, pod) = (Name::from("n"), PodKey { namespace: "d".into(), name: "p".into() });
        let edits = [
            Edit::Uncordon(node.clone()),
            Edit::Label { node: node.clone(), key: "k".into(), value: Some("v".into()) },
            Edit::Ungate(pod.clone()),
            Edit::DeletePod(pod),
            Edit::CreateVolume(Box::default()),
            Edit::PublishCapacity(Box::default()),
            Edit::InstallDriver { node, driver: "csi".into() },
        ];
        let mut draft = known.draft();
        // Twice, because a restored object must be as editable as the original.
        for edit in edits.iter().chain(&edits) {
            let before = draft.object(&edit.target());
            edit.apply(&mut draft);
            assert_ne!(objects(&draft), objects(&known), "{edit:?} changes something");
            restore(&mut draft, &edit.target(), before);
            assert_eq!(objects(&draft), objects(&known), "{edit:?} is undone");
        }
    }
}
