//! A recorded state as a course of steps: what it begins with, and what is then done to it.

use std::collections::BTreeMap;

use bindery_model::{Annotation, ClaimKey, Kind, ObjectKey, PodKey};
use serde_json::{Map, Value, json};

use super::described::{
    claim_object, class_object, like, node_object, node_status, node_taints, on_node, pod_object, provisioned_object,
    volume_object,
};
use super::{Recorded, list, text};

/// What became of the creations of a state.
#[derive(Debug, Default)]
pub struct Ledger {
    /// What the API server refused to create, and why.
    pub rejected: Vec<(String, String)>,
    /// The UIDs of all claims that the state's actions created, by name, in order.
    pub uids: BTreeMap<String, Vec<String>>,
}

impl Ledger {
    /// Notes that an object was created with a UID, or refused for a reason.
    pub fn note(&mut self, key: &ObjectKey, created: Result<&str, &str>) {
        match created {
            Ok(uid) if key.kind == Kind::Claim => {
                self.uids.entry(key.name.to_string()).or_default().push(uid.to_owned());
            }
            Ok(_) => {}
            Err(reason) => self.rejected.push((key.name.to_string(), reason.to_owned())),
        }
    }

    /// Which of the claims of that name it is that has the UID, counted from 0.
    pub(super) fn generation(&self, claim: &str, uid: &str) -> Option<usize> {
        self.uids.get(claim)?.iter().position(|known| known == uid)
    }
}

/// Something that is done to a cluster. One that is refused has no effect.
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
    /// What an external provisioner saves under that name for a claim, if anything: see [`Recorded::provisioned`].
    Provision(ObjectKey, String),
}

impl Recorded {
    /// Whether pods and nodes are about, and with them a scheduler and a garbage collector.
    pub fn has_pods(&self) -> bool {
        self.state["pods"].is_array()
    }

    /// The actions that make what stands when the controllers start.
    pub fn beginning(&self) -> Vec<Value> {
        let claims = if self.has_pods() { vec![] } else { self.creations("claims", "claim") };
        let nodes = self.creations("nodes", "node");
        [self.creations("classes", "class"), claims, self.creations("volumes", "volume"), nodes].concat()
    }

    /// What is then done, one after the other, each when everything has come to rest. Where pods are about, claims and then
    /// pods are created first.
    pub fn actions(&self) -> Vec<Value> {
        let claims = if self.has_pods() { self.creations("claims", "claim") } else { vec![] };
        let rounds = list(&self.state["rounds"]).iter().flat_map(list).cloned().collect();
        [claims, self.creations("pods", "pod"), rounds].concat()
    }

    /// The actions that create what the state has of a kind.
    fn creations(&self, field: &str, kind: &str) -> Vec<Value> {
        let create = |described: &Value| json!({"do": format!("create-{kind}"), kind: described});
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
            "create-pod" => create(pod_key, &action["pod"], |pod| pod_object(&self.id, pod, self.node_seen(pod))),
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
            other => panic!("{other:?} is no action"),
        }
    }

    /// The claim that is to be created: one that is described, or one like another of the state.
    fn claim_of(&self, action: &Value) -> Value {
        let is_meant = |claim: &&Value| claim["name"] == action["like"];
        match list(&self.state["claims"]).iter().find(is_meant) {
            Some(original) => like(original),
            None => action["claim"].clone(),
        }
    }

    /// The node that was chosen for a pod: it was sent there, or its claims were to be. Between equal nodes a scheduler throws
    /// dice.
    fn node_seen(&self, pod: &Value) -> Option<&str> {
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

    /// What an external provisioner would save for a claim as it is, if it asks for one.
    pub fn provisioned(&self, claim: &Value, name: &str) -> Option<(ObjectKey, Value)> {
        let mut volume = provisioned_object(claim, name)?;
        let node = claim["metadata"]["annotations"][Annotation::SelectedNode.key()].as_str();
        if let Some(node) = node.filter(|_| self.has_pods()) {
            volume["spec"]["nodeAffinity"] = on_node(node);
        }
        Some((volume_key(name), volume))
    }
}

/// An object is created, and then, if it is to have a phase, that is written.
fn create(key: impl Fn(&str) -> ObjectKey, described: &Value, object: impl Fn(&Value) -> Value) -> Vec<Step> {
    let key = key(text(&described["name"]));
    let create = Step::Create(key.clone(), object(described));
    let phase = described["phase"].as_str().map(|phase| Step::PatchStatus(key, json!({"status": {"phase": phase}})));
    [create].into_iter().chain(phase).collect()
}

/// Admission taints a new node, and has nobody say what it has room for: a kubelet would see to both.
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
