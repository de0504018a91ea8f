//! Connects the API with `bindery-fields`: decodes bodies, applies patches, and tracks field
//! ownership.

use crate::api::{Body, Format, PatchType};
use crate::field_errors::FieldErrors;
use crate::kinds::Kind;
use crate::status::{Cause, Details, Status};
use bindery_fields::managed::{self, ApplyError, Writer};
use bindery_fields::patch::{self, PatchKind};
use bindery_fields::{Decoded, PatchError, Schema, Strictness, Validation};
use serde_json::Value;
use std::borrow::Cow;

/// How many items a list in an object may have. Validation, ownership and diffs compare the items
/// of a list with each other, which takes seconds for more while the store is locked.
const LIST_ITEMS_MAX: usize = 10_000;

/// Rejects an object with a list that is too long.
fn check_lists(value: &Value) -> Result<(), Status> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Object(map) => map.values().try_for_each(check_lists),
        Value::Array(list) if list.len() > LIST_ITEMS_MAX => {
            let message = format!("a list in the object has {} items: limit is {LIST_ITEMS_MAX}", list.len());
            Err(Status::failure(413, "RequestEntityTooLarge", format!("Request entity too large: {message}")))
        }
        Value::Array(list) => list.iter().try_for_each(check_lists),
    }
}

fn schema(kind: &Kind) -> Result<&'static Schema, Status> {
    Schema::of(kind.group, kind.version, kind.kind)
        .ok_or_else(|| Status::internal(format!("{} has no schema", kind.kind)))
}

/// A body as JSON text.
pub fn json(body: &Body) -> Result<Cow<'_, [u8]>, Status> {
    Ok(json_and_duplicate_key(body)?.0)
}

/// A body as JSON text, and the first duplicate key if it was YAML.
pub fn json_and_duplicate_key(body: &Body) -> Result<(Cow<'_, [u8]>, Option<String>), Status> {
    match body.format {
        Format::Json => Ok(((&body.bytes[..]).into(), None)),
        Format::Yaml => {
            let read = bindery_fields::yaml_to_json(&body.bytes);
            let read = read.map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
            Ok((read.json.into(), read.duplicate_key))
        }
    }
}

/// Decodes a body as an object of a kind.
pub fn read(kind: &'static Kind, body: &Body, strict: bool) -> Result<Decoded, Status> {
    let (text, duplicate_key) = json_and_duplicate_key(body)?;
    let named = bindery_fields::decode::type_meta(kind.kind, &text).map_err(|error| Status::bad_request(error.0))?;
    let (group, version) = named.api_version.rsplit_once('/').unwrap_or(("", &named.api_version));
    let given = if named.kind.is_empty() { kind.kind } else { &named.kind };
    let given_version = if version.is_empty() { kind.version } else { version };
    let reject = |why: String| {
        Status::bad_request(format!("{given} in version {given_version:?} cannot be handled as a {}: {why}", kind.kind))
    };
    let right_version = named.api_version.is_empty() || (group, version) == (kind.group, kind.version);
    if !right_version || (!named.kind.is_empty() && named.kind != kind.kind) {
        let known =
            Kind::of_object(if named.api_version.is_empty() { kind.version } else { &named.api_version }, given);
        return Err(reject(match known {
            Some(known) if known.kind == kind.kind => {
                let (given, wanted) = (known.api_version(), kind.api_version());
                return Err(Status::bad_request(format!(
                    "the API version in the data ({given}) does not match the expected API version ({wanted})"
                )));
            }
            Some(_) => no_conversion(given_version, given, kind),
            None if is_other_type(&named.api_version, given) => no_conversion(given_version, given, kind),
            None => {
                let version = &named.api_version;
                format!(
                    "no kind {given:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
                )
            }
        }));
    }
    let decoded = bindery_fields::decode(schema(kind)?, &text, strictness(strict)).map_err(|error| reject(error.0))?;
    let mut object = decoded.value;
    check_lists(&object)?;
    set_type_meta(&mut object, kind);
    let mut strict_errors = decoded.strict_errors;
    if let Some(duplicate_key) = duplicate_key.filter(|_| strict) {
        strict_errors.insert(0, format!("yaml: unmarshal errors:\n  {duplicate_key}"));
    }
    Ok(Decoded { value: object, strict_errors })
}

fn no_conversion(version: &str, given: &str, wanted: &Kind) -> String {
    let package = if wanted.group.is_empty() { "core" } else { wanted.group.split('.').next().unwrap_or_default() };
    format!("converting ({version}.{given}) to ({package}.{}): unknown conversion", wanted.kind)
}

/// Whether upstream knows a type that is not an object kind.
fn is_other_type(api_version: &str, given: &str) -> bool {
    let is_list = given.strip_suffix("List").is_some_and(|kind| Kind::of_object(api_version, kind).is_some());
    is_list || api_version == "v1" && matches!(given, "List" | "Status")
}

fn strictness(report: bool) -> Strictness {
    if report { Strictness::Report } else { Strictness::Ignore }
}

fn set_type_meta(object: &mut Value, kind: &Kind) {
    crate::value::set(object, &["kind"], kind.kind);
    crate::value::set(object, &["apiVersion"], kind.api_version());
}

/// Applies a patch that is not server-side apply. Strict decoding errors are rejected here if the
/// client requested strict validation.
pub fn patched(
    kind: &Kind,
    live: &Value,
    patch: PatchType,
    body: &Body,
    validation: Validation,
) -> Result<Decoded, Status> {
    let (of_kind, text) = (schema(kind)?, json(body)?);
    let patch = match patch {
        PatchType::Json => PatchKind::Json,
        PatchType::Merge => PatchKind::Merge,
        PatchType::Strategic => PatchKind::Strategic,
        PatchType::Apply => return Err(Status::internal("an apply patch was passed to a function for other patches")),
    };
    let mut decoded = patch::patch(of_kind, live, patch, &text, validation).map_err(patch_status)?;
    check_lists(&decoded.value)?;
    let named = |field| crate::value::text(&decoded.value, &[field]);
    // Missing fields are assumed to be right.
    let is_other = |given: &str, wanted: &str| !given.is_empty() && given != wanted;
    if is_other(named("apiVersion"), &kind.api_version()) || is_other(named("kind"), kind.kind) {
        let (given, given_kind) = (named("apiVersion"), named("kind"));
        let why = match Kind::of_object(given, given_kind) {
            Some(other) => {
                let read = bindery_fields::canonical(schema(other)?, decoded.value.clone(), Strictness::Ignore);
                read.err().map_or_else(|| no_conversion(other.version, other.kind, kind), |error| error.0)
            }
            None => format!(
                "no kind {given_kind:?} is registered for version {given:?} in scheme \"pkg/runtime/scheme.go:111\""
            ),
        };
        let mut errors = FieldErrors::default();
        errors.invalid("patch", decoded.value.to_string(), &why);
        errors.into_result_for("", "", "")?;
    }
    set_type_meta(&mut decoded.value, kind);
    Ok(decoded)
}

fn patch_status(error: PatchError) -> Status {
    let message = error.message();
    match error {
        PatchError::BadRequest(_) => Status::bad_request(message),
        PatchError::Unprocessable(_) => Status::failure(422, "Invalid", message).with(Details::default()),
        PatchError::TooLarge(_) => Status::failure(413, "RequestEntityTooLarge", message),
        PatchError::Internal(_) => Status::failure(500, "", message),
        PatchError::Invalid { value, detail } => {
            let mut errors = FieldErrors::default();
            errors.invalid("patch", value, &detail);
            errors.into_result_for("", "", "").err().unwrap_or_else(|| Status::internal(message))
        }
    }
}

/// Records the field owners after a write that is not an apply.
pub fn track(kind: &Kind, live: Option<&Value>, new: &mut Value, writer: &Writer<'_>) -> Result<(), Status> {
    managed::track_update(schema(kind)?, live, new, writer);
    Ok(())
}

/// Server-side apply.
pub fn applied(
    kind: &Kind,
    live: Option<&Value>,
    patch: &Value,
    force: bool,
    writer: &Writer<'_>,
) -> Result<Value, Status> {
    check_lists(patch)?;
    let outcome = managed::apply(schema(kind)?, live, patch, force, writer);
    let mut object = outcome.map_err(|error| {
        let message = error.message();
        match error {
            ApplyError::BadRequest(_) => Status::bad_request(message),
            ApplyError::Internal(_) => Status::failure(500, "", message),
            ApplyError::Conflicts(conflicts) => {
                let causes = conflicts.into_iter().map(|conflict| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: format!("conflict with {}", conflict.owner),
                    field: conflict.field,
                });
                let details = Details { causes: causes.collect(), ..Details::default() };
                Status::failure(409, "Conflict", message).with(details)
            }
        }
    })?;
    set_type_meta(&mut object, kind);
    Ok(object)
}
