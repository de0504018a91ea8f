//! A recorded state: the objects it describes, and its actions.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_binder::Binder;
use bindery_engine::Config;
use bindery_sim::World;
use bindery_sim::cluster::{self, Refused};
use bindery_sim::run::{Restart, Run};
use bindery_verdict::{Notice, RuleSet};
use bindery_volumes::{Annotation, ClaimKey, Kind, ObjectKey};
use serde_json::{Map, Value, json};

/// How long everything is left to itself after each action: some resyncs, where there are any, and many retries.
const SETTLE: Duration = Duration::from_secs(40);

/// How long at the end: whatever would still change after ten minutes is a defect.
const SETTLE_LAST: Duration = Duration::from_secs(600);

/// So long that it never comes.
const NEVER: Duration = Duration::from_secs(1_000_000);

const STALE_UID: &str = "00000000-0000-0000-0000-00000000dead";

/// How a state is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By one engine that never looks at everything again: what concerns it must wake it.
    Straight,
    /// The same, by an engine that is replaced after so many effects, before word of the last one comes back.
    RestartAfter(usize),
    /// By a new engine before and after every action, each of which looks at everything again and again.
    NewEngineEachTime,
}

/// What a state was brought to.
pub struct End {
    /// The objects.
    pub world: World,
    /// What was published.
    pub notices: Vec<Notice>,
    /// What the API server refused to create, and why.
    pub rejected: Vec<(String, &'static str)>,
    /// The UIDs of all claims there were, by name, in order.
    pub uids: BTreeMap<String, Vec<String>>,
}

/// Carries out a state.
pub fn carry_out(state: &Value, way: Way) -> End {
    let (mut end, world) = End::begin(state);
    let rules = || -> Box<dyn RuleSet + Send> { Box::new(Binder::default()) };
    let restart = if let Way::RestartAfter(effects) = way { Restart::After(effects) } else { Restart::Never };
    let mut config = Config::default();
    if way != Way::NewEngineEachTime {
        config.resync = NEVER;
    }
    let mut run = Run::start_with(config, world, &rules, restart);
    cluster::settle(&mut run, SETTLE);
    for action in list(&state["rounds"]).iter().flat_map(list) {
        if way == Way::NewEngineEachTime {
            run.replace_engine();
            cluster::settle(&mut run, SETTLE);
        }
        // An action that is refused has no effect.
        let _ = end.act(&mut run.world, state, action);
        if way == Way::NewEngineEachTime {
            run.replace_engine();
        }
        cluster::settle(&mut run, SETTLE);
    }
    cluster::settle(&mut run, SETTLE_LAST);
    end.world = run.world;
    end.notices = run.report.notices;
    end
}

impl End {
    /// The objects that a state begins with.
    pub fn begin(state: &Value) -> (End, World) {
        let mut end = End { world: cluster::empty(), notices: Vec::new(), rejected: Vec::new(), uids: BTreeMap::new() };
        let mut world = cluster::empty();
        for class in list(&state["classes"]) {
            let key = ObjectKey::cluster(Kind::Class, text(&class["name"]));
            cluster::create(&mut world, &key, class_object(class)).expect("every class is new");
        }
        for claim in list(&state["claims"]) {
            end.create_claim(&mut world, claim);
        }
        for volume in list(&state["volumes"]) {
            end.create_volume(&mut world, volume);
        }
        (end, world)
    }

    fn create_claim(&mut self, world: &mut World, claim: &Value) {
        let key = claim_key(text(&claim["name"]));
        self.create(world, &key, claim_object(claim), &claim["phase"]);
    }

    fn create_volume(&mut self, world: &mut World, volume: &Value) {
        let key = ObjectKey::volume(text(&volume["name"]));
        self.create(world, &key, self.volume_object(volume), &volume["phase"]);
    }

    fn create(&mut self, world: &mut World, key: &ObjectKey, object: Value, phase: &Value) {
        match cluster::create(world, key, object) {
            Ok(uid) if key.kind == Kind::Claim => self.uids.entry(key.name.to_string()).or_default().push(uid),
            Ok(_) => {}
            Err(refused) => return self.rejected.push((key.name.to_string(), refused.reason())),
        }
        if phase.is_string() {
            cluster::patch(world, key, &json!({"status": {"phase": phase}})).expect("a phase can be written");
        }
    }

    /// Does what an action says.
    pub fn act(&mut self, world: &mut World, state: &Value, action: &Value) -> Result<(), Refused> {
        let name = || text(&action["name"]);
        let volume = || ObjectKey::volume(name());
        match text(&action["do"]) {
            "delete-claim" => cluster::delete(world, &claim_key(name())),
            "delete-volume" => cluster::delete(world, &volume()),
            "create-claim" => {
                let original = list(&state["claims"]).iter().find(|claim| claim["name"] == action["like"]);
                self.create_claim(world, &like(original.expect("there is such a claim")));
                Ok(())
            }
            "create-volume" => {
                self.create_volume(world, &action["volume"]);
                Ok(())
            }
            "annotate-claim" => {
                let annotations = Map::from_iter([(text(&action["key"]).to_owned(), action["value"].clone())]);
                cluster::patch(world, &claim_key(name()), &json!({"metadata": {"annotations": annotations}}))
            }
            "clear-claimref" => cluster::patch(world, &volume(), &json!({"spec": {"claimRef": null}})),
            "set-reclaim" => {
                let policy = &action["value"];
                cluster::patch(world, &volume(), &json!({"spec": {"persistentVolumeReclaimPolicy": policy}}))
            }
            "provision" => provision(world, &claim_key(name()), text(&action["volume"])),
            other => panic!("{other:?} is no action"),
        }
    }

    fn volume_object(&self, volume: &Value) -> Value {
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
            spec["claimRef"] = claim_ref(claim, self.uid(claim, text(&volume["claimRef"]["uid"])));
        }
        let mut metadata = json!({"name": name, "annotations": volume["ann"], "labels": volume["labels"]});
        copy(volume, &mut metadata, &["finalizers"]);
        json!({"metadata": metadata, "spec": spec})
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

/// Saves what an external provisioner would save for a claim that asks for one.
fn provision(world: &mut World, key: &ObjectKey, name: &str) -> Result<(), Refused> {
    let claim = world.get(key).ok_or(Refused::NotFound)?;
    let provisioner = claim["metadata"]["annotations"][Annotation::StorageProvisioner.key()].as_str();
    let Some(provisioner) = provisioner.filter(|_| claim["spec"]["volumeName"].is_null()) else { return Ok(()) };
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
            "claimRef": claim_ref(&key.name, claim["metadata"]["uid"].as_str()),
        },
    });
    cluster::create(world, &ObjectKey::volume(name), volume).map(|_| ())
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

/// A list; none is an empty one.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text; none is an empty one.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
