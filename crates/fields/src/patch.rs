//! The three kinds of patches that are not server-side apply. Their outcome is no object yet: pass it to [`crate::canonical`].

use serde_json::Value;

use crate::Schema;

/// A patched object.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    /// The outcome, not yet in canonical form.
    pub value: Value,
    /// Duplicate fields in the text of the patch.
    pub flaws: Vec<String>,
}

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is malformed: 400 BadRequest with this message.
    BadRequest(String),
    /// The patch cannot be applied to this object: 422 with this message (reason Invalid, message as is, no details).
    Unprocessable(String),
    /// 413: the patch has too many operations.
    TooLarge(String),
    /// 500 InternalError with this message (without the prefix `Internal error occurred: `).
    Internal(String),
}

/// RFC 6902.
pub fn json_patch(_live: &Value, _patch: &[u8]) -> Result<Patched, PatchError> {
    todo!()
}

/// RFC 7386.
pub fn merge_patch(_live: &Value, _patch: &[u8]) -> Result<Patched, PatchError> {
    todo!()
}

/// Kubernetes' own: lists are merged by key where the schema says so.
pub fn strategic_merge_patch(_schema: &Schema, _live: &Value, _patch: &[u8]) -> Result<Patched, PatchError> {
    todo!()
}
