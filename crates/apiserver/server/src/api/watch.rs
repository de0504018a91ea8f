//! Watches: cursors into history, advanced by their readers.

use super::list_options::{self, Revision};
use super::{Api, Options, Selection, Target, key_prefix, show};
use crate::kinds::Kind;
use crate::status::Status;
use crate::store::{self, HistoryEntry};
use bytes::Bytes;

/// A watch: its initial objects, and the revision from which it continues.
///
/// The store keeps no state for it. When there are changes and its client can take more, the reader
/// calls [`Api::changes_after`], passes each change to [`Watch::select`] (without access to the
/// store) and advances `revision`. A reader that falls behind history gets a 410.
#[derive(Debug)]
pub struct Watch {
    /// The watched kind, in the requested version.
    pub kind: &'static Kind,
    /// The last revision that the reader has seen.
    pub revision: u64,
    /// Encoded objects to be sent as ADDED first.
    pub initial: Vec<Bytes>,
    /// Whether a bookmark with the annotation `k8s.io/initial-events-end` follows them.
    pub mark_initial_end: bool,
    /// Whether bookmarks were requested.
    pub bookmarks: bool,
    prefix: String,
    selection: Selection,
}

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEventType {
    /// The object was created, or matches the selectors now.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted, or no longer matches the selectors.
    Deleted,
}

/// One event of a watch.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    /// Its type.
    pub kind: WatchEventType,
    /// The encoded object.
    pub object: Bytes,
}

impl Watch {
    /// The event for a change, if the watch selects it.
    pub fn select(&self, change: &HistoryEntry) -> Option<WatchEvent> {
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
    /// Starts a watch of a collection, or of one object.
    pub fn watch(&self, target: &Target, options: &Options) -> Result<Watch, Status> {
        let mut selection = Selection::parse(target.kind, &options.label_selector, &options.field_selector)?;
        list_options::validate_watch(options)?;
        if !target.name.is_empty() {
            selection.only_named(&target.name);
        }
        let wanted = match list_options::revision(&options.resource_version) {
            Ok(wanted) => wanted,
            Err(error) => return Err(Status::failure(500, "", error)),
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
        let objects = if initial { self.store.list(target.kind.bucket(), &prefix, "", None).ok() } else { None };
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

    /// Up to `limit` changes of a kind after a revision, up to the revision `until`. 410 if history
    /// does not reach back that far.
    pub fn changes_after(
        &self,
        kind: &Kind,
        after: u64,
        until: u64,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, Status> {
        let changes = self.store.changes_after(kind.bucket(), after, until, limit);
        changes.map_err(|floor| Status::expired(format!("too old resource version: {after} ({})", floor.0)))
    }
}
