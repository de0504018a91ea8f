//! The queue of watched changes, from the watches to the engine task.
//!
//! A watch never waits for the engine, so the queue coalesces: a change is dropped when a later one
//! of the same object makes it obsolete. What remains is delivered in the order of the watch, so
//! that the engine sees a valid history with gaps, as after a watch that was resumed late, and a
//! kind's version is never ahead of the changes that were delivered. A deletion is kept if the
//! object was created again, because the rules distinguish a new object of the same name.
//!
//! The queue holds at most two changes of each object, and a list and a bookmark of each kind. An
//! object that changes again before its turn loses its place; while the engine is behind on every
//! object, an object that changes all the time waits until the others change less often.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bindery_engine::Input;
use bindery_model::{Kind, Object, ObjectKey};
use tokio::sync::Notify;

/// A change that a watch reports.
#[derive(Debug, Clone)]
pub enum WatchedChange {
    /// All objects of a kind at a resourceVersion.
    Listed(Kind, u64, Vec<Object>),
    /// An object was added or modified.
    Changed(Object),
    /// An object was deleted, at a resourceVersion.
    Deleted(ObjectKey, u64),
    /// The watch of a kind is complete up to a resourceVersion.
    Bookmark(Kind, u64),
}

impl From<WatchedChange> for Input {
    fn from(change: WatchedChange) -> Input {
        match change {
            WatchedChange::Listed(kind, version, objects) => Input::Listed { kind, version, objects },
            WatchedChange::Changed(object) => Input::Watched(object),
            WatchedChange::Deleted(key, version) => Input::Deleted { key, version },
            WatchedChange::Bookmark(kind, version) => Input::Bookmark { kind, version },
        }
    }
}

/// A queue of changes: where watches send, and where the engine task receives.
pub fn change_queue() -> (ChangeSender, ChangeReceiver) {
    let shared = Arc::new(Shared { queue: Mutex::default(), added: Notify::new() });
    (ChangeSender(shared.clone()), ChangeReceiver(shared))
}

struct Shared {
    queue: Mutex<Queue>,
    added: Notify,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends changes. Never waits.
#[derive(Clone)]
pub struct ChangeSender(Arc<Shared>);

impl ChangeSender {
    /// Queues a change. Returns false if the receiver was dropped.
    pub fn send(&self, change: WatchedChange) -> bool {
        let mut queue = self.0.queue();
        if queue.is_closed {
            return false;
        }
        queue.push(change);
        drop(queue);
        self.0.added.notify_one();
        true
    }
}

/// Receives changes.
pub struct ChangeReceiver(Arc<Shared>);

impl ChangeReceiver {
    /// Waits for the next change. If the future is dropped, no change is lost.
    pub async fn next(&mut self) -> WatchedChange {
        loop {
            let next = self.0.queue().pop();
            match next {
                Some(change) => return change,
                None => self.0.added.notified().await,
            }
        }
    }
}

impl Drop for ChangeReceiver {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        *queue = Queue { is_closed: true, ..Queue::default() };
    }
}

/// The place of a change in the queue.
type Place = u64;

#[derive(Default)]
struct Queue {
    changes: BTreeMap<Place, WatchedChange>,
    next_place: Place,
    kinds: BTreeMap<Kind, Places>,
    is_closed: bool,
}

/// Where the pending changes of a kind are.
#[derive(Default)]
struct Places {
    listed: Option<Place>,
    bookmark: Option<Place>,
    objects: HashMap<ObjectKey, ObjectPlaces>,
}

/// Where the pending changes of an object are. A deletion precedes a change.
#[derive(Default)]
struct ObjectPlaces {
    deleted: Option<Place>,
    changed: Option<Place>,
}

impl Queue {
    fn push(&mut self, change: WatchedChange) {
        let place = self.next_place;
        self.next_place += 1;
        let obsolete: Vec<Place> = match &change {
            WatchedChange::Listed(kind, ..) => {
                let list = Places { listed: Some(place), ..Places::default() };
                let before = self.kinds.insert(*kind, list).unwrap_or_default();
                let objects = before.objects.into_values().flat_map(|object| [object.deleted, object.changed]);
                objects.chain([before.listed, before.bookmark]).flatten().collect()
            }
            WatchedChange::Bookmark(kind, _) => {
                self.kinds.entry(*kind).or_default().bookmark.replace(place).into_iter().collect()
            }
            WatchedChange::Changed(object) => {
                let key = object.key();
                let places = self.kinds.entry(key.kind).or_default().objects.entry(key).or_default();
                places.changed.replace(place).into_iter().collect()
            }
            WatchedChange::Deleted(key, _) => {
                let deleted = ObjectPlaces { deleted: Some(place), changed: None };
                let before = self.kinds.entry(key.kind).or_default().objects.insert(key.clone(), deleted);
                before.into_iter().flat_map(|before| [before.deleted, before.changed]).flatten().collect()
            }
        };
        for place in obsolete {
            self.changes.remove(&place);
        }
        self.changes.insert(place, change);
    }

    fn pop(&mut self) -> Option<WatchedChange> {
        let (place, change) = self.changes.pop_first()?;
        match &change {
            WatchedChange::Listed(kind, ..) => self.kinds.entry(*kind).or_default().listed = None,
            WatchedChange::Bookmark(kind, _) => self.kinds.entry(*kind).or_default().bookmark = None,
            WatchedChange::Changed(object) => self.forget(&object.key(), place),
            WatchedChange::Deleted(key, _) => self.forget(key, place),
        }
        Some(change)
    }

    /// Removes the place of an object's change that was delivered.
    fn forget(&mut self, key: &ObjectKey, place: Place) {
        let objects = &mut self.kinds.entry(key.kind).or_default().objects;
        let Some(places) = objects.get_mut(key) else { return };
        places.deleted = places.deleted.filter(|deleted| *deleted != place);
        places.changed = places.changed.filter(|changed| *changed != place);
        if places.deleted.is_none() && places.changed.is_none() {
            objects.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(name: &str, uid: &str, version: u64) -> WatchedChange {
        let json = format!(r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#);
        WatchedChange::Changed(Object::from_json(Kind::Volume, json.as_bytes()).expect("a valid volume"))
    }

    fn deleted(name: &str, version: u64) -> WatchedChange {
        WatchedChange::Deleted(ObjectKey::volume(name), version)
    }

    fn bookmark(version: u64) -> WatchedChange {
        WatchedChange::Bookmark(Kind::Volume, version)
    }

    /// What is delivered: `a@5`, `-a@7`, `bookmark@8`, `list@9`.
    fn delivered(changes: impl IntoIterator<Item = WatchedChange>) -> Vec<String> {
        let mut queue = Queue::default();
        changes.into_iter().for_each(|change| queue.push(change));
        let delivered = std::iter::from_fn(|| queue.pop()).map(|change| match change {
            WatchedChange::Changed(object) => format!("{}@{}", object.key().name, object.meta().version),
            WatchedChange::Deleted(key, version) => format!("-{}@{version}", key.name),
            WatchedChange::Bookmark(_, version) => format!("bookmark@{version}"),
            WatchedChange::Listed(_, version, objects) => format!("list of {}@{version}", objects.len()),
        });
        let delivered = delivered.collect();
        assert!(queue.kinds.values().all(|places| places.objects.is_empty()), "nothing is remembered of what is gone");
        delivered
    }

    #[test]
    fn later_changes_replace_earlier_ones_and_versions_stay_in_order() {
        assert_eq!(delivered([volume("a", "1", 5), volume("b", "2", 6), volume("a", "1", 7)]), ["b@6", "a@7"]);
        let with_bookmarks = [bookmark(4), volume("a", "1", 5), bookmark(6), volume("a", "1", 7)];
        assert_eq!(delivered(with_bookmarks), ["bookmark@6", "a@7"], "a bookmark overtakes no change");
    }

    #[test]
    fn deletion_is_kept_when_the_object_is_created_again() {
        let replaced = [volume("a", "1", 5), deleted("a", 6), volume("b", "2", 7), volume("a", "3", 8)];
        assert_eq!(delivered(replaced), ["-a@6", "b@7", "a@8"]);
        let twice = [deleted("a", 6), volume("a", "3", 8), deleted("a", 9), volume("a", "4", 10), volume("a", "4", 11)];
        assert_eq!(delivered(twice), ["-a@9", "a@11"]);
    }

    #[test]
    fn list_replaces_all_changes_of_its_kind() {
        let list = |version| WatchedChange::Listed(Kind::Volume, version, Vec::new());
        let changes = [list(1), volume("a", "1", 5), deleted("b", 6), bookmark(7), list(8), volume("c", "2", 9)];
        assert_eq!(delivered(changes), ["list of 0@8", "c@9"]);
    }

    #[test]
    fn size_is_bounded_by_the_number_of_objects() {
        let mut queue = Queue::default();
        for version in 1..10_000 {
            let name = format!("pv-{}", version % 10);
            queue.push(if version % 7 == 0 { deleted(&name, version) } else { volume(&name, "1", version) });
            queue.push(bookmark(version));
            assert!(queue.changes.len() <= 2 * 10 + 1, "{} changes wait", queue.changes.len());
        }
    }

    #[tokio::test]
    async fn sender_learns_that_the_receiver_was_dropped() {
        let (sender, mut receiver) = change_queue();
        assert!(sender.send(bookmark(1)));
        assert!(matches!(receiver.next().await, WatchedChange::Bookmark(Kind::Volume, 1)));
        drop(receiver);
        assert!(!sender.send(bookmark(2)));
    }
}
