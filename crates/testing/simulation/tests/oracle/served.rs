//! The core of the embedded API server as a cluster, without HTTP and with the engine's clock.

use std::collections::{BTreeMap, VecDeque};

use bindery_apiserver::api::{AnswerBody, Body, PatchType, Settings, Watch, WatchEventType};
use bindery_apiserver::{Answer as Answered, Api, Options, RequestContext, Status, Target, Verb};
use bindery_engine::{Answer, Moment, RequestError};
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::{Operation, OperationOutput, Request, Write};
use bindery_simulation::user_api::{ApiError, UserApi};
use bindery_simulation::{EngineApi, RecyclerPods, WatchEvent, describe};
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The core of the embedded API server, in place of a `SimulatedCluster`. Operations succeed.
pub struct Served {
    api: Api,
    now: Timestamp,
    /// A counter that makes all timestamps unique.
    moments: u128,
    watches: BTreeMap<Kind, Watch>,
    pending_events: VecDeque<WatchEvent>,
    history: Vec<String>,
    effects: usize,
    recycler_pods: RecyclerPods,
}

impl Served {
    fn moment(&mut self) -> RequestContext {
        self.moments += 1;
        RequestContext { now: self.now, seed: self.moments << 32 }
    }

    /// Sends a request about an object, or about all of its kind if it has no name.
    fn send(&mut self, verb: Verb, key: &ObjectKey, subresource: &str, body: &Value) -> Result<Value, Status> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = request(verb, key, subresource, body);
        let moment = self.moment();
        let answer = self.api.handle(&moment, &request)?;
        self.tend();
        Ok(read(&object_of(answer)))
    }

    /// Runs the periodic work of the server.
    fn tend(&mut self) {
        loop {
            let moment = self.moment();
            if self.api.run_background_tasks(&moment) != Some(self.now) {
                return;
            }
        }
    }

    /// Creates an object.
    fn create_object(&mut self, key: &ObjectKey, object: &Value) -> Result<Value, Status> {
        let collection = ObjectKey { name: "".into(), ..key.clone() };
        self.send(Verb::Create, &collection, "", object)
    }

    fn carry_out(&mut self, request: &Request) -> Answer {
        let key = request.target();
        let decoded = |object: &Value| decode(key.kind, object.to_string().as_bytes());
        let written = |answer: Result<Value, Status>| match answer {
            Ok(object) => Answer::Written(decoded(&object)),
            Err(status) => Answer::Rejected(request_error(&status)),
        };
        match request {
            Request::Read(_) => match self.send(Verb::Get, &key, "", &Value::Null) {
                Ok(object) => Answer::Read(Some(decoded(&object))),
                Err(status) if status.http_code() == 404 => Answer::Read(None),
                Err(status) => Answer::Rejected(request_error(&status)),
            },
            Request::List(listing) => {
                let (_, objects) = self.read_all(listing.kind);
                let mut objects: Vec<Object> = objects.iter().map(|object| decode(listing.kind, object)).collect();
                objects.retain(|object| listing.namespace.is_empty() || object.meta().namespace == listing.namespace);
                Answer::Listed(objects)
            }
            Request::Write(write) => written(self.write(write)),
            Request::Create(create) => written(self.create_object(&key, &create.body)),
            Request::Bind(bind) => {
                let bound = self.send(Verb::Create, &key, "binding", &bind.body());
                written(bound.and_then(|_| self.send(Verb::Get, &key, "", &Value::Null)))
            }
            Request::Delete(delete) => {
                let volume = delete.proof().volume();
                let preconditions = json!({"uid": *volume.uid, "resourceVersion": volume.version.to_string()});
                let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions});
                match self.send(Verb::Delete, &key, "", &options) {
                    Ok(object) => Answer::Deleted(Some(decoded(&object))),
                    Err(status) => Answer::Rejected(request_error(&status)),
                }
            }
            Request::RunOperation(Operation::Recycle(recycle)) => {
                Answer::Done(self.recycler_pods.carry_out(recycle, Ok(OperationOutput::default())))
            }
            Request::RunOperation(_) => Answer::Done(Ok(OperationOutput::default())),
        }
    }

    fn write(&mut self, write: &Write) -> Result<Value, Status> {
        let subresource = write.edit().subresource().unwrap_or_default();
        let patch_type = match write.edit().patch_type() {
            bindery_rules_api::PatchType::Merge => PatchType::Merge,
            bindery_rules_api::PatchType::Strategic => PatchType::Strategic,
        };
        let patch = write.patch(&self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        self.send(Verb::Patch(patch_type), write.target(), subresource, &patch)
    }

    /// Lists all objects of a kind, with the revision.
    fn read_all(&self, kind: Kind) -> (u64, Vec<Bytes>) {
        let answer = self.api.read(&request(Verb::List, &ObjectKey::cluster(kind, ""), "", Bytes::new()));
        match answer.map(|answer| answer.body) {
            Ok(AnswerBody::List(list)) => (list.revision, list.items),
            Ok(AnswerBody::Object(_) | AnswerBody::Status(_)) => panic!("the answer to a list is not a list"),
            Err(status) => panic!("a list was rejected: {}", status.message),
        }
    }

    /// Reads new events from all watches, ordered by revision.
    fn read_watches(&mut self) {
        let revision = self.api.revision();
        let mut seen = Vec::new();
        for (kind, watch) in &mut self.watches {
            let changes = self.api.changes_after(watch.kind, watch.revision, revision, usize::MAX);
            for change in changes.expect("the history contains all changes since the last read") {
                let Some(event) = watch.select(&change) else { continue };
                let object = decode(*kind, &event.object);
                let watch_event = match event.kind {
                    WatchEventType::Added | WatchEventType::Modified => WatchEvent::Changed(object),
                    WatchEventType::Deleted => WatchEvent::Deleted(object.key(), change.revision),
                };
                seen.push((change.revision, watch_event));
            }
            watch.revision = revision;
        }
        seen.sort_by_key(|(revision, _)| *revision);
        self.pending_events.extend(seen.into_iter().map(|(_, event)| event));
    }
}

impl EngineApi for Served {
    fn list(&mut self, kind: Kind) -> (u64, Vec<Object>) {
        if !kind.is_served() {
            return (0, Vec::new());
        }
        let (revision, objects) = self.read_all(kind);
        let options = Options { resource_version: revision.to_string(), ..Options::default() };
        let watch = self.api.watch(&target(&ObjectKey::cluster(kind, ""), ""), &options);
        self.watches.insert(kind, watch.expect("a watch from the current revision starts"));
        self.pending_events.retain(|event| event.kind() != kind);
        (revision, objects.iter().map(|object| decode(kind, object)).collect())
    }

    fn next_watch_event(&mut self) -> Option<WatchEvent> {
        if self.pending_events.is_empty() {
            self.read_watches();
        }
        self.pending_events.pop_front()
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let answer = self.carry_out(request);
        let (_, words) = describe(request);
        let rejected = if let Answer::Rejected(error) = &answer { format!(": {error}") } else { String::new() };
        if !matches!(request, Request::Read(_) | Request::List(_)) && rejected.is_empty() {
            self.effects += 1;
        }
        self.history.push(words + &rejected);
        answer
    }

    fn set_time(&mut self, now: Moment) {
        self.now = start() + jiff::SignedDuration::try_from(now.0).unwrap_or(jiff::SignedDuration::MAX);
        self.tend();
    }

    fn effects(&self) -> usize {
        self.effects
    }

    fn history(&self) -> &[String] {
        &self.history
    }
}

impl UserApi for Served {
    fn empty() -> Served {
        let now = start();
        Served {
            api: Api::new(Settings::default(), &RequestContext { now, seed: 0 }),
            now,
            moments: 0,
            watches: BTreeMap::new(),
            pending_events: VecDeque::new(),
            history: Vec::new(),
            effects: 0,
            recycler_pods: RecyclerPods::default(),
        }
    }

    fn create(&mut self, key: &ObjectKey, object: Value) -> Result<String, ApiError> {
        let created = self.create_object(key, &object).map_err(|status| api_error(&status))?;
        Ok(created["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
    }

    fn patch(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), ApiError> {
        let patched = self.send(Verb::Patch(PatchType::Merge), key, "", patch);
        patched.map(drop).map_err(|status| api_error(&status))
    }

    fn patch_status(&mut self, key: &ObjectKey, patch: &Value) -> Result<(), ApiError> {
        let patched = self.send(Verb::Patch(PatchType::Merge), key, "status", patch);
        patched.map(drop).map_err(|status| api_error(&status))
    }

    fn delete(&mut self, key: &ObjectKey) -> Result<(), ApiError> {
        self.send(Verb::Delete, key, "", &Value::Null).map(drop).map_err(|status| api_error(&status))
    }

    fn get(&self, key: &ObjectKey) -> Option<Value> {
        let answer = self.api.read(&request(Verb::Get, key, "", Bytes::new()));
        answer.ok().map(|answer| read(&object_of(answer)))
    }

    fn objects(&self) -> Vec<(ObjectKey, Value)> {
        let of_kind = |kind| {
            let with_key = move |object: &Bytes| (decode(kind, object).key(), read(object));
            self.read_all(kind).1.iter().map(with_key).collect::<Vec<_>>()
        };
        [Kind::Claim, Kind::Volume].into_iter().flat_map(of_kind).collect()
    }
}

/// The time at the start.
fn start() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn target(key: &ObjectKey, subresource: &str) -> Target {
    let known = |version: &&str| bindery_apiserver::Kind::of_object(version, key.kind.as_str());
    let kind = ["v1", "storage.k8s.io/v1"].iter().find_map(known).expect("the server has all kinds that engines watch");
    Target {
        kind,
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        subresource: subresource.to_owned(),
    }
}

fn request(verb: Verb, key: &ObjectKey, subresource: &str, body: Bytes) -> bindery_apiserver::Request {
    bindery_apiserver::Request {
        verb,
        target: target(key, subresource),
        options: Options::default(),
        body: Body { bytes: body, ..Body::default() },
        user_agent: "sim".to_owned(),
    }
}

fn object_of(answer: Answered) -> Bytes {
    match answer.body {
        AnswerBody::Object(object) => object,
        AnswerBody::List(_) | AnswerBody::Status(_) => {
            panic!("the answer to a request about an object is not an object")
        }
    }
}

fn read(object: &Bytes) -> Value {
    serde_json::from_slice(object).expect("the server answers with JSON")
}

fn decode(kind: Kind, object: &[u8]) -> Object {
    Object::from_json(kind, object).expect("objects of the server have names")
}

/// Converts a rejection as `bindery_runtime` does.
fn request_error(status: &Status) -> RequestError {
    match (status.http_code(), status.reason) {
        (404, _) => RequestError::NotFound,
        (409, "AlreadyExists") => RequestError::AlreadyExists,
        (409, _) => RequestError::Conflict,
        (code, _) => RequestError::Error(code, status.message.clone()),
    }
}

fn api_error(status: &Status) -> ApiError {
    match status.reason {
        "AlreadyExists" => ApiError::AlreadyExists,
        "NotFound" => ApiError::NotFound,
        _ => ApiError::Invalid(status.message.clone()),
    }
}
