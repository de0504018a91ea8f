//! A recorded state: the objects it describes, and its actions.

use std::collections::BTreeMap;

use bindery_volumes::{Annotation, ClaimKey, Kind, ObjectKey};
use serde_json::{Map, Value, json};

use super::{Recorded, list, text};

const STALE_UID: &str = "00000000-0000-0000-0000-00000000dead";

/// What became of the creations of a state.
#[derive(Debug, Default)]
pub struct Ledger {
    /// What the API server refused to create, and why.
    pub rejected: Vec<(String, String)>,
    /// The UIDs of all claims there were, by name, in order.
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

    /// The UID that a volume's reference is written with.
    fn uid(&self, claim: &str, which: &str) -> Option<&str> {
        match which {
            "claim" => self.uids.get(claim).and_then(|uids| uids.last()).map(String::as_str),
            "stale" => Some(STALE_UID),
            _ => None,
        }
    }
}

/// Something that is done to a cluster. One that is refused has no effect.
#[derive(Debug)]
pub enum Step {
    /// An object is created, and if there is a phase, that is then written. The outcome is noted in the [`Ledger`].
    Create(ObjectKey, Value, Option<String>),
    /// An object is changed by a merge patch.
    Patch(ObjectKey, Value),
    /// An object is deleted.
    Delete(ObjectKey),
    /// What an external provisioner saves under that name for a claim, if anything: see [`provisioned`].
    Provision(ObjectKey, String),
}

/// What a state begins with, in order. What is made of one depends on what became of those before.
pub fn creations(state: &Value) -> impl Iterator<Item = Box<dyn Fn(&Ledger) -> Step + Send + '_>> {
    let classes = list(&state["classes"]).iter().map(|class| -> Box<dyn Fn(&Ledger) -> Step + Send> {
        let key = ObjectKey::cluster(Kind::Class, text(&class["name"]));
        Box::new(move |_| Step::Create(key.clone(), class_object(class), None))
    });
    let claims = list(&state["claims"])
        .iter()
        .map(|claim| -> Box<dyn Fn(&Ledger) -> Step + Send> { Box::new(|_| create_claim(claim)) });
    let volumes = list(&state["volumes"])
        .iter()
        .map(|volume| -> Box<dyn Fn(&Ledger) -> Step + Send> { Box::new(|ledger| create_volume(volume, ledger)) });
    classes.chain(claims).chain(volumes)
}

impl Recorded {
    /// The step that an action is.
    pub fn step(&self, action: &Value, ledger: &Ledger) -> Step {
        let claim = || claim_key(text(&action["name"]));
        let volume = || ObjectKey::volume(text(&action["name"]));
        match text(&action["do"]) {
            "delete-claim" => Step::Delete(claim()),
            "delete-volume" => Step::Delete(volume()),
            "create-claim" => {
                let original = list(&self.state["claims"]).iter().find(|claim| claim["name"] == action["like"]);
                create_claim(&like(original.expect("there is such a claim")))
            }
            "create-volume" => create_volume(&action["volume"], ledger),
            "annotate-claim" => {
                let annotations = Map::from_iter([(text(&action["key"]).to_owned(), action["value"].clone())]);
                Step::Patch(claim(), json!({"metadata": {"annotations": annotations}}))
            }
            "clear-claimref" => Step::Patch(volume(), json!({"spec": {"claimRef": null}})),
            "set-reclaim" => Step::Patch(volume(), json!({"spec": {"persistentVolumeReclaimPolicy": action["value"]}})),
            "provision" => Step::Provision(claim(), text(&action["volume"]).to_owned()),
            other => panic!("{other:?} is no action"),
        }
    }
}

/// What an external provisioner would save for a claim as it is, if it asks for one.
pub fn provisioned(claim: &Value, name: &str) -> Option<(ObjectKey, Value)> {
    let provisioner = claim["metadata"]["annotations"][Annotation::StorageProvisioner.key()].as_str();
    let provisioner = provisioner.filter(|_| claim["spec"]["volumeName"].is_null())?;
    let spec = &claim["spec"];
    let driver = provisioner.split('/').next().unwrap_or_default();
    let volume = json!({
        "metadata": {"name": name, "annotations": {Annotation::ProvisionedBy.key(): provisioner}},
        "spec": {
            "capacity": spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "volumeMode": spec["volumeMode"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": spec["storageClassName"].as_str().unwrap_or_default(),
            "csi": {"driver": driver, "volumeHandle": name},
            "claimRef": claim_ref(text(&claim["metadata"]["name"]), claim["metadata"]["uid"].as_str()),
        },
    });
    Some((ObjectKey::volume(name), volume))
}

fn create_claim(claim: &Value) -> Step {
    Step::Create(claim_key(text(&claim["name"])), claim_object(claim), phase(claim))
}

fn create_volume(volume: &Value, ledger: &Ledger) -> Step {
    Step::Create(ObjectKey::volume(text(&volume["name"])), volume_object(volume, ledger), phase(volume))
}

fn phase(object: &Value) -> Option<String> {
    object["phase"].as_str().map(str::to_owned)
}

fn volume_object(volume: &Value, ledger: &Ledger) -> Value {
    let name = text(&volume["name"]);
    let mut spec = json!({
        "capacity": {"storage": volume["capacity"]},
        "accessModes": volume["accessModes"],
        "persistentVolumeReclaimPolicy": volume["reclaim"],
        "storageClassName": volume["class"],
    });
    copy(volume, &mut spec, &["volumeMode"]);
    let (source, value) = match text(&volume["source"]) {
        "csi" => ("csi", json!({"driver": "ex.example.com", "volumeHandle": name})),
        "hostPath" => ("hostPath", json!({"path": format!("/tmp/oracle/{name}")})),
        "nfs" => ("nfs", json!({"server": "192.0.2.1", "path": format!("/{name}")})),
        "local" => ("local", json!({"path": format!("/mnt/{name}")})),
        other => panic!("{other:?} is no source"),
    };
    spec[source] = value;
    if source == "local" {
        let hostname = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]});
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}});
    }
    if let Some(claim) = volume["claimRef"]["name"].as_str() {
        spec["claimRef"] = claim_ref(claim, ledger.uid(claim, text(&volume["claimRef"]["uid"])));
    }
    let mut metadata = json!({"name": name, "annotations": volume["ann"], "labels": volume["labels"]});
    copy(volume, &mut metadata, &["finalizers"]);
    json!({"metadata": metadata, "spec": spec})
}

/// A claim like another, as it is created anew: it names no volume, and of its annotations only the selected node is kept.
fn like(claim: &Value) -> Value {
    let node = Annotation::SelectedNode.key();
    let mut claim = claim.clone();
    claim["ann"] = claim["ann"][node].as_str().map_or(json!({}), |name| json!({node: name}));
    claim["phase"] = Value::Null;
    claim["volumeName"] = Value::Null;
    claim
}

fn class_object(class: &Value) -> Value {
    let mut object = json!({"metadata": {"name": class["name"]}});
    copy(class, &mut object, &["provisioner", "volumeBindingMode", "reclaimPolicy"]);
    object
}

fn claim_object(claim: &Value) -> Value {
    let mut spec =
        json!({"accessModes": claim["accessModes"], "resources": {"requests": {"storage": claim["request"]}}});
    if claim["class"].is_string() {
        spec["storageClassName"] = claim["class"].clone();
    }
    copy(claim, &mut spec, &["volumeMode", "selector", "volumeName"]);
    let metadata = json!({"namespace": "default", "name": claim["name"], "annotations": claim["ann"]});
    json!({"metadata": metadata, "spec": spec})
}

fn claim_ref(name: &str, uid: Option<&str>) -> Value {
    let mut claim_ref =
        json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default", "name": name});
    if let Some(uid) = uid {
        claim_ref["uid"] = uid.into();
    }
    claim_ref
}

fn claim_key(name: &str) -> ObjectKey {
    ClaimKey { namespace: "default".into(), name: name.into() }.into()
}

/// Copies the fields that are there.
fn copy(from: &Value, to: &mut Value, fields: &[&str]) {
    for field in fields.iter().filter(|field| !from[**field].is_null()) {
        to[*field] = from[*field].clone();
    }
}
