//! Watches: cursors into history, pulled by whoever reads.

use super::list_options::{self, Revision};
use super::{Api, Options, Selection, Target, key_prefix, show};
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::{self, Change};
use bytes::Bytes;

/// A watch that was granted: what it begins with, and from where it goes on.
///
/// It holds nothing in the store: its reader pulls [`Api::changes_after`] when there is something new and it has room, shows each change to
/// [`Watch::select`] (no access to the store needed), moves `revision` on, and is told with a 410 when it came too late.
#[derive(Debug)]
pub struct Watch {
    /// The kind that is watched, in the version asked for.
    pub kind: &'static Kind,
    /// The revision seen so far: changes after it are still to come.
    pub revision: u64,
    /// Encoded objects to be sent as ADDED before anything else.
    pub initial: Vec<Bytes>,
    /// Whether a bookmark with the annotation `k8s.io/initial-events-end` follows them.
    pub mark_initial_end: bool,
    /// Whether bookmarks were asked for.
    pub bookmarks: bool,
    prefix: String,
    selection: Selection,
}

/// What is told of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEventType {
    /// It is there now.
    Added,
    /// It is there still.
    Modified,
    /// It is gone, or no longer selected.
    Deleted,
}

/// One event of a watch.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// What happened.
    pub kind: WatchEventType,
    /// The encoded object.
    pub object: Bytes,
}

impl Watch {
    /// What this watch is told of a change, if anything.
    pub fn select(&self, change: &Change) -> Option<WatchEvent> {
        if !change.key.starts_with(&self.prefix) {
            return None;
        }
        let before = change.before.as_ref().filter(|before| self.selection.selects(&change.key, before));
        let after = (!change.deleted && self.selection.selects(&change.key, &change.after)).then_some(&change.after);
        let (kind, object) = match (before, after) {
            (None, None) => return None,
            (None, Some(after)) => (WatchEventType::Added, after.bytes.clone()),
            (Some(_), Some(after)) => (WatchEventType::Modified, after.bytes.clone()),
            (Some(before), None) => (WatchEventType::Deleted, store::with_revision(&before.bytes, change.revision)),
        };
        Some(WatchEvent { kind, object: show(self.kind, &object) })
    }
}

impl Api {
    /// Grants a watch of a collection, or of one object.
    pub fn watch(&self, target: &Target, options: &Options) -> Result<Watch, Status> {
        let mut selection = Selection::parse(target.kind, &options.label_selector, &options.field_selector)?;
        list_options::check_watch(options)?;
        if !target.name.is_empty() {
            selection.only_named(&target.name);
        }
        let wanted = match list_options::revision(&options.resource_version) {
            Ok(wanted) => wanted,
            Err(flaw) => return Err(Status::failure(500, "", flaw)),
        };
        let current = self.store.revision();
        let initial = options.send_initial_events.unwrap_or(!matches!(wanted, Revision::At(_)));
        let revision = match wanted {
            Revision::Latest | Revision::Any => current,
            Revision::At(wanted) if !initial => wanted,
            Revision::At(wanted) if wanted > current => return Err(Status::too_large_revision(wanted, current)),
            Revision::At(_) => current,
        };
        let prefix = key_prefix(target);
        let objects = if initial { self.store.list(target.kind.space, &prefix, "", None).ok() } else { None };
        let objects = objects.into_iter().flatten().filter(|(key, object)| selection.selects(key, object));
        let initial: Vec<Bytes> = objects.map(|(_, object)| show(target.kind, &object.bytes)).collect();
        Ok(Watch {
            kind: target.kind,
            revision,
            initial,
            mark_initial_end: options.send_initial_events == Some(true) && options.allow_watch_bookmarks,
            bookmarks: options.allow_watch_bookmarks,
            prefix,
            selection,
        })
    }

    /// Changes of a kind after a revision, and not after `until` (what is durable), at most `limit` of them; 410 if history no longer
    /// reaches back so far.
    pub fn changes_after(&self, kind: &Kind, after: u64, until: u64, limit: usize) -> Result<Vec<Change>, Status> {
        let changes = self.store.changes_after(kind.space, after, until, limit);
        changes.map_err(|floor| Status::expired(format!("too old resource version: {after} ({})", floor.0)))
    }
}
