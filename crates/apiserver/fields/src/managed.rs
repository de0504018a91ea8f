//! Field ownership: `metadata.managedFields`, and server-side apply.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{FieldSet, Schema};

mod apply;
mod check;
mod entries;
mod reset;
mod walk;

pub use apply::apply;

use entries::{Entry, Operation};

/// The field manager of a write, the subresource it goes through, and its time.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager: the `fieldManager` parameter, or the user agent up to its first slash.
    pub manager: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The time, as `2026-01-02T15:04:05Z`.
    pub now: &'a str,
}

/// An applied field whose value differs from that of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner, in upstream's form: `"manager" using v1`.
    pub owner: String,
    /// The field: `.spec.capacity`.
    pub field: String,
}

/// Why an apply patch was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// 409 Conflict: other managers own these fields. The Status has [`ApplyError::message`], and
    /// each conflict is a cause with the reason `FieldManagerConflict`, the message `conflict with
    /// <owner>` and the field.
    Conflicts(Vec<Conflict>),
    /// 400 with this message.
    BadRequest(String),
    /// A Status with code 500 and this message, without a reason.
    Internal(String),
}

impl ApplyError {
    /// The message of the Status.
    pub fn message(&self) -> String {
        let conflicts = match self {
            ApplyError::BadRequest(message) | ApplyError::Internal(message) => return message.clone(),
            ApplyError::Conflicts(conflicts) => conflicts,
        };
        if let [only] = conflicts.as_slice() {
            return format!("Apply failed with 1 conflict: conflict with {}: {}", only.owner, only.field);
        }
        let mut lines = Vec::new();
        for (position, conflict) in conflicts.iter().enumerate() {
            if position == 0 || conflicts[position - 1].owner != conflict.owner {
                lines.push(format!("conflicts with {}:", conflict.owner));
            }
            lines.push(format!("- {}", conflict.field));
        }
        format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
    }
}

/// Fields that have no owner.
static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    let mut set = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[&format!("f:{name}")]);
    }
    let server = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    for name in server {
        set.insert(&["f:metadata", &format!("f:{name}")]);
    }
    set
});

/// Records in `new`'s managedFields the changes of a write that is not an apply. `live` is the
/// object before the write, `None` if it is created.
///
/// Like upstream, call this on the decoded object with its defaults, before the kind prepares the
/// object (resets the status, adds UIDs) and before admission.
pub fn track_update(schema: &Schema, live: Option<&Value>, new: &mut Value, writer: &Writer<'_>) {
    let given = entries::take(new);
    let of_live = || entries::read(live.and_then(entries::of).cloned()).unwrap_or_default();
    let known = match given {
        // A write to a subresource cannot change the entries directly.
        _ if !writer.subresource.is_empty() => of_live(),
        Some(list) if entries::is_reset(&list) => Vec::new(),
        given => entries::read(given).filter(|known| !known.is_empty()).unwrap_or_else(of_live),
    };
    let is_created = live.is_none_or(|live| live.pointer("/metadata/uid").is_none());
    if known.is_empty() && !is_created {
        return;
    }
    let tracked = updated(schema, live.unwrap_or_else(|| schema.empty()), new, known, writer);
    entries::write(new, tracked);
}

/// Restores the times of entries if nothing else has changed, so that a write without changes is
/// not stored.
fn restore_times_if_unchanged(live: &Value, new: &mut Value) {
    let Some(old) = entries::of(live) else { return };
    let same_entries = |new: &Value| match (old.as_array(), new.as_array()) {
        (Some(old), Some(new)) if old.len() == new.len() => {
            old.iter().all(|old| new.iter().any(|new| same_except(old, new, "time")))
        }
        _ => false,
    };
    if !entries::of(new).is_some_and(same_entries) {
        return;
    }
    let taken = entries::take(new);
    let same = same_except(live, new, "metadata") && same_except(&live["metadata"], &new["metadata"], "managedFields");
    if let (Some(Value::Object(metadata)), Some(taken)) = (new.get_mut("metadata"), taken) {
        metadata.insert("managedFields".to_owned(), if same { old.clone() } else { taken });
    }
}

/// Whether two maps are equal except for this key.
fn same_except(left: &Value, right: &Value, key: &str) -> bool {
    let entries = |value: &Value| value.as_object().map(|map| map.len() - usize::from(map.contains_key(key)));
    let has = |(name, value): (&String, &Value)| name == key || right.get(name) == Some(value);
    entries(left) == entries(right) && left.as_object().is_some_and(|left| left.iter().all(has))
}

/// The entries after an update from `live` to `new`.
fn updated(schema: &Schema, live: &Value, new: &Value, mut known: Vec<Entry>, writer: &Writer<'_>) -> Vec<Entry> {
    let mut comparison = walk::compare(&schema.shape(), live, new);
    let reset = reset::fields(schema, writer.subresource);
    comparison.removed.subtract_deep(reset);
    comparison.changed.subtract_deep(reset);
    let api_version = schema.api_version();
    for entry in known.iter_mut().filter(|entry| entry.api_version() == api_version) {
        entry.change(|fields| {
            fields.subtract(&comparison.changed);
            fields.subtract(&comparison.removed);
        });
    }
    comparison.changed.subtract(&UNOWNED);
    if !comparison.changed.is_empty() {
        let mut own = Entry::new(writer, Operation::Update, api_version, comparison.changed);
        match known.iter_mut().find(|entry| entry.is_same_manager(&own)) {
            Some(entry) => {
                entry.change(|fields| fields.add(own.take_fields()));
                entry.set_time(Some(writer.now));
            }
            None => known.push(own),
        }
    }
    known.retain(|entry| !entry.owns_nothing());
    entries::merge_oldest_updates(&mut known);
    known
}
