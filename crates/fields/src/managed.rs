//! Who owns which fields: `metadata.managedFields`, and server-side apply.

use serde_json::Value;

use crate::Schema;

/// Who writes, through which subresource, and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager: the `fieldManager` parameter, or the user agent up to its first slash.
    pub manager: &'a str,
    /// The subresource that is written, empty for the object itself.
    pub subresource: &'a str,
    /// The time, as `2026-01-02T15:04:05Z`.
    pub now: &'a str,
}

/// A field that is applied with another value than its owner gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner, as upstream words it: `"manager" using v1 at 2026-01-02T15:04:05Z`.
    pub owner: String,
    /// The field: `.spec.capacity`.
    pub field: String,
}

/// Why an apply patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// 409: others own these fields. `message()` is that of the Status; each conflict is a cause with reason `FieldManagerConflict`,
    /// message `conflict with <owner>` and the field.
    Conflicts(Vec<Conflict>),
    /// 400 with this message.
    BadRequest(String),
    /// 500 with this message (without the prefix `Internal error occurred: `).
    Internal(String),
}

/// Records in `new`'s managedFields what a write that is not an apply changes, given the object as it was (None when it is created).
///
/// To be called on the decoded object with its defaults, before the kind's own preparation (resetting status, adding UIDs) and
/// before admission, which is where upstream does it.
pub fn track_update(_schema: &Schema, _live: Option<&Value>, _new: &mut Value, _writer: &Writer<'_>) {
    todo!()
}

/// Server-side apply. `applied` is the patch as parsed, not in canonical form (see [`crate::decode::apply_patch`]); the outcome is in canonical form, and
/// wants defaults and everything else that an update gets, except `track_update`.
/// `live` is None when the object is created by this.
pub fn apply(
    _schema: &Schema,
    _live: Option<&Value>,
    _applied: &Value,
    _force: bool,
    _writer: &Writer<'_>,
) -> Result<Value, ApplyError> {
    todo!()
}
