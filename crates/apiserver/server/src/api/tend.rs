//! What is done without being asked for: dependents of deleted owners go, deleted namespaces are emptied, events fade, history is let go of.

use super::delete::{DeleteOptions, Preconditions};
use super::{Api, Body, Moment, Options, PatchType, Request, Target, Verb, decoded, key_of};
use crate::kinds::{self, Kind};
use crate::store::Stored;
use crate::value::{at, list, map_mut, set, text, texts};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How long an event lasts after it was last written.
const EVENT_LIFE: SignedDuration = SignedDuration::from_hours(1);

/// How many chores are done before others get their turn.
const CHORES_AT_ONCE: usize = 256;

/// Where an object is stored.
type Place = (&'static str, String);

/// What is to be done, and what has to be remembered to know it.
#[derive(Debug, Default)]
pub(super) struct Chores {
    queue: BTreeSet<Chore>,
    /// The dependents of each owner, by its UID, whether the owner is there or not.
    dependents: BTreeMap<Box<str>, BTreeSet<Place>>,
    /// Owners that go when their dependents are gone, by UID.
    waiting: BTreeMap<Box<str>, Place>,
    /// Namespaces that are being emptied.
    terminating: BTreeSet<String>,
    events: BTreeMap<String, Timestamp>,
    fading: BTreeSet<(Timestamp, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Chore {
    /// Its owners may be gone.
    Dependent(Place),
    /// It is to go, and something is to become of its dependents.
    Owner(Place),
    /// It is to be emptied.
    Namespace(String),
}

impl Chores {
    /// Takes notice of an object that was written.
    pub fn notice_put(
        &mut self,
        place: (&'static str, &str),
        before: Option<&Stored>,
        after: &Stored,
        object: &Value,
        now: Timestamp,
    ) {
        let (space, key) = place;
        let place = || (space, key.to_owned());
        if before.map_or(&[][..], |before| &before.owners) != &*after.owners {
            self.forget_owners(&place(), before);
            for owner in &after.owners {
                self.dependents.entry(owner.clone()).or_default().insert(place());
            }
            if !after.owners.is_empty() {
                self.queue.insert(Chore::Dependent(place()));
            }
        }
        if space == "events" {
            self.fade_later(key, Some(now + EVENT_LIFE));
        }
        if at(object, &["metadata", "deletionTimestamp"]).is_none() {
            return;
        }
        if space == "namespaces" {
            self.terminating.insert(key.to_owned());
            self.queue.insert(Chore::Namespace(key.to_owned()));
        }
        if texts(object, &["metadata", "finalizers"]).any(|name| matches!(name, "orphan" | "foregroundDeletion")) {
            self.waiting.insert(after.uid.clone(), place());
            self.queue.insert(Chore::Owner(place()));
        }
    }

    /// Takes notice of an object that is gone.
    pub fn notice_removal(&mut self, space: &'static str, key: &str, last: &Stored) {
        let place = (space, key.to_owned());
        self.forget_owners(&place, Some(last));
        self.waiting.remove(&last.uid);
        let dependents = self.dependents.get(&last.uid).into_iter().flatten().cloned();
        self.queue.extend(dependents.map(Chore::Dependent));
        if space == "events" {
            self.fade_later(key, None);
        }
        if space == "namespaces" {
            self.terminating.remove(key);
        }
        if let Some((namespace, _)) = key.split_once('/')
            && self.terminating.contains(namespace)
        {
            self.queue.insert(Chore::Namespace(namespace.to_owned()));
        }
    }

    fn forget_owners(&mut self, place: &Place, object: Option<&Stored>) {
        for owner in object.into_iter().flat_map(|object| &object.owners) {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(place);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
            if let Some(owner) = self.waiting.get(owner) {
                self.queue.insert(Chore::Owner(owner.clone()));
            }
        }
    }

    fn fade_later(&mut self, key: &str, end: Option<Timestamp>) {
        let before = match end {
            Some(end) => self.events.insert(key.to_owned(), end),
            None => self.events.remove(key),
        };
        if let Some(before) = before {
            self.fading.remove(&(before, key.to_owned()));
        }
        if let Some(end) = end {
            self.fading.insert((end, key.to_owned()));
        }
    }
}

/// How an owner is, as one of its dependents sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// It is there.
    Solid,
    /// It is not, or no longer the same.
    Dangling,
    /// It goes once its dependents are gone.
    Waiting,
}

impl Api {
    /// Does what is due. Answers when there is more to be done; that may be at once.
    pub fn tend(&mut self, moment: &Moment) -> Option<Timestamp> {
        if !self.store.settings().chores {
            self.chores.queue.clear();
        }
        for turn in 0..CHORES_AT_ONCE {
            let Some(chore) = self.chores.queue.pop_first() else { break };
            let moment = Moment { seed: moment.seed.wrapping_add(turn as u128), ..*moment };
            match chore {
                Chore::Dependent((space, key)) => self.tend_dependent(&moment, space, &key),
                Chore::Owner((space, key)) => self.tend_owner(&moment, space, &key),
                Chore::Namespace(name) => self.tend_namespace(&moment, &name),
            }
        }
        while let Some((end, key)) = self.chores.fading.first().cloned().filter(|(end, _)| *end <= moment.now) {
            self.chores.fading.remove(&(end, key.clone()));
            if let Some(live) = self.store.get("events", &key) {
                let last = decoded(live);
                self.commit_removal(&kinds::event::KIND, &key, &last, moment.now);
            }
        }
        let compaction = self.store.compact(moment.now);
        if !self.chores.queue.is_empty() {
            return Some(moment.now);
        }
        let fading = self.chores.fading.first().map(|(end, _)| *end);
        fading.into_iter().chain(compaction).min()
    }

    fn tend_dependent(&mut self, moment: &Moment, space: &'static str, key: &str) {
        let (Some(live), Some(kind)) = (self.store.get(space, key), kind_in(space)) else { return };
        let (object, uid) = (decoded(live), live.uid.clone());
        let finalizer = |name: &str| texts(&object, &["metadata", "finalizers"]).any(|one| one == name);
        if at(&object, &["metadata", "deletionTimestamp"]).is_some() && !finalizer("foregroundDeletion") {
            return;
        }
        let owners = list(&object, &["metadata", "ownerReferences"]);
        let seen: Vec<Owner> = owners.iter().map(|owner| self.see_owner(kind, &object, owner)).collect();
        if seen.is_empty() {
            return;
        }
        if seen.contains(&Owner::Solid) {
            let kept = owners.iter().zip(&seen).filter(|(_, seen)| **seen == Owner::Solid).map(|(owner, _)| owner);
            let kept: Vec<Value> = kept.cloned().collect();
            if kept.len() < owners.len() {
                self.amend(moment, kind, key, &json!({"metadata": {"uid": &*uid, "ownerReferences": kept}}));
            }
            return;
        }
        let has_dependents = self.chores.dependents.contains_key(&uid);
        let policy = if (seen.contains(&Owner::Waiting) && has_dependents) || finalizer("foregroundDeletion") {
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
        // The object was just seen, and nothing else is done meanwhile: there is nothing that could refuse.
        let _gone = self.remove(moment.now, &target(kind, key), &options, false);
    }

    fn see_owner(&self, kind: &Kind, object: &Value, owner: &Value) -> Owner {
        let of = |field| text(owner, &[field]);
        let Some(owner_kind) = Kind::of_object(of("apiVersion"), of("kind")) else { return Owner::Solid };
        let namespace = text(object, &["metadata", "namespace"]);
        if owner_kind.namespaced && !kind.namespaced {
            return Owner::Solid;
        }
        let key = key_of(if owner_kind.namespaced { namespace } else { "" }, of("name"));
        match self.store.get(owner_kind.space, &key) {
            Some(found) if *found.uid == *of("uid") => {
                let found = decoded(found);
                let deleting = at(&found, &["metadata", "deletionTimestamp"]).is_some();
                let foreground = texts(&found, &["metadata", "finalizers"]).any(|name| name == "foregroundDeletion");
                if deleting && foreground { Owner::Waiting } else { Owner::Solid }
            }
            Some(_) | None => Owner::Dangling,
        }
    }

    fn tend_owner(&mut self, moment: &Moment, space: &'static str, key: &str) {
        let (Some(live), Some(kind)) = (self.store.get(space, key), kind_in(space)) else { return };
        let (object, uid) = (decoded(live), live.uid.clone());
        let dependents: Vec<Place> = self.chores.dependents.get(&uid).into_iter().flatten().cloned().collect();
        let mut finalizers: Vec<Value> = list(&object, &["metadata", "finalizers"]).to_vec();
        if finalizers.iter().any(|name| name == "orphan") {
            for (space, key) in &dependents {
                self.orphan(moment, space, key, &uid);
            }
            finalizers.retain(|name| name != "orphan");
        } else {
            let blocking: Vec<Place> = dependents.into_iter().filter(|place| self.blocks(place, &uid)).collect();
            if !blocking.is_empty() {
                let to_go = blocking.into_iter().filter(|(space, key)| {
                    let found = self.store.get(space, key);
                    found.is_some_and(|found| at(&decoded(found), &["metadata", "deletionTimestamp"]).is_none())
                });
                let to_go: Vec<Chore> = to_go.map(Chore::Dependent).collect();
                self.chores.queue.extend(to_go);
                return;
            }
            finalizers.retain(|name| name != "foregroundDeletion");
        }
        self.amend(moment, kind, key, &json!({"metadata": {"uid": &*uid, "finalizers": finalizers}}));
    }

    fn blocks(&self, (space, key): &Place, owner: &str) -> bool {
        let Some(found) = self.store.get(space, key) else { return false };
        let found = decoded(found);
        list(&found, &["metadata", "ownerReferences"])
            .iter()
            .any(|one| text(one, &["uid"]) == owner && at(one, &["blockOwnerDeletion"]) == Some(&Value::Bool(true)))
    }

    fn orphan(&mut self, moment: &Moment, space: &'static str, key: &str, owner: &str) {
        let (Some(live), Some(kind)) = (self.store.get(space, key), kind_in(space)) else { return };
        let (mut owners, uid) = (list(&decoded(live), &["metadata", "ownerReferences"]).to_vec(), live.uid.clone());
        owners.retain(|one| text(one, &["uid"]) != owner);
        self.amend(moment, kind, key, &json!({"metadata": {"uid": &*uid, "ownerReferences": owners}}));
    }

    /// Patches an object, as a controller would.
    fn amend(&mut self, moment: &Moment, kind: &'static Kind, key: &str, patch: &Value) {
        let request = Request {
            verb: Verb::Patch(PatchType::Merge),
            target: target(kind, key),
            options: Options::default(),
            body: Body { bytes: patch.to_string().into(), ..Body::default() },
            user_agent: "kube-controller-manager".to_owned(),
        };
        // An object that has become invalid stays as it is, as it would upstream.
        let _answer = self.handle(moment, &request);
    }

    fn tend_namespace(&mut self, moment: &Moment, name: &str) {
        let Some(live) = self.store.get("namespaces", name) else { return };
        let mut namespace = decoded(live);
        if at(&namespace, &["metadata", "deletionTimestamp"]).is_none() {
            return;
        }
        let prefix = format!("{name}/");
        let mut left = false;
        for kind in kinds::all().iter().filter(|kind| kind.namespaced && kind.manners.view.is_none()) {
            let keys = self.store.list(kind.space, &prefix, "", None).ok().into_iter().flatten();
            let keys: Vec<String> = keys.map(|(key, _)| key.to_string()).collect();
            for key in keys {
                let options =
                    DeleteOptions { propagation_policy: Some("Background".to_owned()), ..DeleteOptions::default() };
                let gone = self.remove(moment.now, &target(kind, &key), &options, false);
                left |= !gone.is_ok_and(|(_, gone)| gone);
            }
        }
        // Removing the last of them made a note to look again, which is not needed.
        self.chores.queue.remove(&Chore::Namespace(name.to_owned()));
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
        if super::update::is_done("namespaces", &namespace) {
            self.commit_removal(kind, name, &was, moment.now);
        } else if namespace != was {
            self.commit(kind, name, &namespace, moment.now);
        }
    }
}

/// The kind that is stored somewhere, in the version in which it is.
fn kind_in(space: &str) -> Option<&'static Kind> {
    kinds::all().iter().copied().find(|kind| kind.space == space && kind.manners.view.is_none())
}

fn target(kind: &'static Kind, key: &str) -> Target {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    Target { kind, namespace: namespace.to_owned(), name: name.to_owned(), subresource: String::new() }
}
