//! A storage behind the world: makes and removes as it is told to, and remembers all that it was asked for.

use std::collections::{BTreeMap, VecDeque};

use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::{Accessibility, Failure, FailureEffect, Operation, OperationOutput, ProvisionRequest};
use serde_json::{Value, json};

/// What a storage says when it is asked to make or to remove something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    /// It is done.
    Done,
    /// It is not done.
    Fails(FailureEffect),
    /// It is done, and nobody hears so.
    DoneUnheard,
}

/// What was asked for under a name: where, and with what that was found out before.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    node: Option<Name>,
    topology: Option<Accessibility>,
    found: Value,
}

impl Asked {
    /// What an order asks for, with what was found out for it.
    pub fn of(order: &ProvisionRequest, prepared: &Value) -> Asked {
        let topology = order.topology.clone().ok().flatten();
        Asked { node: order.node.clone(), topology, found: prepared["found"].clone() }
    }
}

/// The objects that whoever hands orders to a storage reads live before it does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen<'a> {
    /// The class of the claim that storage is made for.
    pub class: Option<&'a Value>,
    /// The volume behind which it is removed.
    pub volume: Option<&'a Value>,
}

impl Seen<'_> {
    /// Looks at how things stand. An operation that is not about them any more is not even tried.
    pub fn find<'a>(operation: &Operation, objects: &'a BTreeMap<ObjectKey, Value>) -> Result<Seen<'a>, Failure> {
        let untried = |why: &str| Failure::new(why).with(FailureEffect::NotAttempted);
        if operation.is_in_tree() {
            return Ok(Seen::default());
        }
        match operation {
            Operation::Prepare(order) | Operation::CreateStorage(order, _) => {
                let claim = objects.get(&ObjectKey::from(order.claim.clone()));
                if claim.is_none_or(|claim| claim["metadata"]["uid"] != *order.uid.as_str()) {
                    return Err(untried("it is another claim by now, or gone"));
                }
                let is_asked = matches!(operation, Operation::CreateStorage(..));
                if is_asked && claim.is_none_or(|claim| !bindery_provisioner::is_current(order, claim)) {
                    return Err(untried("somebody else has asked, or knows what there is"));
                }
                let class = objects.get(&ObjectKey::cluster(Kind::Class, order.class.clone()));
                Ok(Seen { class: Some(class.ok_or_else(|| untried("the class is gone"))?), volume: None })
            }
            Operation::DeleteStorage(proof, _) => {
                let seen = proof.volume();
                let volume = objects.get(&ObjectKey::volume(seen.name.clone()));
                let volume = volume.ok_or_else(|| untried("there is no such volume"))?;
                let metadata = &volume["metadata"];
                if metadata["uid"] != *seen.uid.as_str() || metadata["resourceVersion"] != *seen.version.to_string() {
                    return Err(untried("the volume has changed since it was found released"));
                }
                Ok(Seen { class: None, volume: Some(volume) })
            }
            Operation::DiscardStorage(..) | Operation::Recycle(_) => Ok(Seen::default()),
        }
    }
}

/// A storage.
#[derive(Debug, Clone, Default)]
pub struct Backend {
    /// What it holds: the handles, by the name of the volume that each was made for.
    pub holds: BTreeMap<String, String>,
    /// What it says, one after the other, when asked what can be asked for. FailureEffect the last, all is well.
    pub prepares: VecDeque<FailureEffect>,
    /// When asked to make something.
    pub makes: VecDeque<Says>,
    /// When asked to remove something.
    pub removes: VecDeque<Says>,
    /// How often something was made anew.
    pub made: usize,
    /// What was asked for, by name, where it is there or nobody knows.
    asked: BTreeMap<String, Asked>,
    /// The names under which something else was asked for than before, while that was there or nobody knew.
    pub contradicted: Vec<String>,
    /// Whether every volume gets a handle of its own, even where it is made again.
    pub forgets_names: bool,
}

impl Backend {
    /// Does what it is asked to. `None` when it is not a storage's to do.
    pub fn operate(&mut self, operation: &Operation, seen: Seen<'_>) -> Option<Result<OperationOutput, Failure>> {
        if operation.is_in_tree() {
            return None;
        }
        Some(match operation {
            Operation::Prepare(order) => match (&order.topology, self.prepares.pop_front()) {
                (Err(failure), _) => Err(failure.clone()),
                (Ok(_), Some(after)) => Err(Failure::new("told to fail").with(after)),
                (Ok(_), None) => Ok(OperationOutput::of(order.prepared(parameters(seen.class)))),
            },
            Operation::CreateStorage(order, prepared) => self.make(order, prepared, seen.class),
            Operation::DiscardStorage(_, made) => self.remove(made),
            Operation::DeleteStorage(..) => self.remove(seen.volume.unwrap_or(&Value::Null)),
            Operation::Recycle(_) => return None,
        })
    }

    fn make(
        &mut self,
        order: &ProvisionRequest,
        prepared: &Value,
        class: Option<&Value>,
    ) -> Result<OperationOutput, Failure> {
        let name = order.volume.to_string();
        let asked = Asked::of(order, prepared);
        if self.asked.get(&name).is_some_and(|before| *before != asked) {
            self.contradicted.push(name.clone());
        }
        let mut says = self.makes.pop_front().unwrap_or(Says::Done);
        // What is there is not denied.
        let denies = |after: FailureEffect| was_tried(after) && after != FailureEffect::NameTaken;
        if self.holds.contains_key(&name) && matches!(says, Says::Fails(after) if denies(after)) {
            says = Says::DoneUnheard;
        }
        if !matches!(says, Says::Fails(after) if !was_tried(after)) {
            self.asked.insert(name.clone(), asked);
        }
        match says {
            Says::Fails(FailureEffect::Unknown) => Err(Failure::unknown("told not to answer")),
            Says::Fails(after) => {
                if denies(after) {
                    self.asked.remove(&name);
                }
                Err(Failure::new("told to fail").with(after))
            }
            Says::DoneUnheard => {
                self.put(&name);
                Err(Failure::unknown("told not to answer"))
            }
            Says::Done => {
                let handle = self.put(&name);
                let policy = class.and_then(|class| class["reclaimPolicy"].as_str()).unwrap_or("Delete");
                Ok(OperationOutput::of(order.complete(json!({"spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                    "persistentVolumeReclaimPolicy": policy,
                    "csi": {"driver": order.provisioner.as_str(), "volumeHandle": handle},
                    "nodeAffinity": affinity(order),
                }}))))
            }
        }
    }

    fn put(&mut self, name: &str) -> String {
        if self.forgets_names || !self.holds.contains_key(name) {
            self.made += 1;
            let handle = format!("{name}@{}", self.made);
            // What is forgotten by its name is kept by its handle.
            let key = if self.forgets_names { handle.clone() } else { name.to_owned() };
            self.holds.insert(key, handle.clone());
            return handle;
        }
        self.holds[name].clone()
    }

    fn remove(&mut self, volume: &Value) -> Result<OperationOutput, Failure> {
        let handle = volume["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_default().to_owned();
        let says = self.removes.pop_front().unwrap_or(Says::Done);
        if let Says::Fails(after) = says {
            return Err(Failure::new("told to fail").with(after));
        }
        let gone: Vec<String> = self.holds.extract_if(.., |_, held| *held == handle).map(|(name, _)| name).collect();
        self.asked.retain(|name, _| !gone.contains(name));
        match says {
            Says::DoneUnheard => Err(Failure::unknown("told not to answer")),
            Says::Done | Says::Fails(_) => Ok(OperationOutput::default()),
        }
    }
}

/// What a class says of how volumes are made: all that is found out before one is.
fn parameters(class: Option<&Value>) -> Value {
    class.map(|class| class["parameters"].clone()).unwrap_or_default()
}

/// From where a volume can be reached: from all the places that were asked for.
fn affinity(order: &ProvisionRequest) -> Value {
    let Ok(Some(places)) = &order.topology else { return Value::Null };
    let label =
        |(key, value): &(Name, Name)| json!({"key": key.as_str(), "operator": "In", "values": [value.as_str()]});
    let terms =
        places.requisite.iter().map(|term| json!({"matchExpressions": term.iter().map(label).collect::<Vec<_>>()}));
    json!({"required": {"nodeSelectorTerms": terms.collect::<Vec<_>>()}})
}

/// Whether a storage that failed so was asked at all.
fn was_tried(after: FailureEffect) -> bool {
    after != FailureEffect::NotAttempted && after != FailureEffect::Stale
}
