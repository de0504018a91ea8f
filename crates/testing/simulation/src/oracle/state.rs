//! The steps of a recorded state: its initial objects, and the actions of users.

use std::collections::BTreeMap;

use bindery_model::{Annotation, ClaimKey, Kind, ObjectKey, PodKey};
use serde_json::{Map, Value, json};

use super::objects::{
    claim_object, class_object, like, node_object, node_status, node_taints, on_node, pod_object, provisioned_object,
    volume_object,
};
use super::{Recorded, list, text};

/// The results of creating the objects of a state.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The objects that the API server rejected, and the reasons.
    pub rejected: Vec<(String, String)>,
    /// The UIDs of all claims that the state's actions created, by name, in order.
    pub uids: BTreeMap<String, Vec<String>>,
}

impl Ledger {
    /// Notes that an object was created with a UID, or rejected for a reason.
    pub fn note(&mut self, key: &ObjectKey, created: Result<&str, &str>) {
        match created {
            Ok(uid) if key.kind == Kind::Claim => {
                self.uids.entry(key.name.to_string()).or_default().push(uid.to_owned());
            }
            Ok(_) => {}
            Err(reason) => self.rejected.push((key.name.to_string(), reason.to_owned())),
        }
    }

    /// The index of the claim with the UID among the claims of that name.
    pub(super) fn generation(&self, claim: &str, uid: &str) -> Option<usize> {
        self.uids.get(claim)?.iter().position(|known| known == uid)
    }
}

/// A change of the cluster. A rejected one has no effect.
#[derive(Debug)]
pub enum Step {
    /// An object is created. The outcome is noted in the [`Ledger`].
    Create(ObjectKey, Value),
    /// An object is changed by a merge patch.
    Patch(ObjectKey, Value),
    /// An object's status is changed by a merge patch.
    PatchStatus(ObjectKey, Value),
    /// An object is deleted, at once if it is a pod.
    Delete(ObjectKey),
    /// An external provisioner creates a volume of that name for a claim: see
    /// [`Recorded::provisioned`].
    Provision(ObjectKey, String),
}

impl Recorded {
    /// Whether the state has pods and nodes, and therefore a scheduler and a garbage collector.
    pub fn has_pods(&self) -> bool {
        self.state["pods"].is_array()
    }

    /// The actions that create the objects before the controllers start.
    pub fn beginning(&self) -> Vec<Value> {
        let claims = if self.has_pods() { vec![] } else { self.creations("claims", "claim") };
        let nodes = self.creations("nodes", "node");
        [self.creations("classes", "class"), claims, self.creations("volumes", "volume"), nodes].concat()
    }

    /// The actions of users, in order, each when the cluster is stable. In a state with pods,
    /// claims and then pods are created first.
    pub fn actions(&self) -> Vec<Value> {
        let claims = if self.has_pods() { self.creations("claims", "claim") } else { vec![] };
        let rounds = list(&self.state["rounds"]).iter().flat_map(list).cloned().collect();
        [claims, self.creations("pods", "pod"), rounds].concat()
    }

    /// The actions that create the objects of a kind.
    fn creations(&self, field: &str, kind: &str) -> Vec<Value> {
        let create = |objects: &Value| json!({"do": format!("create-{kind}"), kind: objects});
        list(&self.state[field]).iter().map(create).collect()
    }

    /// The steps of an action.
    pub fn steps(&self, action: &Value, ledger: &Ledger) -> Vec<Step> {
        let name = text(&action["name"]);
        let (claim, volume, pod) = (|| claim_key(name), || volume_key(name), || pod_key(name));
        match text(&action["do"]) {
            "create-class" => create(class_key, &action["class"], class_object),
            "create-claim" => create(claim_key, &self.claim_of(action), claim_object),
            "create-volume" => create(volume_key, &action["volume"], |volume| volume_object(volume, ledger)),
            "create-pod" => create(pod_key, &action["pod"], |pod| pod_object(&self.id, pod, self.recorded_node(pod))),
            "create-node" => create_node(&self.id, &action["node"]),
            "delete-claim" => vec![Step::Delete(claim())],
            "delete-volume" => vec![Step::Delete(volume())],
            "delete-pod" => vec![Step::Delete(pod())],
            "finish-pod" => vec![Step::PatchStatus(pod(), json!({"status": {"phase": "Succeeded"}}))],
            "annotate-claim" => {
                let annotations = Map::from_iter([(text(&action["key"]).to_owned(), action["value"].clone())]);
                vec![Step::Patch(claim(), json!({"metadata": {"annotations": annotations}}))]
            }
            "resize-claim" => {
                let requests = json!({"storage": action["request"]});
                vec![Step::Patch(claim(), json!({"spec": {"resources": {"requests": requests}}}))]
            }
            "clear-claimref" => vec![Step::Patch(volume(), json!({"spec": {"claimRef": null}}))],
            "set-reclaim" => {
                vec![Step::Patch(volume(), json!({"spec": {"persistentVolumeReclaimPolicy": action["value"]}}))]
            }
            "provision" => vec![Step::Provision(claim(), text(&action["volume"]).to_owned())],
            other => panic!("unknown action {other:?}"),
        }
    }

    /// The claim to create: a new one, or a copy of another claim of the state.
    fn claim_of(&self, action: &Value) -> Value {
        let is_original = |claim: &&Value| claim["name"] == action["like"];
        match list(&self.state["claims"]).iter().find(is_original) {
            Some(original) => like(original),
            None => action["claim"].clone(),
        }
    }

    /// The node that the recorded scheduler chose for a pod or for its claims. The choice between
    /// equal nodes is random, so it is repeated here.
    fn recorded_node(&self, pod: &Value) -> Option<&str> {
        let (seen, name) = (&self.outcomes[0], text(&pod["name"]));
        let is_scheduled = |event: &&Value| event[1] == *name && event[3] == "Scheduled";
        let scheduled = list(&seen["events"]).iter().find(is_scheduled).map(|event| text(&event[4]));
        let ephemeral = list(&pod["ephemeral"]).iter().map(|volume| format!("{name}-{}", text(&volume["name"])));
        let claims = list(&pod["claims"]).iter().map(|claim| text(claim).to_owned()).chain(ephemeral);
        let selected = |claim: String| seen["claims"][claim]["ann"][Annotation::SelectedNode.key()].as_str();
        // "Successfully assigned NAMESPACE/POD to NODE"
        let node = scheduled.and_then(|message| message.rsplit(' ').next());
        node.or_else(|| claims.into_iter().find_map(selected))
    }

    /// The volume that an external provisioner would create for a claim, if the claim requests one.
    pub fn provisioned(&self, claim: &Value, name: &str) -> Option<(ObjectKey, Value)> {
        let mut volume = provisioned_object(claim, name)?;
        let node = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str();
        if let Some(node) = node.filter(|_| self.has_pods()) {
            volume["spec"]["nodeAffinity"] = on_node(node);
        }
        Some((volume_key(name), volume))
    }
}

/// Creates an object and sets its phase, if it has one.
fn create(key: impl Fn(&str) -> ObjectKey, objects: &Value, object: impl Fn(&Value) -> Value) -> Vec<Step> {
    let key = key(text(&objects["name"]));
    let create = Step::Create(key.clone(), object(objects));
    let phase = objects["phase"].as_str().map(|phase| Step::PatchStatus(key, json!({"status": {"phase": phase}})));
    [create].into_iter().chain(phase).collect()
}

/// Admission taints a new node, which has no allocatable resources: normally a kubelet fixes both.
fn create_node(state: &str, node: &Value) -> Vec<Step> {
    let key = ObjectKey::cluster(Kind::Node, text(&node["name"]));
    vec![
        Step::Create(key.clone(), node_object(state, node)),
        Step::Patch(key.clone(), json!({"spec": {"taints": node_taints(node)}})),
        Step::PatchStatus(key, json!({"status": node_status()})),
    ]
}

fn claim_key(name: &str) -> ObjectKey {
    ClaimKey { namespace: "default".into(), name: name.into() }.into()
}

fn pod_key(name: &str) -> ObjectKey {
    PodKey { namespace: "default".into(), name: name.into() }.into()
}

fn volume_key(name: &str) -> ObjectKey {
    ObjectKey::volume(name)
}

fn class_key(name: &str) -> ObjectKey {
    ObjectKey::cluster(Kind::Class, name)
}
