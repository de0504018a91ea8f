//! A storage backend with scripted responses, which remembers all requests.

use std::collections::{BTreeMap, VecDeque};

use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::{Accessibility, Failure, FailureEffect, Operation, OperationOutput, ProvisionRequest};
use serde_json::{Value, json};

/// The response of the storage backend to a request to create or delete a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// The request succeeds.
    Done,
    /// The request fails.
    Fails(FailureEffect),
    /// The request succeeds, but the answer is lost.
    DoneAnswerLost,
}

/// The parameters of a request to create a volume.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateParameters {
    node: Option<Name>,
    topology: Option<Accessibility>,
    found: Value,
}

impl CreateParameters {
    /// The parameters of a provision request with its prepared values.
    pub fn of(order: &ProvisionRequest, prepared: &Value) -> CreateParameters {
        let topology = order.topology.clone().ok().flatten();
        CreateParameters { node: order.node.clone(), topology, found: prepared["found"].clone() }
    }
}

/// The objects that are read live before the storage backend is called.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveObjects<'a> {
    /// The class of the claim, when a request is prepared.
    pub class: Option<&'a Value>,
    /// The volume, when its backing storage is deleted.
    pub volume: Option<&'a Value>,
}

impl LiveObjects<'_> {
    /// Finds the current objects. An outdated operation is not attempted.
    pub fn find<'a>(
        operation: &Operation,
        objects: &'a BTreeMap<ObjectKey, Value>,
    ) -> Result<LiveObjects<'a>, Failure> {
        let untried = |why: &str| Failure::new(why).with(FailureEffect::NotAttempted);
        if operation.is_in_tree() {
            return Ok(LiveObjects::default());
        }
        match operation {
            Operation::Prepare(order) => {
                let claim = objects.get(&ObjectKey::from(order.claim.clone()));
                if claim.is_none_or(|claim| claim["metadata"]["uid"] != *order.uid.as_str()) {
                    return Err(untried("the claim was deleted or replaced"));
                }
                let class = objects.get(&ObjectKey::cluster(Kind::Class, order.class.clone()));
                Ok(LiveObjects { class: Some(class.ok_or_else(|| untried("the class does not exist"))?), volume: None })
            }
            Operation::CreateStorage(order, _) => {
                let record = objects.get(&ObjectKey::record(order.uid.clone()));
                if record.is_none_or(|record| record["attempt"] != json!(order.attempt)) {
                    let error = "the record was removed, or belongs to another attempt";
                    return Err(Failure::new(error).with(FailureEffect::Stale));
                }
                Ok(LiveObjects::default())
            }
            Operation::DeleteStorage(proof, _) => {
                let live = proof.volume();
                let volume = objects.get(&ObjectKey::volume(live.name.clone()));
                let volume = volume.ok_or_else(|| untried("the volume does not exist"))?;
                let metadata = &volume["metadata"];
                if metadata["uid"] != *live.uid.as_str() || metadata["resourceVersion"] != *live.version.to_string() {
                    return Err(untried("the volume has changed since it was released"));
                }
                Ok(LiveObjects { class: None, volume: Some(volume) })
            }
            Operation::DiscardStorage(..) | Operation::Recycle(_) => Ok(LiveObjects::default()),
        }
    }
}

/// A storage backend.
#[derive(Debug, Clone, Default)]
pub struct StorageBackend {
    /// The handles of its volumes, by the name of the PersistentVolume that each was created for.
    pub handles: BTreeMap<String, String>,
    /// Scripted failures of preparing a request, in order. Further requests succeed.
    pub prepare_responses: VecDeque<FailureEffect>,
    /// Scripted responses to create requests.
    pub create_responses: VecDeque<Response>,
    /// Scripted responses to delete requests.
    pub delete_responses: VecDeque<Response>,
    /// How many volumes were created.
    pub created_count: usize,
    /// The parameters by name, where the volume exists or the outcome is unknown.
    requested: BTreeMap<String, CreateParameters>,
    /// Names that were requested with other parameters while the volume existed or the outcome was
    /// unknown.
    pub conflicting_names: Vec<String>,
    /// Whether a repeated request creates another volume: the backend is not idempotent.
    pub creates_duplicates: bool,
}

impl StorageBackend {
    /// Runs an operation; `None` if it is not an operation of a storage backend.
    pub fn operate(
        &mut self,
        operation: &Operation,
        live: LiveObjects<'_>,
    ) -> Option<Result<OperationOutput, Failure>> {
        if operation.is_in_tree() {
            return None;
        }
        Some(match operation {
            Operation::Prepare(order) => match (&order.topology, self.prepare_responses.pop_front()) {
                (Err(failure), _) => Err(failure.clone()),
                (Ok(_), Some(after)) => Err(Failure::new("scripted failure").with(after)),
                (Ok(_), None) => Ok(OperationOutput::of(order.prepared(parameters(live.class)))),
            },
            Operation::CreateStorage(order, prepared) => self.create(order, prepared),
            Operation::DiscardStorage(_, volume) => self.remove(volume),
            Operation::DeleteStorage(..) => self.remove(live.volume.unwrap_or(&Value::Null)),
            Operation::Recycle(_) => return None,
        })
    }

    fn create(&mut self, order: &ProvisionRequest, prepared: &Value) -> Result<OperationOutput, Failure> {
        let name = order.volume.to_string();
        let requested = CreateParameters::of(order, prepared);
        if self.requested.get(&name).is_some_and(|before| *before != requested) {
            self.conflicting_names.push(name.clone());
        }
        let mut response = self.create_responses.pop_front().unwrap_or(Response::Done);
        // An existing volume is not denied. Other errors say nothing about it.
        let denies_existence =
            |after: FailureEffect| matches!(after, FailureEffect::Reschedule | FailureEffect::Absent);
        let was_requested = self.requested.contains_key(&name);
        if self.handles.contains_key(&name) && matches!(response, Response::Fails(after) if denies_existence(after)) {
            response = Response::DoneAnswerLost;
        }
        if !matches!(response, Response::Fails(after) if !was_tried(after)) {
            self.requested.insert(name.clone(), requested);
        }
        match response {
            Response::Fails(FailureEffect::Unknown) => Err(Failure::unknown("scripted lost answer")),
            Response::Fails(after) => {
                if denies_existence(after) || !was_requested {
                    self.requested.remove(&name);
                }
                Err(Failure::new("scripted failure").with(after))
            }
            Response::DoneAnswerLost => {
                self.put(&name);
                Err(Failure::unknown("scripted lost answer"))
            }
            Response::Done => {
                let handle = self.put(&name);
                let policy = prepared["found"]["policy"].as_str().unwrap_or("Delete");
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
        if self.creates_duplicates || !self.handles.contains_key(name) {
            self.created_count += 1;
            let handle = format!("{name}@{}", self.created_count);
            // Without idempotency the handle is the key.
            let key = if self.creates_duplicates { handle.clone() } else { name.to_owned() };
            self.handles.insert(key, handle.clone());
            return handle;
        }
        self.handles[name].clone()
    }

    fn remove(&mut self, volume: &Value) -> Result<OperationOutput, Failure> {
        let handle = volume["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_default().to_owned();
        let response = self.delete_responses.pop_front().unwrap_or(Response::Done);
        if let Response::Fails(after) = response {
            return Err(Failure::new("scripted failure").with(after));
        }
        let deleted: Vec<String> =
            self.handles.extract_if(.., |_, known| *known == handle).map(|(name, _)| name).collect();
        self.requested.retain(|name, _| !deleted.contains(name));
        match response {
            Response::DoneAnswerLost => Err(Failure::unknown("scripted lost answer")),
            Response::Done | Response::Fails(_) => Ok(OperationOutput::default()),
        }
    }
}

/// The prepared values: what the class says.
fn parameters(class: Option<&Value>) -> Value {
    let class = class.unwrap_or(&Value::Null);
    json!({"parameters": class["parameters"], "policy": class["reclaimPolicy"]})
}

/// The node affinity of a new volume: all requested topology segments.
fn affinity(order: &ProvisionRequest) -> Value {
    let Ok(Some(topology)) = &order.topology else { return Value::Null };
    let label =
        |(key, value): &(Name, Name)| json!({"key": key.as_str(), "operator": "In", "values": [value.as_str()]});
    let terms =
        topology.requisite.iter().map(|term| json!({"matchExpressions": term.iter().map(label).collect::<Vec<_>>()}));
    json!({"required": {"nodeSelectorTerms": terms.collect::<Vec<_>>()}})
}

/// Whether the storage backend was called before the operation failed.
fn was_tried(after: FailureEffect) -> bool {
    after != FailureEffect::NotAttempted && after != FailureEffect::Stale
}
