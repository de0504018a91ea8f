//! The API server of a world: objects, their versions, and the events of changes.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bindery_engine::{Answer, Input, RequestError};
use bindery_model::hash::digest;
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::{Request, Write};
use bindery_simulation::{decode, notation, patched, user_api};
use serde_json::{Value, json};

/// An object as JSON and decoded.
#[derive(Debug)]
pub struct Stored {
    /// The JSON.
    pub json: Value,
    /// The decoded object.
    pub object: Object,
}

/// A change that watches report.
#[derive(Debug, Clone)]
pub struct Event {
    /// The object.
    pub key: ObjectKey,
    /// The version of the change.
    pub version: u64,
    /// The object; `None` if it was deleted.
    pub object: Option<Object>,
    /// The number of changes of all objects until then.
    pub change: u64,
}

impl From<&Event> for Input {
    fn from(event: &Event) -> Input {
        match &event.object {
            Some(object) => Input::Watched(object.clone()),
            None => Input::Deleted { key: event.key.clone(), version: event.version },
        }
    }
}

/// The objects of an API server.
///
/// Every kind has a sequence of versions of its own, as if each was stored in an etcd of its own:
/// the engine compares only versions of one kind, and states that differ in nothing but the order
/// of writes to different kinds are the same state. The lower half of a version is a digest of the
/// object, so that equal versions mean equal objects in all states of a world.
#[derive(Debug, Clone, Default)]
pub struct Server {
    objects: BTreeMap<ObjectKey, Arc<Stored>>,
    versions: BTreeMap<Kind, u64>,
    /// How often an object of a name was created, for unique UIDs.
    created: BTreeMap<ObjectKey, usize>,
    /// Whether writes succeed on any version: a defect, to test the explorer.
    pub ignores_versions: bool,
    events: Vec<Event>,
    /// The number of changes.
    pub changes: u64,
}

impl Server {
    /// A server with the objects of [`notation`] lines.
    pub fn with(lines: &str) -> Server {
        let mut server = Server::default();
        server.add(lines);
        server
    }

    /// Adds the objects of lines whose names are not taken.
    pub fn add(&mut self, lines: &str) {
        for (key, json) in notation::parse(lines).objects() {
            if !self.objects.contains_key(key) {
                self.put(key.kind, json.clone());
            }
        }
    }

    /// An object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    /// All objects.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<Stored>)> {
        self.objects.iter()
    }

    /// The objects of a kind, and the version of its last change.
    pub fn list(&self, kind: Kind) -> (u64, Vec<Object>) {
        let objects = self.objects.iter().filter(|(key, _)| key.kind == kind);
        (self.versions.get(&kind).copied().unwrap_or_default(), objects.map(|(_, it)| it.object.clone()).collect())
    }

    /// The changes since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn next_version(&mut self, kind: Kind, content: impl Hash) -> u64 {
        let version = self.versions.entry(kind).or_default();
        *version = ((*version >> 32) + 1) << 32 | digest(content) & 0xffff_ffff;
        *version
    }

    fn put(&mut self, kind: Kind, mut json: Value) -> Object {
        json["metadata"]["resourceVersion"] = Value::Null;
        let version = self.next_version(kind, json.to_string());
        json["metadata"]["resourceVersion"] = version.to_string().into();
        let object = decode(kind, &json);
        let key = object.key();
        self.objects.insert(key.clone(), Arc::new(Stored { json, object: object.clone() }));
        self.report(key, version, Some(object.clone()));
        object
    }

    fn remove(&mut self, key: &ObjectKey) {
        if self.objects.remove(key).is_some() {
            let version = self.next_version(key.kind, key);
            self.report(key.clone(), version, None);
        }
    }

    fn report(&mut self, key: ObjectKey, version: u64, object: Option<Object>) {
        self.changes += 1;
        self.events.push(Event { key, version, object, change: self.changes });
    }

    /// Stores a changed object, or removes it if it is being deleted and has no finalizers.
    fn replace(&mut self, key: &ObjectKey, changed: Value) -> Object {
        if is_deleting(&changed) && !has_finalizers(&changed) {
            self.remove(key);
            return decode(key.kind, &changed);
        }
        self.put(key.kind, changed)
    }

    /// Changes an object without preconditions, as a user.
    pub fn edit(&mut self, key: &ObjectKey, patch: &Value) {
        let Some(mut changed) = self.objects.get(key).map(|stored| stored.json.clone()) else { return };
        json_patch::merge(&mut changed, patch);
        self.replace(key, changed);
    }

    /// Deletes an object, or marks it as deleted if it has finalizers.
    pub fn delete(&mut self, key: &ObjectKey) {
        let is_marked = self.objects.get(key).is_some_and(|stored| is_deleting(&stored.json));
        if !is_marked {
            self.edit(key, &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        }
    }

    /// Carries out or rejects a request to the API server.
    pub fn execute(&mut self, request: &Request) -> Answer {
        match request {
            Request::Read(key) => Answer::Read(self.objects.get(key).map(|stored| stored.object.clone())),
            Request::List(listing) => {
                let (_, mut objects) = self.list(listing.kind);
                objects.retain(|object| listing.namespace.is_empty() || object.meta().namespace == listing.namespace);
                Answer::Listed(objects)
            }
            Request::Write(write) => self.write(write),
            Request::Create(create) => {
                if self.objects.contains_key(&create.key) {
                    return Answer::Rejected(RequestError::AlreadyExists);
                }
                let times = self.created.entry(create.key.clone()).or_default();
                *times += 1;
                let mut object = create.body.clone();
                object["metadata"]["uid"] = format!("{}-{times}", create.key.name).into();
                object["status"]["phase"] = "Pending".into();
                Answer::Written(self.put(create.key.kind, object))
            }
            Request::Delete(delete) => {
                let volume = delete.proof().volume();
                let key = ObjectKey::volume(volume.name.clone());
                if let Some(error) = self.outdated(&key, &volume.uid, volume.version) {
                    return Answer::Rejected(error);
                }
                self.delete(&key);
                Answer::Deleted(self.objects.get(&key).map(|stored| stored.object.clone()))
            }
            Request::Bind(_) | Request::RunOperation(_) => panic!("worlds have no scheduler, and their own storage"),
        }
    }

    /// Why a conditional request is rejected, if it is.
    fn outdated(&self, key: &ObjectKey, uid: &str, version: u64) -> Option<RequestError> {
        let Some(stored) = self.objects.get(key) else { return Some(RequestError::NotFound) };
        let meta = stored.object.meta();
        let is_current = meta.uid == uid && (meta.version == version || self.ignores_versions);
        (!is_current).then_some(RequestError::Conflict)
    }

    /// Whether a request can no longer succeed: no object gets a former version again.
    pub fn is_obsolete(&self, request: &Request) -> bool {
        match request {
            Request::Write(write) => self.outdated(write.target(), write.uid(), write.version()).is_some(),
            Request::Delete(delete) => {
                let volume = delete.proof().volume();
                self.outdated(&ObjectKey::volume(volume.name.clone()), &volume.uid, volume.version).is_some()
            }
            Request::Create(_) | Request::RunOperation(_) => false,
            Request::Bind(_) | Request::Read(_) | Request::List(_) => true,
        }
    }

    fn write(&mut self, write: &Write) -> Answer {
        let key = write.target();
        if let Some(error) = self.outdated(key, write.uid(), write.version()) {
            return Answer::Rejected(error);
        }
        let before = &self.objects[key].json;
        let changed = patched(before, write);
        if let Err(error) = user_api::check(key.kind, before, &changed) {
            panic!("an API server rejects a write to {key}: {error}");
        }
        Answer::Written(self.replace(key, changed))
    }

    /// Adds the objects to a digest. A version identifies the object.
    pub fn digest(&self, state: &mut impl Hasher) {
        for (key, stored) in &self.objects {
            (key, stored.object.meta().version).hash(state);
        }
        (&self.versions, &self.created).hash(state);
    }
}

fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}
