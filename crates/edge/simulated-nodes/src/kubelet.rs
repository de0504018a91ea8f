//! What the fake kubelet does next about a pod. Synchronous, and without a client: what is known goes in, the next step comes out.

use std::sync::Arc;

use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_engine::Input;
use bindery_model::{ClaimKey, ClaimPhase, Name, Node, Object, ObjectKey, Pod, PodKey, PodVolume};

use crate::shape::SIMULATED;

/// What is to be done about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing: it is none of ours, it waits for a node, it runs, or it is over.
    Rest,
    /// It waits for a claim that is not there, not bound, about to go, or another's.
    WaitsFor(ClaimKey),
    /// It has all that it needs, and is to run.
    Start(Arc<Pod>),
    /// Somebody deleted it, and its node has yet to let go of it.
    Remove(Arc<Pod>),
}

/// What the fake kubelet knows: nodes, claims and pods.
#[derive(Debug)]
pub struct Kubelet {
    mirror: Cache,
}

impl Default for Kubelet {
    fn default() -> Kubelet {
        Kubelet { mirror: Cache::new(IndexPolicy::NONE) }
    }
}

impl Kubelet {
    /// Takes in what happened. Returns what changed by it.
    pub fn take(&mut self, input: Input) -> Vec<Change> {
        match input {
            Input::Listed { kind, version, objects } => self.mirror.listed(kind, version, objects),
            Input::Watched(object) => self.mirror.watched(object).into_iter().collect(),
            Input::Deleted { key, version } => self.mirror.watched_deleted(&key, version).into_iter().collect(),
            Input::Bookmark { kind, version } => {
                self.mirror.watched_up_to(kind, version);
                Vec::new()
            }
            // These are an engine's.
            Input::Answered(..) | Input::Tick | Input::Leader(_) => Vec::new(),
        }
    }

    /// Takes in what a write made of an object, which the watch has yet to tell.
    pub fn wrote(&mut self, object: Object) {
        // Whatever changed by it is what was meant to.
        let _ = self.mirror.answered(object);
    }

    /// A node, if it is simulated.
    pub fn simulated(&self, name: &Name) -> Option<&Arc<Node>> {
        self.mirror.node(name).filter(|node| is_simulated(node))
    }

    /// The pods that a change of a claim or of a pod may concern. Nodes are met first: see [`Kubelet::pods_on`].
    pub fn concerned(&self, change: &Change) -> Vec<PodKey> {
        let key: ObjectKey = change.key();
        match (&change.before, &change.after) {
            (Some(Object::Pod(_)), _) | (_, Some(Object::Pod(_))) => vec![key.pod_key()],
            (Some(Object::Claim(_)), _) | (_, Some(Object::Claim(_))) => {
                self.mirror.pods_using(&key.claim_key()).map(|pod| pod.key()).collect()
            }
            (_, _) => Vec::new(),
        }
    }

    /// The pods that a node was given.
    pub fn pods_on(&self, node: &Name) -> Vec<PodKey> {
        self.mirror.node_pods().on(node).cloned().collect()
    }

    /// What is to be done about a pod.
    pub fn next(&self, key: &PodKey) -> Next {
        let Some(pod) = self.mirror.pod(key).filter(|pod| self.simulated(&pod.node).is_some()) else {
            return Next::Rest;
        };
        if pod.deleting {
            // Once it is shut down, only finalizers hold it, and they are others'.
            return if pod.is_shut_down { Next::Rest } else { Next::Remove(pod.clone()) };
        }
        if pod.is_finished() || pod.has_running_container {
            return Next::Rest;
        }
        match pod.volumes.iter().find(|volume| !self.has_claim(pod, volume)) {
            Some(volume) => Next::WaitsFor(pod.claim_key(volume)),
            None => Next::Start(pod.clone()),
        }
    }

    /// Whether the claim of a pod's volume is there to be used.
    fn has_claim(&self, pod: &Pod, volume: &PodVolume) -> bool {
        self.mirror.claim(&pod.claim_key(volume)).is_some_and(|claim| {
            let is_bound = claim.status.phase == ClaimPhase::Bound && claim.volume.is_some();
            is_bound && !claim.deleting && (!volume.is_ephemeral() || pod.owns(claim))
        })
    }
}

/// Whether a node says of itself that it is simulated.
pub fn is_simulated(node: &Node) -> bool {
    node.labels.get(SIMULATED).is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use bindery_model::Kind;
    use serde_json::{Value, json};

    use super::*;

    /// A kubelet that was told of these objects, in this order; node `real` is a real one, and `node-1` simulated.
    fn knowing(objects: &[(Kind, Value)]) -> Kubelet {
        let mut kubelet = Kubelet::default();
        let node = |name: &str, labels: Value| json!({"metadata": {"name": name, "uid": name, "labels": labels}});
        tell(&mut kubelet, Kind::Node, node("real", json!({})), 1);
        tell(&mut kubelet, Kind::Node, node("node-1", json!({SIMULATED: "true"})), 2);
        for (version, (kind, object)) in (3..).zip(objects) {
            tell(&mut kubelet, *kind, object.clone(), version);
        }
        kubelet
    }

    fn tell(kubelet: &mut Kubelet, kind: Kind, mut object: Value, version: u64) -> Vec<PodKey> {
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let object = Object::from_json(kind, object.to_string().as_bytes()).expect("it has a name");
        let changes = kubelet.take(Input::Watched(object));
        changes.iter().flat_map(|change| kubelet.concerned(change)).collect()
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

    /// What is done about the pod, in a word or two.
    fn next(kubelet: &Kubelet) -> String {
        match kubelet.next(&key()) {
            Next::Rest => "rests".into(),
            Next::WaitsFor(claim) => format!("waits for {}", claim.name),
            Next::Start(_) => "starts".into(),
            Next::Remove(_) => "goes".into(),
        }
    }

    #[test]
    fn a_pod_of_a_simulated_node_starts_and_no_other() {
        let next_on = |node: &str| next(&knowing(&[(Kind::Pod, pod(node, json!([])))]));
        assert_eq!(next_on("node-1"), "starts");
        for other in ["real", "unknown", ""] {
            assert_eq!(next_on(other), "rests", "{other:?}");
        }
    }

    #[test]
    fn a_pod_of_another_node_is_not_removed_either() {
        let mut deleted = pod("real", json!([]));
        deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        deleted["metadata"]["deletionGracePeriodSeconds"] = 30.into();
        assert_eq!(next(&knowing(&[(Kind::Pod, deleted.clone())])), "rests");
        deleted["spec"]["nodeName"] = "node-1".into();
        assert_eq!(next(&knowing(&[(Kind::Pod, deleted.clone())])), "goes");
        deleted["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        assert_eq!(next(&knowing(&[(Kind::Pod, deleted)])), "rests", "only finalizers hold it");
    }

    #[test]
    fn a_node_that_is_no_longer_simulated_is_left_alone() {
        let mut kubelet = knowing(&[(Kind::Pod, pod("node-1", json!([])))]);
        tell(&mut kubelet, Kind::Node, json!({"metadata": {"name": "node-1", "uid": "node-1"}}), 9);
        assert_eq!(next(&kubelet), "rests");
    }

    #[test]
    fn a_pod_that_runs_or_is_over_rests() {
        let mut runs = pod("node-1", json!([]));
        runs["status"] = json!({"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]});
        assert_eq!(next(&knowing(&[(Kind::Pod, runs)])), "rests");
        for phase in ["Succeeded", "Failed"] {
            let mut over = pod("node-1", json!([]));
            over["status"]["phase"] = phase.into();
            assert_eq!(next(&knowing(&[(Kind::Pod, over)])), "rests", "{phase}");
        }
    }

    #[test]
    fn a_pod_waits_until_each_of_its_claims_is_bound() {
        let volumes = json!([
            {"name": "a", "persistentVolumeClaim": {"claimName": "one"}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "two"}},
            {"name": "c", "emptyDir": {}},
        ]);
        let mut kubelet = knowing(&[(Kind::Pod, pod("node-1", volumes))]);
        assert_eq!(next(&kubelet), "waits for one");
        assert_eq!(tell(&mut kubelet, Kind::Claim, claim("one", "Pending"), 10), [key()]);
        assert_eq!(next(&kubelet), "waits for one");
        assert_eq!(tell(&mut kubelet, Kind::Claim, claim("one", "Bound"), 11), [key()]);
        assert_eq!(next(&kubelet), "waits for two");
        assert_eq!(tell(&mut kubelet, Kind::Claim, claim("other", "Bound"), 12), []);
        assert_eq!(tell(&mut kubelet, Kind::Claim, claim("two", "Bound"), 13), [key()]);
        assert_eq!(next(&kubelet), "starts");
        let mut going = claim("two", "Bound");
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(tell(&mut kubelet, Kind::Claim, going, 14), [key()]);
        assert_eq!(next(&kubelet), "waits for two", "a claim that goes is not begun with");
        let gone = Input::Deleted { key: ClaimKey::new("ns", "one").into(), version: 15 };
        let changes = kubelet.take(gone);
        assert_eq!(changes.iter().flat_map(|change| kubelet.concerned(change)).collect::<Vec<_>>(), [key()]);
        assert_eq!(next(&kubelet), "waits for one");
    }

    #[test]
    fn the_claim_of_an_ephemeral_volume_must_be_the_pods_own() {
        let volumes = json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]);
        let mut kubelet = knowing(&[(Kind::Pod, pod("node-1", volumes))]);
        assert_eq!(next(&kubelet), "waits for app-scratch");
        let mut made = claim("app-scratch", "Bound");
        tell(&mut kubelet, Kind::Claim, made.clone(), 10);
        assert_eq!(next(&kubelet), "waits for app-scratch", "somebody else made it");
        made["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "app", "uid": "u-app", "controller": true}]);
        tell(&mut kubelet, Kind::Claim, made, 11);
        assert_eq!(next(&kubelet), "starts");
    }
}
