//! The three kinds of patches that are not server-side apply.

use serde_json::Value;

use crate::decode::untyped;
use crate::{Decoded, Schema, Strictness, canonical};

mod json;
mod merge;
mod strategic;
mod words;

pub(crate) use words::go_value;

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 6902, `application/json-patch+json`.
    Json,
    /// RFC 7386, `application/merge-patch+json`.
    Merge,
    /// Kubernetes' own, `application/strategic-merge-patch+json`: lists are merged by key where the schema says so.
    Strategic,
}

/// What becomes of unknown and duplicate fields: the request's `fieldValidation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// Nothing.
    Ignore,
    /// They are named in `Decoded::flaws`.
    Warn,
    /// The patch is refused.
    Strict,
}

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
    /// The patch cannot be applied to this object: 422 with this message (reason Invalid, details empty).
    Unprocessable(String),
    /// 413: the patch has too many operations.
    TooLarge(String),
    /// The outcome is no object of the kind, or has flaws where none are allowed: 422 Invalid without a name and kind, with one cause,
    /// the field `patch` with this invalid value (`message()` is that of the Status, `cause()` that of the cause).
    Invalid {
        /// The patched object or the patch, as upstream shows it.
        value: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A Status with code 500 and this message, without any reason.
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

    /// The message of the Status' one cause, if it has one.
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

/// What upstream says of every JSON patch that cannot be applied, and nothing else.
const REJECTED: &str = "the server rejected our request due to an error in our request";

/// Applies a patch to an object in canonical form, with all that upstream says of patches that it refuses. The outcome is in canonical form.
pub fn patch(
    schema: &Schema,
    live: &Value,
    kind: PatchKind,
    text: &[u8],
    validation: Validation,
) -> Result<Decoded, PatchError> {
    if kind == PatchKind::Merge
        && let Some(value) = merge::quick(schema, live, text)
    {
        return Ok(Decoded { value, flaws: Vec::new() });
    }
    let checks = validation != Validation::Ignore;
    let (patched, shown) = match kind {
        PatchKind::Json => (json::patch(live, text, checks)?, None),
        PatchKind::Merge => (merge::patch(live, text, checks)?, None),
        PatchKind::Strategic => {
            let (patch, flaws) = strategic::read(text)?;
            let shown = go_value(&patch);
            (Patched { value: strategic::patch(schema, live, patch)?, flaws }, Some(shown))
        }
    };
    let shown = |value: &Value| shown.clone().unwrap_or_else(|| value.to_string());
    let strictness = if checks { Strictness::Report } else { Strictness::Ignore };
    let Patched { value, mut flaws } = patched;
    if !checks {
        flaws.clear();
    }
    // Only a refusal shows the outcome, which is rare: it is made again then, not kept.
    let again = |value: Value| if kind == PatchKind::Strategic { Value::Null } else { value };
    let kept = (validation == Validation::Strict).then(|| again(value.clone()));
    let decoded = match canonical(schema, value, strictness) {
        Ok(decoded) => decoded,
        Err(error) => return Err(undecodable(schema, live, kind, text, error.0)),
    };
    flaws.extend(decoded.flaws);
    if let Some(kept) = kept.filter(|_| !flaws.is_empty()) {
        return Err(PatchError::Invalid {
            value: shown(&kept),
            detail: format!("strict decoding error: {}", flaws.join(", ")),
        });
    }
    Ok(Decoded { value: decoded.value, flaws })
}

/// What upstream says of an outcome that is no object of the kind.
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
        let detail = if not_an_object { words::no_type_meta(&value) } else { error };
        return PatchError::Invalid { value: value.to_string(), detail: format!("{prefix}{detail}") };
    }
    let shown = untyped(text).map(|(patch, _)| go_value(&patch)).unwrap_or_default();
    PatchError::Invalid { value: shown, detail: words::unconvertible(schema, &value).unwrap_or(error) }
}

/// RFC 6902, with the liberties of upstream's library: a field that is not there can be replaced, and indices count from the end if negative.
pub fn json_patch(live: &Value, patch: &[u8]) -> Result<Patched, PatchError> {
    json::patch(live, patch, true)
}

/// RFC 7386.
pub fn merge_patch(live: &Value, patch: &[u8]) -> Result<Patched, PatchError> {
    merge::patch(live, patch, true)
}

/// Kubernetes' own: lists are merged by key where the schema says so.
pub fn strategic_merge_patch(schema: &Schema, live: &Value, patch: &[u8]) -> Result<Patched, PatchError> {
    let (patch, flaws) = strategic::read(patch)?;
    Ok(Patched { value: strategic::patch(schema, live, patch)?, flaws })
}
