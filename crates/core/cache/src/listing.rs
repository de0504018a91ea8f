//! Storing a complete list of a kind, in parts that are as small as the caller needs them to be.

use bindery_model::{Kind, Object, ObjectKey};
use rustc_hash::FxHashSet;

use crate::object_store::Origin;
use crate::{Cache, Change};

/// A list of all objects of a kind, of which a part is stored. Until it is complete, nothing may be
/// stored that a watch reports of this kind.
#[derive(Debug, Clone)]
pub struct ListInProgress {
    kind: Kind,
    version: u64,
    /// Whether it is older than the watch. Then it removes nothing and brings nothing back.
    is_stale: bool,
    objects: std::vec::IntoIter<Object>,
    /// The objects that were stored, if some that were known before may be missing.
    stored: Option<FxHashSet<ObjectKey>>,
    /// The last key that was checked for being missing.
    checked: Option<ObjectKey>,
    is_complete: bool,
}

impl ListInProgress {
    /// The kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether all of it is stored.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl Cache {
    /// Stores a complete list of a kind at a version. Objects missing from it are removed, unless a
    /// later state was seen. A list older than the watch removes nothing and brings nothing back.
    pub fn listed(&mut self, kind: Kind, version: u64, objects: Vec<Object>) -> Vec<Change> {
        let mut list = self.begin_list(kind, version, objects);
        self.continue_list(&mut list, usize::MAX)
    }

    /// The same in parts: nothing of the list is stored yet.
    pub fn begin_list(&self, kind: Kind, version: u64, objects: Vec<Object>) -> ListInProgress {
        let is_stale = version < self.watched_version(kind);
        let stored = (!is_stale && self.count(kind) > 0).then(FxHashSet::default);
        let objects = objects.into_iter();
        ListInProgress { kind, version, is_stale, objects, stored, checked: None, is_complete: false }
    }

    /// Stores or checks at most this many more objects of a list. Returns the changes.
    pub fn continue_list(&mut self, list: &mut ListInProgress, objects_max: usize) -> Vec<Change> {
        let origin = if list.is_stale { Origin::Answer } else { Origin::List };
        let (mut changes, mut left) = (Vec::new(), objects_max);
        while left > 0
            && let Some(object) = list.objects.next()
        {
            left -= 1;
            if let Some(stored) = &mut list.stored {
                stored.insert(object.key());
            }
            changes.extend(self.observe(object, origin));
        }
        if left == 0 {
            return changes;
        }
        if let Some(stored) = &list.stored {
            let keys = self.keys_after(list.kind, list.checked.as_ref(), left);
            list.is_complete = keys.len() < left;
            let missing = keys.iter().filter(|key| !stored.contains(key));
            changes.extend(missing.filter_map(|key| self.deleted(key, list.version)));
            list.checked = keys.into_iter().next_back().or(list.checked.take());
        } else {
            list.is_complete = true;
        }
        if list.is_complete && !list.is_stale {
            self.watched_up_to(list.kind, list.version);
        }
        changes
    }
}
