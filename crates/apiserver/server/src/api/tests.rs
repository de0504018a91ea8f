//! The API as a whole: a state, a request, the state after it.

mod background;
mod deleting;
mod kinds;
mod listing;
mod pods;
mod watching;
mod writing;

use super::*;
use crate::value::text;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// A server, and a clock that the test moves.
pub(super) struct TestServer {
    pub api: Api,
    pub now: Timestamp,
    seed: u128,
}

/// A status code, and the body.
pub(super) type Outcome = (u16, Value);

impl TestServer {
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().expect("a time");
        Self { api: Api::new(settings, &RequestContext { now, seed: 1 }), now, seed: 1 }
    }

    pub fn context(&mut self) -> RequestContext {
        self.seed += 1;
        RequestContext { now: self.now, seed: self.seed << 32 }
    }

    pub fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Sends a request to a path such as `configmaps/default/a/status?dryRun=All`: kind, namespace
    /// and name, subresource, options.
    pub fn send(&mut self, verb: Verb, path: &str, body: Value) -> Outcome {
        let request = request(verb, path, body);
        let context = self.context();
        match self.api.handle(&context, &request) {
            Ok(answer) => (answer.code, json_of(answer.body)),
            Err(status) => (status.http_code(), serde_json::to_value(&status).expect("a status is JSON")),
        }
    }

    pub fn get(&mut self, path: &str) -> Outcome {
        self.send(Verb::Get, path, Value::Null)
    }

    pub fn list(&mut self, path: &str) -> Outcome {
        self.send(Verb::List, path, Value::Null)
    }

    pub fn create(&mut self, path: &str, body: Value) -> Outcome {
        self.send(Verb::Create, path, body)
    }

    /// Creates an object, which must succeed.
    pub fn make(&mut self, path: &str, body: Value) -> Value {
        let (code, created) = self.create(path, body);
        assert_eq!(code, 201, "{created}");
        created
    }

    pub fn update(&mut self, path: &str, body: Value) -> Outcome {
        self.send(Verb::Update, path, body)
    }

    pub fn merge(&mut self, path: &str, body: Value) -> Outcome {
        self.send(Verb::Patch(PatchType::Merge), path, body)
    }

    pub fn delete(&mut self, path: &str, options: Value) -> Outcome {
        self.send(Verb::Delete, path, options)
    }

    /// Runs all background tasks that are due.
    pub fn run_background_tasks(&mut self) -> Option<Timestamp> {
        loop {
            let context = self.context();
            let due = self.api.run_background_tasks(&context);
            if due != Some(self.now) {
                return due;
            }
        }
    }

    pub fn names(&mut self, path: &str) -> Vec<String> {
        let (code, list) = self.list(path);
        assert_eq!(code, 200, "{list}");
        names_in(&list)
    }
}

pub(super) fn names_in(list: &Value) -> Vec<String> {
    crate::value::list(list, &["items"]).iter().map(|item| text(item, &["metadata", "name"]).to_owned()).collect()
}

fn json_of(body: AnswerBody) -> Value {
    let bytes = match body {
        AnswerBody::Object(bytes) => bytes.to_vec(),
        AnswerBody::List(list) => crate::http::list_bytes(list),
        AnswerBody::Status(status) => serde_json::to_vec(&*status).expect("a status is JSON"),
    };
    serde_json::from_slice(&bytes).expect("bodies are JSON")
}

pub(super) fn target(path: &str) -> Target {
    let mut parts = path.split('/');
    let plural = parts.next().unwrap_or_default();
    let (plural, group) = plural.split_once('.').unwrap_or((plural, ""));
    let kind = Kind::of_path(group, "v1", plural).unwrap_or_else(|| panic!("no kind {plural} in {group:?}"));
    let namespace = if kind.namespaced { parts.next().unwrap_or_default().to_owned() } else { String::new() };
    let mut next = || parts.next().unwrap_or_default().to_owned();
    Target { kind, namespace, name: next(), subresource: next() }
}

pub(super) fn options(query: &str) -> Options {
    let mut options = Options::default();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let text = || value.to_owned();
        match name {
            "resourceVersion" => options.resource_version = text(),
            "resourceVersionMatch" => options.resource_version_match = text(),
            "limit" => options.limit = value.parse().expect("a number"),
            "continue" => options.continue_token = text(),
            "labelSelector" => options.label_selector = text(),
            "fieldSelector" => options.field_selector = text(),
            "sendInitialEvents" => options.send_initial_events = Some(value == "true"),
            "allowWatchBookmarks" => options.allow_watch_bookmarks = value == "true",
            "fieldManager" => options.field_manager = text(),
            "fieldValidation" => options.field_validation = text(),
            "force" => options.force = Some(value == "true"),
            "dryRun" => options.dry_run.push(text()),
            _ => panic!("no option {name}"),
        }
    }
    options
}

fn request(verb: Verb, path: &str, body: Value) -> Request {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let bytes = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    Request {
        verb,
        target: target(path),
        options: options(query),
        body: Body { bytes, ..Body::default() },
        user_agent: "tester/1".to_owned(),
    }
}

/// The code, reason and message of a rejected request.
pub(super) fn rejected(outcome: &Outcome) -> (u16, &str, &str) {
    (outcome.0, text(&outcome.1, &["reason"]), text(&outcome.1, &["message"]))
}

pub(super) fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"x": "1"}})
}

pub(super) fn volume(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}})
}

pub(super) fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}})
}

pub(super) fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "b"}]}})
}
