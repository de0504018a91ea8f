//! What the simulated kubelet does next about a pod. Synchronous, without a client.

use std::sync::Arc;

use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_engine::Input;
use bindery_model::{ClaimKey, ClaimPhase, Name, Node, Object, ObjectKey, Pod, PodKey, PodVolume};

use crate::node::SIMULATED;

/// The next action for a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodAction {
    /// Nothing: it is not on a simulated node, not scheduled, running or finished.
    Nothing,
    /// Wait for a claim that is missing, not bound, being deleted, or not owned by the pod.
    WaitForClaim(ClaimKey),
    /// Report it Running.
    Start(Arc<Pod>),
    /// Complete its deletion.
    Remove(Arc<Pod>),
}

/// The cached nodes, claims and pods.
#[derive(Debug)]
pub struct Kubelet {
    cache: Cache,
}

impl Default for Kubelet {
    fn default() -> Kubelet {
        Kubelet { cache: Cache::new(IndexPolicy::NONE) }
    }
}

impl Kubelet {
    /// Applies a watch event. Returns the changes.
    pub fn apply(&mut self, input: Input) -> Vec<Change> {
        match input {
            Input::Listed { kind, version, objects } => self.cache.listed(kind, version, objects),
            Input::Watched(object) => self.cache.watched(object).into_iter().collect(),
            Input::Deleted { key, version } => self.cache.watched_deleted(&key, version).into_iter().collect(),
            Input::Bookmark { kind, version } => {
                self.cache.watched_up_to(kind, version);
                Vec::new()
            }
            // Inputs of an engine.
            Input::Answered(..) | Input::Tick | Input::Leader(_) => Vec::new(),
        }
    }

    /// Applies the result of a write, before the watch delivers it.
    pub fn apply_write(&mut self, object: Object) {
        // The change is our own: nothing else follows from it.
        let _ = self.cache.answered(object);
    }

    /// A node, if it is simulated.
    pub fn simulated(&self, name: &Name) -> Option<&Arc<Node>> {
        self.cache.node(name).filter(|node| is_simulated(node))
    }

    /// The pods that a change of a claim or pod may affect. For nodes, see [`Kubelet::pods_on`].
    pub fn affected_pods(&self, change: &Change) -> Vec<PodKey> {
        let key: ObjectKey = change.key();
        match (&change.before, &change.after) {
            (Some(Object::Pod(_)), _) | (_, Some(Object::Pod(_))) => vec![key.pod_key()],
            (Some(Object::Claim(_)), _) | (_, Some(Object::Claim(_))) => {
                self.cache.pods_using(&key.claim_key()).map(|pod| pod.key()).collect()
            }
            (_, _) => Vec::new(),
        }
    }

    /// The pods assigned to a node.
    pub fn pods_on(&self, node: &Name) -> Vec<PodKey> {
        self.cache.node_pods().on(node).cloned().collect()
    }

    /// The next action for a pod.
    pub fn next(&self, key: &PodKey) -> PodAction {
        let Some(pod) = self.cache.pod(key).filter(|pod| self.simulated(&pod.node).is_some()) else {
            return PodAction::Nothing;
        };
        if pod.deleting {
            // After the kubelet has completed the deletion, only finalizers are left.
            return if pod.is_shut_down { PodAction::Nothing } else { PodAction::Remove(pod.clone()) };
        }
        if pod.is_finished() || pod.has_running_container {
            return PodAction::Nothing;
        }
        match pod.volumes.iter().find(|volume| !self.has_claim(pod, volume)) {
            Some(volume) => PodAction::WaitForClaim(pod.claim_key(volume)),
            None => PodAction::Start(pod.clone()),
        }
    }

    /// Whether the claim of a pod's volume is bound and usable.
    fn has_claim(&self, pod: &Pod, volume: &PodVolume) -> bool {
        self.cache.claim(&pod.claim_key(volume)).is_some_and(|claim| {
            let is_bound = claim.status.phase == ClaimPhase::Bound && claim.volume.is_some();
            is_bound && !claim.deleting && (!volume.is_ephemeral() || pod.owns(claim))
        })
    }
}

/// Whether a node has the label of simulated nodes.
pub fn is_simulated(node: &Node) -> bool {
    node.labels.get(SIMULATED).is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use bindery_model::Kind;
    use serde_json::{Value, json};

    use super::*;

    /// A kubelet with these objects cached, and two nodes: `real`, and the simulated `node-1`.
    fn kubelet_with(objects: &[(Kind, Value)]) -> Kubelet {
        let mut kubelet = Kubelet::default();
        let node = |name: &str, labels: Value| json!({"metadata": {"name": name, "uid": name, "labels": labels}});
        watch(&mut kubelet, Kind::Node, node("real", json!({})), 1);
        watch(&mut kubelet, Kind::Node, node("node-1", json!({SIMULATED: "true"})), 2);
        for (version, (kind, object)) in (3..).zip(objects) {
            watch(&mut kubelet, *kind, object.clone(), version);
        }
        kubelet
    }

    fn watch(kubelet: &mut Kubelet, kind: Kind, mut object: Value, version: u64) -> Vec<PodKey> {
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let object = Object::from_json(kind, object.to_string().as_bytes()).expect("it has a name");
        let changes = kubelet.apply(Input::Watched(object));
        changes.iter().flat_map(|change| kubelet.affected_pods(change)).collect()
    }

    fn pod(node: &str, volumes: Value) -> Value {
        json!({
            "metadata": {"name": "app", "namespace": "ns", "uid": "u-app"},
            "spec": {"nodeName": node, "volumes": volumes, "containers": [{"name": "main"}]},
            "status": {"phase": "Pending"},
        })
    }

    fn claim(name: &str, phase: &str) -> Value {
        let volume = if phase == "Bound" { json!("disk") } else { Value::Null };
        json!({
            "metadata": {"name": name, "namespace": "ns", "uid": name},
            "spec": {"volumeName": volume},
            "status": {"phase": phase},
        })
    }

    fn key() -> PodKey {
        PodKey { namespace: "ns".into(), name: "app".into() }
    }

    /// The next action for the pod, as text.
    fn next(kubelet: &Kubelet) -> String {
        match kubelet.next(&key()) {
            PodAction::Nothing => "nothing".into(),
            PodAction::WaitForClaim(claim) => format!("waits for {}", claim.name),
            PodAction::Start(_) => "start".into(),
            PodAction::Remove(_) => "remove".into(),
        }
    }

    #[test]
    fn only_pods_on_simulated_nodes_are_started() {
        let next_on = |node: &str| next(&kubelet_with(&[(Kind::Pod, pod(node, json!([])))]));
        assert_eq!(next_on("node-1"), "start");
        for other in ["real", "unknown", ""] {
            assert_eq!(next_on(other), "nothing", "{other:?}");
        }
    }

    #[test]
    fn only_pods_on_simulated_nodes_are_removed() {
        let mut deleted = pod("real", json!([]));
        deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        deleted["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        assert_eq!(next(&kubelet_with(&[(Kind::Pod, deleted.clone())])), "nothing");
        deleted["spec"]["nodeName"] = "node-1".into();
        assert_eq!(next(&kubelet_with(&[(Kind::Pod, deleted.clone())])), "remove");
        deleted["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        assert_eq!(next(&kubelet_with(&[(Kind::Pod, deleted)])), "nothing", "only finalizers are left");
    }

    #[test]
    fn node_that_loses_its_label_is_left_alone() {
        let mut kubelet = kubelet_with(&[(Kind::Pod, pod("node-1", json!([])))]);
        watch(&mut kubelet, Kind::Node, json!({"metadata": {"name": "node-1", "uid": "node-1"}}), 9);
        assert_eq!(next(&kubelet), "nothing");
    }

    #[test]
    fn running_and_finished_pods_are_left_alone() {
        let mut runs = pod("node-1", json!([]));
        runs["status"] = json!({"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]});
        assert_eq!(next(&kubelet_with(&[(Kind::Pod, runs)])), "nothing");
        for phase in ["Succeeded", "Failed"] {
            let mut over = pod("node-1", json!([]));
            over["status"]["phase"] = phase.into();
            assert_eq!(next(&kubelet_with(&[(Kind::Pod, over)])), "nothing", "{phase}");
        }
    }

    #[test]
    fn pod_waits_until_all_its_claims_are_bound() {
        let volumes = json!([
            {"name": "a", "persistentVolumeClaim": {"claimName": "one"}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "two"}},
            {"name": "c", "emptyDir": {}},
        ]);
        let mut kubelet = kubelet_with(&[(Kind::Pod, pod("node-1", volumes))]);
        assert_eq!(next(&kubelet), "waits for one");
        assert_eq!(watch(&mut kubelet, Kind::Claim, claim("one", "Pending"), 10), [key()]);
        assert_eq!(next(&kubelet), "waits for one");
        assert_eq!(watch(&mut kubelet, Kind::Claim, claim("one", "Bound"), 11), [key()]);
        assert_eq!(next(&kubelet), "waits for two");
        assert_eq!(watch(&mut kubelet, Kind::Claim, claim("other", "Bound"), 12), []);
        assert_eq!(watch(&mut kubelet, Kind::Claim, claim("two", "Bound"), 13), [key()]);
        assert_eq!(next(&kubelet), "start");
        let mut deleting = claim("two", "Bound");
        deleting["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(watch(&mut kubelet, Kind::Claim, deleting, 14), [key()]);
        assert_eq!(next(&kubelet), "waits for two", "a claim that is being deleted is not used");
        let gone = Input::Deleted { key: ClaimKey::new("ns", "one").into(), version: 15 };
        let changes = kubelet.apply(gone);
        assert_eq!(changes.iter().flat_map(|change| kubelet.affected_pods(change)).collect::<Vec<_>>(), [key()]);
        assert_eq!(next(&kubelet), "waits for one");
    }

    #[test]
    fn claim_of_an_ephemeral_volume_must_be_owned_by_the_pod() {
        let volumes = json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]);
        let mut kubelet = kubelet_with(&[(Kind::Pod, pod("node-1", volumes))]);
        assert_eq!(next(&kubelet), "waits for app-scratch");
        let mut owned = claim("app-scratch", "Bound");
        watch(&mut kubelet, Kind::Claim, owned.clone(), 10);
        assert_eq!(next(&kubelet), "waits for app-scratch", "the pod does not own it");
        owned["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "app", "uid": "u-app", "controller": true}]);
        watch(&mut kubelet, Kind::Claim, owned, 11);
        assert_eq!(next(&kubelet), "start");
    }
}
