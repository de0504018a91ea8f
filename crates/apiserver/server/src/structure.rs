//! Where this room meets `bindery-fields`: bodies become objects, patches become objects, and owners of fields are kept.

use crate::api::{Body, Format, PatchType};
use crate::invalid::FieldErrors;
use crate::kinds::Kind;
use crate::status::{Cause, Details, Status};
use bindery_fields::managed::{self, ApplyError, Writer};
use bindery_fields::patch::{self, PatchKind};
use bindery_fields::{PatchError, Schema, Strictness, Validation};
use serde_json::Value;
use std::borrow::Cow;

/// An object, and what was odd about its text.
#[derive(Debug)]
pub struct Read {
    pub object: Value,
    /// Unknown and duplicate fields.
    pub flaws: Vec<String>,
}

fn schema(kind: &Kind) -> Result<&'static Schema, Status> {
    Schema::of(kind.group, kind.version, kind.kind)
        .ok_or_else(|| Status::internal(format!("{} has no schema", kind.kind)))
}

/// A body as JSON text.
pub fn json(body: &Body) -> Result<Cow<'_, [u8]>, Status> {
    Ok(json_and_flaw(body)?.0)
}

/// A body as JSON text, and the first key that was there twice if it was written as YAML.
pub fn json_and_flaw(body: &Body) -> Result<(Cow<'_, [u8]>, Option<String>), Status> {
    match body.format {
        Format::Json => Ok(((&body.bytes[..]).into(), None)),
        Format::Yaml => {
            let read = bindery_fields::yaml_to_json(&body.bytes);
            let read = read.map_err(|flaw| Status::bad_request(format!("error decoding YAML: {flaw}")))?;
            Ok((read.json.into(), read.flaw))
        }
    }
}

/// Reads a body as an object of a kind.
pub fn read(kind: &'static Kind, body: &Body, strict: bool) -> Result<Read, Status> {
    let (text, doubled) = json_and_flaw(body)?;
    let named = bindery_fields::decode::type_meta(kind.kind, &text).map_err(|flaw| Status::bad_request(flaw.0))?;
    let (group, version) = named.api_version.rsplit_once('/').unwrap_or(("", &named.api_version));
    let said = if named.kind.is_empty() { kind.kind } else { &named.kind };
    let said_version = if version.is_empty() { kind.version } else { version };
    let refuse = |why: String| {
        Status::bad_request(format!("{said} in version {said_version:?} cannot be handled as a {}: {why}", kind.kind))
    };
    let right_version = named.api_version.is_empty() || (group, version) == (kind.group, kind.version);
    if !right_version || (!named.kind.is_empty() && named.kind != kind.kind) {
        let known = Kind::of_object(if named.api_version.is_empty() { kind.version } else { &named.api_version }, said);
        return Err(refuse(match known {
            Some(known) if known.kind == kind.kind => {
                let (said, wanted) = (known.api_version(), kind.api_version());
                return Err(Status::bad_request(format!(
                    "the API version in the data ({said}) does not match the expected API version ({wanted})"
                )));
            }
            Some(_) => no_conversion(said_version, said, kind),
            None if is_other_type(&named.api_version, said) => no_conversion(said_version, said, kind),
            None => {
                let version = &named.api_version;
                format!(
                    "no kind {said:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
                )
            }
        }));
    }
    let decoded = bindery_fields::decode(schema(kind)?, &text, strictness(strict)).map_err(|flaw| refuse(flaw.0))?;
    let mut object = decoded.value;
    name_kind(&mut object, kind);
    let mut flaws = decoded.flaws;
    if let Some(doubled) = doubled.filter(|_| strict) {
        flaws.insert(0, format!("yaml: unmarshal errors:\n  {doubled}"));
    }
    Ok(Read { object, flaws })
}

fn no_conversion(version: &str, said: &str, wanted: &Kind) -> String {
    let package = if wanted.group.is_empty() { "core" } else { wanted.group.split('.').next().unwrap_or_default() };
    format!("converting ({version}.{said}) to ({package}.{}): unknown conversion", wanted.kind)
}

/// Whether upstream knows a type that is no kind of objects.
fn is_other_type(api_version: &str, said: &str) -> bool {
    let is_list = said.strip_suffix("List").is_some_and(|kind| Kind::of_object(api_version, kind).is_some());
    is_list || api_version == "v1" && matches!(said, "List" | "Status")
}

fn strictness(report: bool) -> Strictness {
    if report { Strictness::Report } else { Strictness::Ignore }
}

fn name_kind(object: &mut Value, kind: &Kind) {
    crate::value::set(object, &["kind"], kind.kind);
    crate::value::set(object, &["apiVersion"], kind.api_version());
}

/// Applies a patch that is not server-side apply. FieldErrors are refused here if the client asked for that.
pub fn patched(
    kind: &Kind,
    live: &Value,
    patch: PatchType,
    body: &Body,
    validation: Validation,
) -> Result<Read, Status> {
    let (of_kind, text) = (schema(kind)?, json(body)?);
    let patch = match patch {
        PatchType::Json => PatchKind::Json,
        PatchType::Merge => PatchKind::Merge,
        PatchType::Strategic => PatchKind::Strategic,
        PatchType::Apply => return Err(Status::internal("an apply patch is no patch of this kind")),
    };
    let mut decoded = patch::patch(of_kind, live, patch, &text, validation).map_err(refusal)?;
    let named = |field| crate::value::text(&decoded.value, &[field]);
    // What says nothing is taken for what was asked for.
    let is_other = |said: &str, wanted: &str| !said.is_empty() && said != wanted;
    if is_other(named("apiVersion"), &kind.api_version()) || is_other(named("kind"), kind.kind) {
        let (said, said_kind) = (named("apiVersion"), named("kind"));
        let why = match Kind::of_object(said, said_kind) {
            Some(other) => {
                let read = bindery_fields::canonical(schema(other)?, decoded.value.clone(), Strictness::Ignore);
                read.err().map_or_else(|| no_conversion(other.version, other.kind, kind), |flaw| flaw.0)
            }
            None => format!(
                "no kind {said_kind:?} is registered for version {said:?} in scheme \"pkg/runtime/scheme.go:111\""
            ),
        };
        let mut flaws = FieldErrors::default();
        flaws.invalid("patch", decoded.value.to_string(), &why);
        flaws.refuse_as("", "", "")?;
    }
    name_kind(&mut decoded.value, kind);
    Ok(Read { object: decoded.value, flaws: decoded.flaws })
}

fn refusal(flaw: PatchError) -> Status {
    let message = flaw.message();
    match flaw {
        PatchError::BadRequest(_) => Status::bad_request(message),
        PatchError::Unprocessable(_) => Status::failure(422, "Invalid", message).with(Details::default()),
        PatchError::TooLarge(_) => Status::failure(413, "RequestEntityTooLarge", message),
        PatchError::Internal(_) => Status::failure(500, "", message),
        PatchError::Invalid { value, detail } => {
            let mut flaws = FieldErrors::default();
            flaws.invalid("patch", value, &detail);
            flaws.refuse_as("", "", "").err().unwrap_or_else(|| Status::internal(message))
        }
    }
}

/// Who writes.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    pub manager: &'a str,
    pub subresource: &'a str,
    pub now: &'a str,
}

impl<'a> By<'a> {
    fn writer(self) -> Writer<'a> {
        Writer { manager: self.manager, subresource: self.subresource, now: self.now }
    }
}

/// Keeps in an object who owns its fields, after a write that is no apply.
pub fn track(kind: &Kind, live: Option<&Value>, new: &mut Value, by: By<'_>) -> Result<(), Status> {
    managed::track_update(schema(kind)?, live, new, &by.writer());
    Ok(())
}

/// Server-side apply.
pub fn applied(kind: &Kind, live: Option<&Value>, patch: &Value, force: bool, by: By<'_>) -> Result<Value, Status> {
    let outcome = managed::apply(schema(kind)?, live, patch, force, &by.writer());
    let mut object = outcome.map_err(|flaw| {
        let message = flaw.message();
        match flaw {
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
    name_kind(&mut object, kind);
    Ok(object)
}
