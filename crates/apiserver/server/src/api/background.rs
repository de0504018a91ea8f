//! Work that no request asks for: garbage collection, emptying of deleted namespaces, expiry of
//! events, and compaction of history.

use super::delete::{DeleteOptions, Preconditions};
use super::{Api, Body, Options, PatchType, Request, RequestContext, Target, Verb, decoded, key_of};
use crate::kinds::{self, Kind};
use crate::store::Stored;
use crate::value::{at, list, map_mut, set, text, texts};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How long an event is kept after its last write.
const EVENT_TTL: SignedDuration = SignedDuration::from_hours(1);

/// How many tasks run, and how many events expire, before the store is unlocked again. Tasks end
/// early once they have made this many writes.
const TASKS_PER_RUN: usize = 256;

/// The bucket and the key of a stored object.
type Location = (&'static str, String);

/// The pending tasks, and the indices that find them.
#[derive(Debug, Default)]
pub(super) struct BackgroundTasks {
    queue: BTreeSet<Task>,
    /// The dependents of each owner, by the owner's UID, whether or not the owner exists.
    dependents: BTreeMap<Box<str>, BTreeSet<Location>>,
    /// Owners whose deletion waits for their dependents, by UID.
    deleting_owners: BTreeMap<Box<str>, Location>,
    /// Namespaces that are being emptied.
    terminating: BTreeSet<String>,
    events: BTreeMap<String, Timestamp>,
    expirations: BTreeSet<(Timestamp, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Check whether the object's owners still exist.
    Dependent(Location),
    /// Handle the dependents of an owner that is being deleted.
    Owner(Location),
    /// Delete the contents of a namespace.
    Namespace(String),
}

impl BackgroundTasks {
    /// Updates the indices after an object was written.
    pub fn on_put(
        &mut self,
        location: (&'static str, &str),
        before: Option<&Stored>,
        after: &Stored,
        object: &Value,
        now: Timestamp,
    ) {
        let (bucket, key) = location;
        let location = || (bucket, key.to_owned());
        if before.map_or(&[][..], |before| &before.owners) != &*after.owners {
            self.forget_owners(&location(), before);
            for owner in &after.owners {
                self.dependents.entry(owner.clone()).or_default().insert(location());
            }
            if !after.owners.is_empty() {
                self.queue.insert(Task::Dependent(location()));
            }
        }
        if bucket == "events" {
            self.set_event_expiry(key, Some(now + EVENT_TTL));
        }
        if at(object, &["metadata", "deletionTimestamp"]).is_none() {
            return;
        }
        if bucket == "namespaces" {
            self.terminating.insert(key.to_owned());
            self.queue.insert(Task::Namespace(key.to_owned()));
        }
        if texts(object, &["metadata", "finalizers"]).any(|name| matches!(name, "orphan" | "foregroundDeletion")) {
            self.deleting_owners.insert(after.uid.clone(), location());
            self.queue.insert(Task::Owner(location()));
        }
    }

    /// Updates the indices after an object was deleted.
    pub fn on_delete(&mut self, bucket: &'static str, key: &str, last: &Stored) {
        let location = (bucket, key.to_owned());
        self.forget_owners(&location, Some(last));
        self.deleting_owners.remove(&last.uid);
        let dependents = self.dependents.get(&last.uid).into_iter().flatten().cloned();
        self.queue.extend(dependents.map(Task::Dependent));
        if bucket == "events" {
            self.set_event_expiry(key, None);
        }
        if bucket == "namespaces" {
            self.terminating.remove(key);
        }
        if let Some((namespace, _)) = key.split_once('/')
            && self.terminating.contains(namespace)
        {
            self.queue.insert(Task::Namespace(namespace.to_owned()));
        }
    }

    fn forget_owners(&mut self, location: &Location, object: Option<&Stored>) {
        for owner in object.into_iter().flat_map(|object| &object.owners) {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(location);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
            if let Some(owner) = self.deleting_owners.get(owner) {
                self.queue.insert(Task::Owner(owner.clone()));
            }
        }
    }

    fn set_event_expiry(&mut self, key: &str, end: Option<Timestamp>) {
        let before = match end {
            Some(end) => self.events.insert(key.to_owned(), end),
            None => self.events.remove(key),
        };
        if let Some(before) = before {
            self.expirations.remove(&(before, key.to_owned()));
        }
        if let Some(end) = end {
            self.expirations.insert((end, key.to_owned()));
        }
    }
}

/// The state of an owner, in the terms of upstream's garbage collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnerState {
    /// It exists.
    Solid,
    /// It does not exist, or has another UID.
    Dangling,
    /// It is deleted once its dependents are deleted.
    WaitingForDependents,
}

impl Api {
    /// Runs the tasks that are due. Returns when the next one is due, which may be immediately.
    pub fn run_background_tasks(&mut self, context: &RequestContext) -> Option<Timestamp> {
        if !self.store.settings().controllers {
            self.background.queue.clear();
        }
        let writes_end = self.store.revision() + TASKS_PER_RUN as u64;
        for number in 0..TASKS_PER_RUN {
            // A namespace that is not empty yet is queued again: the next run continues with it.
            if self.store.revision() >= writes_end {
                break;
            }
            let Some(task) = self.background.queue.pop_first() else { break };
            let context = RequestContext { seed: context.seed.wrapping_add(number as u128), ..*context };
            match task {
                Task::Dependent((bucket, key)) => self.collect_dependent(&context, bucket, &key),
                Task::Owner((bucket, key)) => self.finish_owner(&context, bucket, &key),
                Task::Namespace(name) => self.empty_namespace(&context, &name, writes_end),
            }
        }
        for _ in 0..TASKS_PER_RUN {
            let due = self.background.expirations.first().cloned().filter(|(end, _)| *end <= context.now);
            let Some((end, key)) = due else { break };
            self.background.expirations.remove(&(end, key.clone()));
            if let Some(live) = self.store.get("events", &key) {
                let last = decoded(live);
                self.commit_removal(&kinds::event::KIND, &key, &last, context.now);
            }
        }
        let compaction = self.store.compact(context.now);
        if !self.background.queue.is_empty() {
            return Some(context.now);
        }
        let expirations = self.background.expirations.first().map(|(end, _)| *end);
        // What is overdue is due now.
        expirations.into_iter().chain(compaction).min().map(|due| due.max(context.now))
    }

    fn collect_dependent(&mut self, context: &RequestContext, bucket: &'static str, key: &str) {
        let (Some(live), Some(kind)) = (self.store.get(bucket, key), kind_in(bucket)) else { return };
        let (object, uid) = (decoded(live), live.uid.clone());
        let finalizer = |name: &str| texts(&object, &["metadata", "finalizers"]).any(|one| one == name);
        if at(&object, &["metadata", "deletionTimestamp"]).is_some() && !finalizer("foregroundDeletion") {
            return;
        }
        let owners = list(&object, &["metadata", "ownerReferences"]);
        let states: Vec<OwnerState> = owners.iter().map(|owner| self.owner_state(kind, &object, owner)).collect();
        if states.is_empty() {
            return;
        }
        if states.contains(&OwnerState::Solid) {
            let load_or_create =
                owners.iter().zip(&states).filter(|(_, states)| **states == OwnerState::Solid).map(|(owner, _)| owner);
            let load_or_create: Vec<Value> = load_or_create.cloned().collect();
            if load_or_create.len() < owners.len() {
                self.patch_as_controller(
                    context,
                    kind,
                    key,
                    &json!({"metadata": {"uid": &*uid, "ownerReferences": load_or_create}}),
                );
            }
            return;
        }
        let has_dependents = self.background.dependents.contains_key(&uid);
        let policy = if (states.contains(&OwnerState::WaitingForDependents) && has_dependents)
            || finalizer("foregroundDeletion")
        {
            "Foreground"
        } else if finalizer("orphan") {
            "Orphan"
        } else {
            "Background"
        };
        let options = DeleteOptions {
            propagation_policy: Some(policy.to_owned()),
            preconditions: Some(Preconditions { uid: Some(uid.to_string()), resource_version: None }),
            ..DeleteOptions::default()
        };
        // The object was just read, and nothing else can have changed it: this cannot fail.
        let _gone = self.remove(context.now, &target(kind, key), &options, false);
    }

    fn owner_state(&self, kind: &Kind, object: &Value, owner: &Value) -> OwnerState {
        let of = |field| text(owner, &[field]);
        let Some(owner_kind) = Kind::of_object(of("apiVersion"), of("kind")) else { return OwnerState::Solid };
        let namespace = text(object, &["metadata", "namespace"]);
        if owner_kind.namespaced && !kind.namespaced {
            return OwnerState::Solid;
        }
        let key = key_of(if owner_kind.namespaced { namespace } else { "" }, of("name"));
        match self.store.get(owner_kind.bucket(), &key) {
            Some(found) if *found.uid == *of("uid") => {
                let found = decoded(found);
                let deleting = at(&found, &["metadata", "deletionTimestamp"]).is_some();
                let foreground = texts(&found, &["metadata", "finalizers"]).any(|name| name == "foregroundDeletion");
                if deleting && foreground { OwnerState::WaitingForDependents } else { OwnerState::Solid }
            }
            Some(_) | None => OwnerState::Dangling,
        }
    }

    fn finish_owner(&mut self, context: &RequestContext, bucket: &'static str, key: &str) {
        let (Some(live), Some(kind)) = (self.store.get(bucket, key), kind_in(bucket)) else { return };
        let (object, uid) = (decoded(live), live.uid.clone());
        let dependents: Vec<Location> = self.background.dependents.get(&uid).into_iter().flatten().cloned().collect();
        let mut finalizers: Vec<Value> = list(&object, &["metadata", "finalizers"]).to_vec();
        if finalizers.iter().any(|name| name == "orphan") {
            for (bucket, key) in &dependents {
                self.orphan(context, bucket, key, &uid);
            }
            finalizers.retain(|name| name != "orphan");
        } else {
            let blocking: Vec<Location> =
                dependents.into_iter().filter(|location| self.blocks(location, &uid)).collect();
            if !blocking.is_empty() {
                let undeleted = blocking.into_iter().filter(|(bucket, key)| {
                    let found = self.store.get(bucket, key);
                    found.is_some_and(|found| at(&decoded(found), &["metadata", "deletionTimestamp"]).is_none())
                });
                let undeleted: Vec<Task> = undeleted.map(Task::Dependent).collect();
                self.background.queue.extend(undeleted);
                return;
            }
            finalizers.retain(|name| name != "foregroundDeletion");
        }
        self.patch_as_controller(context, kind, key, &json!({"metadata": {"uid": &*uid, "finalizers": finalizers}}));
    }

    fn blocks(&self, (bucket, key): &Location, owner: &str) -> bool {
        let Some(found) = self.store.get(bucket, key) else { return false };
        let found = decoded(found);
        list(&found, &["metadata", "ownerReferences"])
            .iter()
            .any(|one| text(one, &["uid"]) == owner && at(one, &["blockOwnerDeletion"]) == Some(&Value::Bool(true)))
    }

    fn orphan(&mut self, context: &RequestContext, bucket: &'static str, key: &str, owner: &str) {
        let (Some(live), Some(kind)) = (self.store.get(bucket, key), kind_in(bucket)) else { return };
        let (mut owners, uid) = (list(&decoded(live), &["metadata", "ownerReferences"]).to_vec(), live.uid.clone());
        owners.retain(|one| text(one, &["uid"]) != owner);
        self.patch_as_controller(context, kind, key, &json!({"metadata": {"uid": &*uid, "ownerReferences": owners}}));
    }

    /// Patches an object, as kube-controller-manager would.
    fn patch_as_controller(&mut self, context: &RequestContext, kind: &'static Kind, key: &str, patch: &Value) {
        let request = Request {
            verb: Verb::Patch(PatchType::Merge),
            target: target(kind, key),
            options: Options::default(),
            body: Body { bytes: patch.to_string().into(), ..Body::default() },
            user_agent: "kube-controller-manager".to_owned(),
        };
        // As upstream, an object that has become invalid is not changed.
        let _answer = self.handle(context, &request);
    }

    /// Deletes objects of a namespace until the revision is `writes_end`, and the namespace once
    /// it is empty.
    fn empty_namespace(&mut self, context: &RequestContext, name: &str, writes_end: u64) {
        let Some(live) = self.store.get("namespaces", name) else { return };
        let mut namespace = decoded(live);
        if at(&namespace, &["metadata", "deletionTimestamp"]).is_none() {
            return;
        }
        let prefix = format!("{name}/");
        let mut left = false;
        for kind in kinds::all().iter().filter(|kind| kind.namespaced && kind.behavior.view.is_none()) {
            let keys = self.store.list(kind.bucket(), &prefix, "", None).ok().into_iter().flatten();
            let keys: Vec<String> = keys.map(|(key, _)| key.to_string()).collect();
            for key in keys {
                let options =
                    DeleteOptions { propagation_policy: Some("Background".to_owned()), ..DeleteOptions::default() };
                let gone = self.remove(context.now, &target(kind, &key), &options, false);
                left |= !gone.is_ok_and(|(_, gone)| gone);
                if self.store.revision() >= writes_end {
                    self.background.queue.insert(Task::Namespace(name.to_owned()));
                    return;
                }
            }
        }
        // Deleting the last object queued this namespace again, which is not needed.
        self.background.queue.remove(&Task::Namespace(name.to_owned()));
        if left {
            return;
        }
        let mut finalizers = list(&namespace, &["spec", "finalizers"]).to_vec();
        finalizers.retain(|one| one != "kubernetes");
        let was = namespace.clone();
        if finalizers.is_empty() {
            map_mut(&mut namespace, &["spec"]).remove("finalizers");
        } else {
            set(&mut namespace, &["spec", "finalizers"], finalizers);
        }
        let kind = &kinds::namespace::KIND;
        if super::update::is_deletable("namespaces", &namespace) {
            self.commit_removal(kind, name, &was, context.now);
        } else if namespace != was {
            self.commit(kind, name, &namespace, context.now);
        }
    }
}

/// The kind that is stored in a bucket.
fn kind_in(bucket: &str) -> Option<&'static Kind> {
    kinds::all().iter().copied().find(|kind| kind.bucket() == bucket && kind.behavior.view.is_none())
}

fn target(kind: &'static Kind, key: &str) -> Target {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    Target { kind, namespace: namespace.to_owned(), name: name.to_owned(), subresource: String::new() }
}
