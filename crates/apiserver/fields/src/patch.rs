//! JSON patches, JSON merge patches and strategic merge patches.

use serde_json::Value;

use crate::decode::{GO_TYPE_META, untyped};
use crate::{Decoded, Schema, Strictness, canonical};

mod go_format;
mod json;
mod merge;
mod strategic;

pub(crate) use go_format::go_value;

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902, `application/json-patch+json`.
    Json,
    /// RFC 7386, `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`: lists are merged by key where the schema says so.
    Strategic,
}

/// How unknown and duplicate fields are handled: the request's `fieldValidation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// They are ignored.
    Ignore,
    /// They are listed in `Decoded::strict_errors`.
    Warn,
    /// The patch is rejected.
    Strict,
}

/// A patched object.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    /// The patched value, not yet in canonical form.
    pub value: Value,
    /// Duplicate fields in the patch.
    pub strict_errors: Vec<String>,
}

/// Why a patch was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is malformed: 400 BadRequest with this message.
    BadRequest(String),
    /// The patch cannot be applied to this object: 422 with this message, reason Invalid.
    Unprocessable(String),
    /// 413: the patch has too many operations.
    TooLarge(String),
    /// The patched object is not an object of the kind, or has strict decoding errors and the
    /// client requested strict validation: 422 Invalid without a name and kind, with one cause, the
    /// field `patch` with this invalid value ([`PatchError::message`] is that of the Status,
    /// [`PatchError::cause`] that of the cause).
    Invalid {
        /// The patched object or the patch, as upstream shows it.
        value: String,
        /// Why it is invalid.
        detail: String,
    },
    /// A Status with code 500 and this message, without a reason.
    Internal(String),
}

impl PatchError {
    /// The message of the Status.
    pub fn message(&self) -> String {
        match self {
            PatchError::BadRequest(message) | PatchError::Unprocessable(message) => message.clone(),
            PatchError::TooLarge(message) | PatchError::Internal(message) => message.clone(),
            PatchError::Invalid { .. } => format!(" \"\" is invalid: patch: {}", self.cause().unwrap_or_default()),
        }
    }

    /// The message of the Status's cause, if it has one.
    pub fn cause(&self) -> Option<String> {
        match self {
            PatchError::Invalid { value, detail } => {
                Some(format!("Invalid value: {}: {detail}", Value::from(value.as_str())))
            }
            PatchError::BadRequest(_)
            | PatchError::Unprocessable(_)
            | PatchError::TooLarge(_)
            | PatchError::Internal(_) => None,
        }
    }
}

/// Upstream's only message for a JSON patch that cannot be applied.
const REJECTED: &str = "the server rejected our request due to an error in our request";

/// Applies a patch to an object in canonical form. The result is in canonical form; errors have
/// upstream's messages.
pub fn patch(
    schema: &Schema,
    live: &Value,
    kind: PatchKind,
    text: &[u8],
    validation: Validation,
) -> Result<Decoded, PatchError> {
    if kind == PatchKind::Merge
        && let Some(value) = merge::fast_path(schema, live, text)
    {
        return Ok(Decoded { value, strict_errors: Vec::new() });
    }
    let checks = validation != Validation::Ignore;
    let (patched, shown) = match kind {
        PatchKind::Json => (json::patch(live, text, checks)?, None),
        PatchKind::Merge => (merge::patch(live, text, checks)?, None),
        PatchKind::Strategic => {
            let (patch, strict_errors) = strategic::read(text)?;
            let shown = go_value(&patch);
            (Patched { value: strategic::patch(schema, live, patch)?, strict_errors }, Some(shown))
        }
    };
    let shown = |value: &Value| shown.clone().unwrap_or_else(|| value.to_string());
    let strictness = if checks { Strictness::Report } else { Strictness::Ignore };
    let Patched { value, mut strict_errors } = patched;
    if !checks {
        strict_errors.clear();
    }
    // Only an error shows the patched value, which is rare: it is computed again then.
    let again = |value: Value| if kind == PatchKind::Strategic { Value::Null } else { value };
    let kept = (validation == Validation::Strict).then(|| again(value.clone()));
    let decoded = match canonical(schema, value, strictness) {
        Ok(decoded) => decoded,
        Err(error) => return Err(undecodable(schema, live, kind, text, error.0)),
    };
    strict_errors.extend(decoded.strict_errors);
    if let Some(kept) = kept.filter(|_| !strict_errors.is_empty()) {
        return Err(PatchError::Invalid {
            value: shown(&kept),
            detail: format!("strict decoding error: {}", strict_errors.join(", ")),
        });
    }
    Ok(Decoded { value: decoded.value, strict_errors })
}

/// Upstream's error for a patched value that is not an object of the kind.
fn undecodable(schema: &Schema, live: &Value, kind: PatchKind, text: &[u8], error: String) -> PatchError {
    let outcome = match kind {
        PatchKind::Json => json::patch(live, text, false),
        PatchKind::Merge => merge::patch(live, text, false),
        PatchKind::Strategic => strategic_merge_patch(schema, live, text),
    };
    let Ok(Patched { value, .. }) = outcome else { return PatchError::Internal(error) };
    if kind != PatchKind::Strategic {
        let not_an_object = !value.is_object();
        let prefix = if not_an_object { "couldn't get version/kind; json parse error: " } else { "" };
        let detail = if not_an_object { go_format::unmarshal_error(&value, GO_TYPE_META) } else { error };
        return PatchError::Invalid { value: value.to_string(), detail: format!("{prefix}{detail}") };
    }
    let shown = untyped(text).map(|(patch, _)| go_value(&patch)).unwrap_or_default();
    PatchError::Invalid { value: shown, detail: go_format::conversion_error(&schema.shape(), &value).unwrap_or(error) }
}

/// Applies a JSON merge patch (RFC 7386).
pub fn merge_patch(live: &Value, patch: &[u8]) -> Result<Patched, PatchError> {
    merge::patch(live, patch, true)
}

/// Applies a strategic merge patch: lists are merged by key where the schema says so.
pub fn strategic_merge_patch(schema: &Schema, live: &Value, patch: &[u8]) -> Result<Patched, PatchError> {
    let (patch, strict_errors) = strategic::read(patch)?;
    Ok(Patched { value: strategic::patch(schema, live, patch)?, strict_errors })
}
