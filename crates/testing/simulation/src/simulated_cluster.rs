//! The simulated cluster: the objects of an API server, watch events, and scripted operations.

use std::collections::{BTreeMap, VecDeque};

use bindery_engine::{Answer, Input, Moment, RequestError};
use bindery_fields::Schema;
use bindery_fields::patch::strategic_merge_patch;
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::{Failure, Operation, OperationOutput, PatchType, Request, Task, Write};
use serde_json::{Value, json};

use crate::storage::{LiveObjects, StorageBackend};
use crate::{EngineApi, RecyclerPods};

/// An error that the cluster returns instead of carrying out a request, or after it. Each is used
/// once, in order.
#[derive(Debug, Clone)]
pub struct InjectedError {
    /// The verb: `create`, `write`, `delete`, `read` or `list`.
    pub verb: &'static str,
    /// The kind of object.
    pub kind: Kind,
    /// The error.
    pub error: RequestError,
    /// Whether the request is carried out anyway, as by a server that crashes before it answers.
    pub is_applied: bool,
}

/// A watch event.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// An object was created or changed.
    Changed(Object),
    /// An object was deleted at this version.
    Deleted(ObjectKey, u64),
}

impl From<WatchEvent> for Input {
    fn from(event: WatchEvent) -> Input {
        match event {
            WatchEvent::Changed(object) => Input::Watched(object),
            WatchEvent::Deleted(key, version) => Input::Deleted { key, version },
        }
    }
}

impl WatchEvent {
    /// The kind of the object.
    pub fn kind(&self) -> Kind {
        match self {
            WatchEvent::Changed(object) => object.key().kind,
            WatchEvent::Deleted(key, _) => key.kind,
        }
    }
}

/// The time of all timestamps.
pub(crate) const NOW: &str = "2026-01-01T00:00:00Z";

/// Validates a change: the kind of object, before, after.
pub type Check = fn(Kind, &Value, &Value) -> Result<(), String>;

/// A cluster in memory.
#[derive(Debug, Clone, Default)]
pub struct SimulatedCluster {
    objects: BTreeMap<ObjectKey, Value>,
    version: u64,
    /// Watch events that were not delivered yet.
    pub pending_events: VecDeque<WatchEvent>,
    /// Errors to inject.
    pub errors: VecDeque<InjectedError>,
    /// Scripted outcomes of operations, by task. Operations without a script succeed.
    pub script: Vec<(Task, VecDeque<Result<OperationOutput, Failure>>)>,
    /// The storage backend of provisioners, if any.
    pub storage: Option<StorageBackend>,
    /// The recycler pods.
    pub recycler_pods: RecyclerPods,
    /// All requests so far as text, with the error if they were rejected.
    pub history: Vec<String>,
    /// How many requests changed an object or ran an operation.
    pub effects: usize,
    /// How often an object of a name was created, for unique UIDs.
    created: BTreeMap<ObjectKey, usize>,
    /// Validates writes, if set.
    pub check: Option<Check>,
}

impl SimulatedCluster {
    /// Stores an object without validation, with the next resource version.
    pub fn put(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let decoded = decode(kind, &object);
        self.objects.insert(decoded.key(), object);
        self.pending_events.push_back(WatchEvent::Changed(decoded));
    }

    /// Removes an object, regardless of finalizers.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.version += 1;
        if self.objects.remove(key).is_some() {
            self.pending_events.push_back(WatchEvent::Deleted(key.clone(), self.version));
        }
    }

    /// The JSON of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(key)
    }

    /// The version of the last change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All objects, by key.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &Value)> {
        self.objects.iter()
    }

    /// All objects of a kind, decoded, and the resource version.
    pub fn list(&self, kind: Kind) -> (u64, Vec<Object>) {
        let of_kind = self.objects.iter().filter(|(key, _)| key.kind == kind);
        (self.version, of_kind.map(|(_, value)| decode(kind, value)).collect())
    }

    /// Changes an object as another writer would: by a merge patch without preconditions.
    pub fn edit(&mut self, key: &ObjectKey, patch: Value) {
        if let Some(mut object) = self.objects.get(key).cloned() {
            json_patch::merge(&mut object, &patch);
            self.put(key.kind, object);
        }
    }

    /// Deletes an object, or marks it as deleted if it has finalizers.
    pub fn delete(&mut self, key: &ObjectKey) {
        let Some(object) = self.objects.get(key).cloned() else { return };
        if has_finalizers(&object) {
            if object["metadata"]["deletionTimestamp"].is_null() {
                self.edit(key, json!({"metadata": {"deletionTimestamp": NOW}}));
            }
        } else {
            self.remove(key);
        }
    }

    /// Carries out or rejects a request.
    pub fn answer(&mut self, request: &Request) -> Answer {
        let (verb, text) = describe(request);
        if let Some(InjectedError { error, is_applied, .. }) = self.injected(verb, request.target().kind) {
            if is_applied {
                self.carry_out(request);
                self.effects += 1;
            }
            self.history.push(format!("{text}: {error}"));
            return Answer::Rejected(error);
        }
        let answer = self.carry_out(request);
        let rejected = if let Answer::Rejected(error) = &answer { format!(": {error}") } else { String::new() };
        if !matches!(request, Request::Read(_) | Request::List(_)) && rejected.is_empty() {
            self.effects += 1;
        }
        self.history.push(text + &rejected);
        answer
    }

    fn injected(&mut self, verb: &str, kind: Kind) -> Option<InjectedError> {
        let at = self.errors.iter().position(|error| error.verb == verb && error.kind == kind)?;
        self.errors.remove(at)
    }

    fn new_uid(&mut self, key: &ObjectKey) -> String {
        let times = self.created.entry(key.clone()).or_default();
        *times += 1;
        if *times == 1 { format!("made-{}", key.name) } else { format!("made-{}-{times}", key.name) }
    }

    fn carry_out(&mut self, request: &Request) -> Answer {
        match request {
            Request::Read(key) => Answer::Read(self.objects.get(key).map(|object| decode(key.kind, object))),
            Request::List(listing) => {
                let is_listed = |key: &ObjectKey| {
                    key.kind == listing.kind && (listing.namespace.is_empty() || key.namespace == listing.namespace)
                };
                let found = self.objects.iter().filter(|(key, _)| is_listed(key));
                Answer::Listed(found.map(|(key, object)| decode(key.kind, object)).collect())
            }
            Request::Write(write) => self.write(write),
            Request::Bind(bind) => {
                let key = bind.target();
                let Some(pod) = self.objects.get(key) else { return Answer::Rejected(RequestError::NotFound) };
                if !is_current(pod, bind.uid(), bind.version()) || !pod["spec"]["nodeName"].is_null() {
                    return Answer::Rejected(RequestError::Conflict);
                }
                let mut bound = pod.clone();
                bound["spec"]["nodeName"] = bind.node().as_str().into();
                bound["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "True"}]);
                bound["status"]["nominatedNodeName"] = Value::Null;
                self.put(Kind::Pod, bound);
                Answer::Written(decode(Kind::Pod, &self.objects[key]))
            }
            Request::Create(create) => {
                if self.objects.contains_key(&create.key) {
                    return Answer::Rejected(RequestError::AlreadyExists);
                }
                let mut object = create.body.clone();
                object["metadata"]["uid"] = self.new_uid(&create.key).into();
                object["status"]["phase"] = "Pending".into();
                self.put(create.key.kind, object);
                Answer::Written(decode(create.key.kind, &self.objects[&create.key]))
            }
            Request::Delete(delete) => {
                let volume = delete.proof().volume();
                let key = ObjectKey::volume(volume.name.clone());
                match self.objects.get(&key) {
                    None => return Answer::Rejected(RequestError::NotFound),
                    Some(object) if !is_current(object, &volume.uid, volume.version) => {
                        return Answer::Rejected(RequestError::Conflict);
                    }
                    Some(_) => self.delete(&key),
                }
                Answer::Deleted(self.objects.get(&key).map(|object| decode(Kind::Volume, object)))
            }
            Request::RunOperation(operation) => {
                if let Some(storage) = &mut self.storage {
                    let outcome = match LiveObjects::find(operation, &self.objects) {
                        Ok(seen) => storage.operate(operation, seen),
                        Err(failure) => Some(Err(failure)),
                    };
                    if let Some(outcome) = outcome {
                        return Answer::Done(outcome);
                    }
                }
                let task = operation.task();
                let script = self.script.iter_mut().find(|(known, _)| *known == task);
                let outcome = script.and_then(|(_, outcomes)| outcomes.pop_front());
                let outcome = outcome.unwrap_or(Ok(OperationOutput::default()));
                Answer::Done(match operation {
                    Operation::Recycle(recycle) => self.recycler_pods.carry_out(recycle, outcome),
                    Operation::Prepare(_)
                    | Operation::CreateStorage(..)
                    | Operation::DiscardStorage(..)
                    | Operation::DeleteStorage(..) => outcome,
                })
            }
        }
    }
}

impl SimulatedCluster {
    fn write(&mut self, write: &Write) -> Answer {
        let key = write.target();
        let Some(object) = self.objects.get(key) else { return Answer::Rejected(RequestError::NotFound) };
        if !is_current(object, write.uid(), write.version()) {
            return Answer::Rejected(RequestError::Conflict);
        }
        let changed = patched(object, write);
        if let Some(Err(error)) = self.check.map(|check| check(key.kind, object, &changed)) {
            return Answer::Rejected(RequestError::Error(422, error));
        }
        let is_finished = !changed["metadata"]["deletionTimestamp"].is_null() && !has_finalizers(&changed);
        if is_finished {
            let object = decode(key.kind, &changed);
            self.remove(key);
            return Answer::Written(object);
        }
        self.put(key.kind, changed);
        Answer::Written(decode(key.kind, &self.objects[key]))
    }
}

impl EngineApi for SimulatedCluster {
    fn list(&mut self, kind: Kind) -> (u64, Vec<Object>) {
        self.pending_events.retain(|event| event.kind() != kind);
        SimulatedCluster::list(self, kind)
    }

    fn next_watch_event(&mut self) -> Option<WatchEvent> {
        self.pending_events.pop_front()
    }

    fn answer(&mut self, request: &Request) -> Answer {
        SimulatedCluster::answer(self, request)
    }

    /// Nothing here depends on time.
    fn set_time(&mut self, _: Moment) {}

    fn effects(&self) -> usize {
        self.effects
    }

    fn history(&self) -> &[String] {
        &self.history
    }
}

/// The object after a write.
pub fn patched(object: &Value, write: &Write) -> Value {
    let patch = write.patch(NOW);
    match write.edit().patch_type() {
        PatchType::Merge => {
            let mut changed = object.clone();
            json_patch::merge(&mut changed, &patch);
            changed
        }
        PatchType::Strategic => {
            let schema = Schema::of("", "v1", write.target().kind.as_str()).expect("the kind is known");
            let changed = strategic_merge_patch(schema, object, patch.to_string().as_bytes());
            changed.expect("our patches are well formed").value
        }
    }
}

fn is_current(object: &Value, uid: &str, version: u64) -> bool {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    text("uid") == uid && text("resourceVersion").parse() == Ok(version)
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

/// Decodes an object as the runtime would.
pub fn decode(kind: Kind, object: &Value) -> Object {
    Object::from_json(kind, object.to_string().as_bytes()).expect("objects have names")
}

/// The verb of a request, and the request as text.
pub fn describe(request: &Request) -> (&'static str, String) {
    let target = request.target();
    match request {
        Request::Write(write) => ("write", format!("write {target} [{}]", write.purpose)),
        Request::Create(_) => ("create", format!("create {target}")),
        Request::Bind(bind) => ("bind", format!("bind {target} to {}", bind.node())),
        Request::Delete(_) => ("delete", format!("delete {target}")),
        Request::Read(_) => ("read", format!("read {target}")),
        Request::List(_) => ("list", format!("list {target}")),
        Request::RunOperation(operation) => ("operate", operation.name()),
    }
}
