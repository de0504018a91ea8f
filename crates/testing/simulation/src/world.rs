//! The world: objects as an API server keeps them, and plugins that do as they are told.

use std::collections::{BTreeMap, VecDeque};

use bindery_engine::{Answer, Input, Moment, RequestError};
use bindery_fields::Schema;
use bindery_fields::patch::strategic_merge_patch;
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::{Failure, OperationOutput, PatchType, Request, Task, Write};
use serde_json::{Value, json};

use crate::Answerer;
use crate::storage::{Backend, Seen};

/// An error that the world answers with instead of doing what it is asked, or after doing it. Each is used once, in order.
#[derive(Debug, Clone)]
pub struct Injected {
    /// The verb: `create`, `write`, `delete`, `read` or `list`.
    pub verb: &'static str,
    /// The kind of object.
    pub kind: Kind,
    /// What is answered.
    pub refusal: RequestError,
    /// Whether it is done all the same, as by a server that crashes before it answers.
    pub is_done: bool,
}

/// Something that a watch tells.
#[derive(Debug, Clone)]
pub enum Told {
    /// An object was created or changed.
    Changed(Object),
    /// An object is gone, at a version.
    Gone(ObjectKey, u64),
}

impl From<Told> for Input {
    fn from(told: Told) -> Input {
        match told {
            Told::Changed(object) => Input::Watched(object),
            Told::Gone(key, version) => Input::Deleted { key, version },
        }
    }
}

impl Told {
    /// The kind of object that it is about.
    pub fn kind(&self) -> Kind {
        match self {
            Told::Changed(object) => object.key().kind,
            Told::Gone(key, _) => key.kind,
        }
    }
}

/// What time it is, always.
pub(crate) const NOW: &str = "2026-01-01T00:00:00Z";

/// What an API server has against a change: the kind of object, how it was, how it would be.
pub type Check = fn(Kind, &Value, &Value) -> Result<(), String>;

/// Objects, and what happens to them.
#[derive(Debug, Clone, Default)]
pub struct World {
    objects: BTreeMap<ObjectKey, Value>,
    version: u64,
    /// What a watch has yet to tell.
    pub untold: VecDeque<Told>,
    /// Errors to answer with.
    pub errors: VecDeque<Injected>,
    /// How operations go, by task; what is not scripted goes well.
    pub script: Vec<(Task, VecDeque<Result<OperationOutput, Failure>>)>,
    /// What lies behind the volumes of provisioners, if anything.
    pub storage: Option<Backend>,
    /// Every request that was carried out or refused, in words.
    pub history: Vec<String>,
    /// How many requests changed something, or did something outside.
    pub effects: usize,
    /// How often an object of a name was created: each is another object.
    made: BTreeMap<ObjectKey, usize>,
    /// What is wrong with a change of an object, before and after it: such a write is refused.
    pub check: Option<Check>,
}

impl World {
    /// Puts an object into the world as it is, with the next version.
    pub fn put(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let decoded = decode(kind, &object);
        self.objects.insert(decoded.key(), object);
        self.untold.push_back(Told::Changed(decoded));
    }

    /// Takes an object out of the world.
    pub fn remove(&mut self, key: &ObjectKey) {
        self.version += 1;
        if self.objects.remove(key).is_some() {
            self.untold.push_back(Told::Gone(key.clone(), self.version));
        }
    }

    /// An object.
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

    /// All objects of a kind, decoded, and the version they are of.
    pub fn list(&self, kind: Kind) -> (u64, Vec<Object>) {
        let of_kind = self.objects.iter().filter(|(key, _)| key.kind == kind);
        (self.version, of_kind.map(|(_, value)| decode(kind, value)).collect())
    }

    /// Changes an object as somebody else would: by a merge patch without preconditions.
    pub fn edit(&mut self, key: &ObjectKey, patch: Value) {
        if let Some(mut object) = self.objects.get(key).cloned() {
            json_patch::merge(&mut object, &patch);
            self.put(key.kind, object);
        }
    }

    /// Deletes an object as somebody would: at once, or when its finalizers are gone.
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

    /// Carries out a request, or refuses it.
    pub fn answer(&mut self, request: &Request) -> Answer {
        let (verb, words) = describe(request);
        if let Some(Injected { refusal, is_done, .. }) = self.injected(verb, request.target().kind) {
            if is_done {
                self.carry_out(request);
                self.effects += 1;
            }
            self.history.push(format!("{words}: {refusal}"));
            return Answer::Rejected(refusal);
        }
        let answer = self.carry_out(request);
        let refused = if let Answer::Rejected(refusal) = &answer { format!(": {refusal}") } else { String::new() };
        if !matches!(request, Request::Read(_) | Request::List(_)) && refused.is_empty() {
            self.effects += 1;
        }
        self.history.push(words + &refused);
        answer
    }

    fn injected(&mut self, verb: &str, kind: Kind) -> Option<Injected> {
        let at = self.errors.iter().position(|error| error.verb == verb && error.kind == kind)?;
        self.errors.remove(at)
    }

    fn new_uid(&mut self, key: &ObjectKey) -> String {
        let times = self.made.entry(key.clone()).or_default();
        *times += 1;
        if *times == 1 { format!("made-{}", key.name) } else { format!("made-{}-{times}", key.name) }
    }

    fn carry_out(&mut self, request: &Request) -> Answer {
        match request {
            Request::Read(key) => Answer::Read(self.objects.get(key).map(|object| decode(key.kind, object))),
            Request::List(listing) => {
                let is_there = |key: &ObjectKey| {
                    key.kind == listing.kind && (listing.namespace.is_empty() || key.namespace == listing.namespace)
                };
                let found = self.objects.iter().filter(|(key, _)| is_there(key));
                Answer::Listed(found.map(|(key, object)| decode(key.kind, object)).collect())
            }
            Request::Write(write) => self.write(write),
            Request::Bind(bind) => {
                let key = bind.target();
                let Some(pod) = self.objects.get(key) else { return Answer::Rejected(RequestError::NotFound) };
                if !is_as_seen(pod, bind.uid(), bind.version()) || !pod["spec"]["nodeName"].is_null() {
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
                    Some(object) if !is_as_seen(object, &volume.uid, volume.version) => {
                        return Answer::Rejected(RequestError::Conflict);
                    }
                    Some(_) => self.delete(&key),
                }
                Answer::Deleted(self.objects.get(&key).map(|object| decode(Kind::Volume, object)))
            }
            Request::RunOperation(operation) => {
                if let Some(storage) = &mut self.storage {
                    let outcome = match Seen::find(operation, &self.objects) {
                        Ok(seen) => storage.operate(operation, seen),
                        Err(failure) => Some(Err(failure)),
                    };
                    if let Some(outcome) = outcome {
                        return Answer::Done(outcome);
                    }
                }
                let task = operation.task();
                let script = self.script.iter_mut().find(|(known, _)| *known == task);
                Answer::Done(
                    script.and_then(|(_, outcomes)| outcomes.pop_front()).unwrap_or(Ok(OperationOutput::default())),
                )
            }
        }
    }
}

impl World {
    fn write(&mut self, write: &Write) -> Answer {
        let key = write.target();
        let Some(object) = self.objects.get(key) else { return Answer::Rejected(RequestError::NotFound) };
        if !is_as_seen(object, write.uid(), write.version()) {
            return Answer::Rejected(RequestError::Conflict);
        }
        let changed = patched(object, write);
        if let Some(Err(error)) = self.check.map(|check| check(key.kind, object, &changed)) {
            return Answer::Rejected(RequestError::Error(error));
        }
        let is_over = !changed["metadata"]["deletionTimestamp"].is_null() && !has_finalizers(&changed);
        if is_over {
            let object = decode(key.kind, &changed);
            self.remove(key);
            return Answer::Written(object);
        }
        self.put(key.kind, changed);
        Answer::Written(decode(key.kind, &self.objects[key]))
    }
}

impl Answerer for World {
    fn list(&mut self, kind: Kind) -> (u64, Vec<Object>) {
        self.untold.retain(|told| told.kind() != kind);
        World::list(self, kind)
    }

    fn told(&mut self) -> Option<Told> {
        self.untold.pop_front()
    }

    fn answer(&mut self, request: &Request) -> Answer {
        World::answer(self, request)
    }

    /// Nothing here depends on the time.
    fn pass(&mut self, _: Moment) {}

    fn effects(&self) -> usize {
        self.effects
    }

    fn history(&self) -> &[String] {
        &self.history
    }
}

/// An object as a write makes it.
fn patched(object: &Value, write: &Write) -> Value {
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

fn is_as_seen(object: &Value, uid: &str, version: u64) -> bool {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    text("uid") == uid && text("resourceVersion").parse() == Ok(version)
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

/// Decodes an object as the runtime would.
pub(crate) fn decode(kind: Kind, object: &Value) -> Object {
    Object::from_json(kind, object.to_string().as_bytes()).expect("objects of the world have names")
}

/// The verb of a request, and the request in words.
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
