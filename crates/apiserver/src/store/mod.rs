//! The store: all objects as encoded bytes, one global revision, and a window of history.

use bytes::Bytes;
use std::sync::Arc;

/// Objects by space (the plural under which they are stored) and key.
#[derive(Debug, Default)]
pub struct Store {
    revision: u64,
}

/// One object, as stored.
#[derive(Debug)]
pub struct Stored {
    /// The revision of its last change: its `resourceVersion`.
    pub revision: u64,
    /// `{"kind":…,"apiVersion":…,"metadata":{"resourceVersion":"…",…` in this order, ready to be served.
    pub bytes: Bytes,
}

/// One change, as history keeps it.
#[derive(Debug, Clone)]
pub struct Change {
    /// When it was made.
    pub revision: u64,
    /// `namespace/name`, or `name`.
    pub key: Arc<str>,
    /// What it was before; none if it was made.
    pub before: Option<Arc<Stored>>,
    /// What it is now; for a deletion what it was last, with the revision of the deletion.
    pub after: Arc<Stored>,
    /// Whether it is gone.
    pub deleted: bool,
}

/// One change, as it is to be persisted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When it was made: records of one commit, and of several, are in this order.
    pub revision: u64,
    /// Where it is stored: the plural of its kind.
    pub space: &'static str,
    /// `namespace/name`, or `name`.
    pub key: Arc<str>,
    /// The object; none if it is gone.
    pub value: Option<Bytes>,
}
