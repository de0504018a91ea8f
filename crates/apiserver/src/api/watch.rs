//! Watches: cursors into history, pulled by whoever reads.

use crate::kinds::Kind;
use crate::status::Status;
use crate::store::Change;
use bytes::Bytes;

/// A watch that was granted: what it begins with, and from where it goes on.
///
/// It holds nothing in the store: its reader pulls [`crate::Api::changes_after`] when there is something new and it has room, shows each change
/// to [`Watch::select`] (no access to the store needed), and is told with a 410 when it came too late.
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
