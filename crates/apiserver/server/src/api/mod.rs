//! The API as values: requests, answers, and what answers them.

mod bind;
mod call;
mod commit;
mod create;
mod delete;
mod list_options;
mod patch;
mod read;
mod request;
mod selector;
mod tend;
mod update;
mod watch;

pub(crate) use call::second;
pub use request::{Answer, Body, Done, Format, List, Moment, Options, PatchType, Request, Target, Verb};
pub use watch::{Watch, WatchEvent, WatchEventType};

use crate::kinds::{self, Kind};
use crate::status::Status;
use crate::store::{self, Record, Store, Stored};
use bytes::Bytes;
use call::Call;
use selector::Selection;
use serde_json::Value;
use std::sync::Arc;
use tend::Chores;

/// All objects, and everything that may be done with them.
#[derive(Debug)]
pub struct Api {
    store: Store,
    chores: Chores,
}

/// How an [`Api`] is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether commits are to be handed out by [`Api::take_records`]; without it none are kept.
    pub journal: bool,
    /// Whether garbage is collected and deleted namespaces are emptied here. A real API server leaves both to
    /// kube-controller-manager.
    pub chores: bool,
    /// How many seconds of history are kept for watches and paged lists, while there is room.
    pub history_seconds: u32,
    /// How many changes of one kind are kept at most.
    pub history_changes: usize,
    /// How many bytes of replaced objects history may hold on to.
    pub history_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { journal: false, chores: true, history_seconds: 300, history_changes: 100_000, history_bytes: 64 << 20 }
    }
}

/// What was persisted is not what this server writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRestored(pub String);

impl std::fmt::Display for NotRestored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotRestored {}

impl Api {
    /// An empty cluster, with the namespaces that every cluster has.
    pub fn new(settings: Settings, moment: &Moment) -> Self {
        let mut api = Self { store: Store::new(settings, 0), chores: Chores::default() };
        api.make_system_namespaces(moment);
        api
    }

    /// A cluster as it was persisted: what is held at each key after all records up to `revision`, in any order.
    pub fn restore<Space: AsRef<str>>(
        settings: Settings,
        revision: u64,
        objects: impl IntoIterator<Item = (Space, String, Bytes)>,
        moment: &Moment,
    ) -> Result<Self, NotRestored> {
        let mut api = Self { store: Store::new(settings, revision), chores: Chores::default() };
        for (space, key, bytes) in objects {
            let kind = kinds::all().iter().find(|kind| kind.space == space.as_ref());
            let kind = kind.ok_or_else(|| NotRestored(format!("{}: no such kind", space.as_ref())))?;
            let value: Value = serde_json::from_slice(&bytes)
                .map_err(|flaw| NotRestored(format!("{} {key:?}: {flaw}", space.as_ref())))?;
            let at = crate::value::text(&value, &["metadata", "resourceVersion"]).parse();
            let at: u64 = at.map_err(|_| NotRestored(format!("{} {key:?}: no resourceVersion", space.as_ref())))?;
            let object = store::encode(&value, at);
            api.chores.notice_put((kind.space, &key), None, &object, &value, moment.now);
            api.store.restore(kind.space, Arc::from(key), Arc::new(object));
        }
        api.make_system_namespaces(moment);
        Ok(api)
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: &Kind) -> usize {
        self.store.count(kind.space)
    }

    /// What was written since this was last asked, in order: to be made durable, as one batch, before any of the answers that go with it
    /// is sent, or any watch is shown a revision of it. Empty unless [`Settings::journal`] is set.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.store.take_records()
    }

    /// Answers a request that changes nothing.
    pub fn read(&self, request: &Request) -> Result<Answer, Status> {
        match request.verb {
            Verb::Get => self.get(request),
            Verb::List => self.list(request),
            Verb::Create | Verb::Update | Verb::Patch(_) | Verb::Delete | Verb::DeleteCollection => {
                Err(Status::not_allowed())
            }
        }
    }

    /// Answers any request.
    pub fn handle(&mut self, moment: &Moment, request: &Request) -> Result<Answer, Status> {
        check_subresource(request)?;
        match request.verb {
            Verb::Get | Verb::List => self.read(request),
            Verb::Create => self.write(Call::new(moment, request, "CreateOptions")?, Self::create),
            Verb::Update => self.write(Call::new(moment, request, "UpdateOptions")?, Self::update),
            Verb::Patch(patch) => {
                self.write(Call::new(moment, request, "PatchOptions")?, |api, call| api.patch(call, patch))
            }
            Verb::Delete => self.delete(moment, request),
            Verb::DeleteCollection => self.delete_collection(moment, request),
        }
    }
}

impl Api {
    /// Does a write. What was to be warned of is told even if the write is refused.
    fn write<'a>(
        &mut self,
        mut call: Call<'a>,
        doing: impl FnOnce(&mut Self, &mut Call<'a>) -> Result<Answer, Status>,
    ) -> Result<Answer, Status> {
        doing(self, &mut call).map_err(|mut status| {
            status.warnings = call.warnings;
            status
        })
    }
}

/// What is done with a path below an object must be possible there.
fn check_subresource(request: &Request) -> Result<(), Status> {
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

/// What the keys of all objects begin with that a path is about.
fn key_prefix(target: &Target) -> String {
    if target.namespace.is_empty() { String::new() } else { format!("{}/", target.namespace) }
}

/// An object as the store holds it, decoded.
fn decoded(object: &Stored) -> Value {
    serde_json::from_slice(&object.bytes).expect("the store holds what was encoded")
}

/// A stored object in the form in which a kind shows it.
fn show(kind: &Kind, bytes: &Bytes) -> Bytes {
    let Some(view) = kind.manners.view else { return bytes.clone() };
    let mut value: Value = serde_json::from_slice(bytes).expect("the store holds what was encoded");
    (view.show)(&mut value);
    store::encode_draft(&value)
}

#[cfg(test)]
mod tests;
