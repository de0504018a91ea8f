//! The API without HTTP: requests, answers, and the code that handles them.

mod background;
mod bind;
mod commit;
mod create;
mod delete;
mod list_options;
mod patch;
mod read;
mod request;
mod selector;
mod update;
mod watch;
mod write;

pub use request::{Answer, AnswerBody, Body, Format, List, Options, PatchType, Request, RequestContext, Target, Verb};
pub use watch::{Watch, WatchEvent, WatchEventType};
pub(crate) use write::second;

use crate::kinds::{self, Kind};
use crate::status::Status;
use crate::store::{self, JournalRecord, Store, Stored};
use background::BackgroundTasks;
use bytes::Bytes;
use selector::Selection;
use serde_json::Value;
use std::sync::Arc;
use write::Write;

/// All objects, and all operations on them.
#[derive(Debug)]
pub struct Api {
    store: Store,
    background: BackgroundTasks,
}

/// etcd's default.
pub const STORE_BYTES_DEFAULT: usize = 2 << 30;

/// Settings of an [`Api`].
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether [`Api::take_records`] returns the changes; otherwise they are not recorded.
    pub journal: bool,
    /// Whether this server collects garbage and empties deleted namespaces. A real API server
    /// leaves both to kube-controller-manager.
    pub controllers: bool,
    /// How many seconds of history are kept for watches and paged lists, within the other limits.
    pub history_seconds: u32,
    /// How many changes of one kind are kept at most.
    pub history_changes: usize,
    /// How many bytes of replaced objects are kept at most.
    pub history_bytes: usize,
    /// The size of all objects at which objects can no longer be created, nor grow.
    pub store_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            journal: false,
            controllers: true,
            history_seconds: 300,
            history_changes: 100_000,
            history_bytes: 64 << 20,
            store_bytes: STORE_BYTES_DEFAULT,
        }
    }
}

/// The persisted data cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreError(pub String);

impl std::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RestoreError {}

impl Api {
    /// An empty cluster with the system namespaces.
    pub fn new(settings: Settings, context: &RequestContext) -> Self {
        let mut api = Self { store: Store::new(settings, 0), background: BackgroundTasks::default() };
        api.create_system_namespaces(context);
        api
    }

    /// A cluster with persisted objects, in any order, as of `revision`.
    pub fn restore<Bucket: AsRef<str>>(
        settings: Settings,
        revision: u64,
        objects: impl IntoIterator<Item = (Bucket, String, Bytes)>,
        context: &RequestContext,
    ) -> Result<Self, RestoreError> {
        let mut api = Self { store: Store::new(settings, revision), background: BackgroundTasks::default() };
        for (bucket, key, bytes) in objects {
            let kind = kinds::all().iter().find(|kind| kind.bucket() == bucket.as_ref());
            let kind = kind.ok_or_else(|| RestoreError(format!("{}: unknown kind", bucket.as_ref())))?;
            let value: Value = serde_json::from_slice(&bytes)
                .map_err(|error| RestoreError(format!("{} {key:?}: {error}", bucket.as_ref())))?;
            let at = crate::value::text(&value, &["metadata", "resourceVersion"]).parse();
            let at: u64 =
                at.map_err(|_| RestoreError(format!("{} {key:?}: invalid resourceVersion", bucket.as_ref())))?;
            let object = store::encode(&value, at);
            api.background.on_put((kind.bucket(), &key), None, &object, &value, context.now);
            api.store.restore(kind.bucket(), Arc::from(key), Arc::new(object));
        }
        api.create_system_namespaces(context);
        Ok(api)
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// The objects, for metrics and snapshots.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The changes since the last call, in order. The caller must persist them as one batch before
    /// it sends an answer that depends on them, or shows their revision to a watch. Empty unless
    /// [`Settings::journal`] is set.
    pub fn take_records(&mut self) -> Vec<JournalRecord> {
        self.store.take_records()
    }

    /// Handles a request that changes nothing.
    pub fn read(&self, request: &Request) -> Result<Answer, Status> {
        match request.verb {
            Verb::Get => self.get(request),
            Verb::List => self.list(request),
            Verb::Create | Verb::Update | Verb::Patch(_) | Verb::Delete | Verb::DeleteCollection => {
                Err(Status::not_allowed())
            }
        }
    }

    /// Handles any request.
    pub fn handle(&mut self, context: &RequestContext, request: &Request) -> Result<Answer, Status> {
        validate_subresource(request)?;
        match request.verb {
            Verb::Get | Verb::List => self.read(request),
            Verb::Create => self.run_write(Write::new(context, request, "CreateOptions")?, Self::create),
            Verb::Update => self.run_write(Write::new(context, request, "UpdateOptions")?, Self::update),
            Verb::Patch(patch) => {
                self.run_write(Write::new(context, request, "PatchOptions")?, |api, write| api.patch(write, patch))
            }
            Verb::Delete => self.delete(context, request),
            Verb::DeleteCollection => self.delete_collection(context, request),
        }
    }
}

impl Api {
    /// Runs a write. A rejected write returns its warnings, too.
    fn run_write<'a>(
        &mut self,
        mut write: Write<'a>,
        operation: impl FnOnce(&mut Self, &mut Write<'a>) -> Result<Answer, Status>,
    ) -> Result<Answer, Status> {
        operation(self, &mut write).map_err(|mut status| {
            status.warnings = write.warnings;
            status
        })
    }
}

/// Checks that the subresource exists and supports the verb.
fn validate_subresource(request: &Request) -> Result<(), Status> {
    let Target { kind, subresource, .. } = &request.target;
    if subresource.is_empty() {
        return Ok(());
    }
    let known = kind.subresources.iter().find(|known| known.name == subresource).ok_or_else(Status::no_such_path)?;
    let verb = match request.verb {
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Create => "create",
        Verb::Update => "update",
        Verb::Patch(_) => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
    };
    if known.verbs.contains(&verb) { Ok(()) } else { Err(Status::not_allowed()) }
}

/// The key of an object.
fn key_of(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// The common prefix of all keys that a path refers to.
fn key_prefix(target: &Target) -> String {
    if target.namespace.is_empty() { String::new() } else { format!("{}/", target.namespace) }
}

/// Decodes a stored object.
fn decoded(object: &Stored) -> Value {
    serde_json::from_slice(&object.bytes).expect("stored objects are valid JSON")
}

/// A stored object in the form in which the kind is served.
fn show(kind: &Kind, bytes: &Bytes) -> Bytes {
    let Some(view) = kind.behavior.view else { return bytes.clone() };
    let mut value: Value = serde_json::from_slice(bytes).expect("stored objects are valid JSON");
    (view.show)(&mut value);
    store::encode_draft(&value)
}

#[cfg(test)]
mod tests;
