//! Where this room meets `bindery-fields`: bodies become objects, patches become objects, and owners of fields are kept.

use crate::api::{Body, Format, PatchType};
use crate::invalid::Flaws;
use crate::kinds::Kind;
use crate::status::{Cause, Details, Status};
use bindery_fields::managed::{self, ApplyError, Writer};
use bindery_fields::{PatchError, Schema, Strictness};
use serde::Deserialize;
use serde_json::Value;

/// An object, and what was odd about its text.
#[derive(Debug)]
pub struct Read {
    pub object: Value,
    /// Unknown and duplicate fields.
    pub flaws: Vec<String>,
}

#[derive(Deserialize)]
struct TypeOf {
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

fn schema(kind: &Kind) -> Result<&'static Schema, Status> {
    Schema::of(kind.group, kind.version, kind.kind).ok_or_else(|| Status::internal(format!("{} has no schema", kind.kind)))
}

/// A body as JSON text.
pub fn json(body: &Body) -> Result<std::borrow::Cow<'_, [u8]>, Status> {
    match body.format {
        Format::Json => Ok((&body.bytes[..]).into()),
        Format::Yaml => {
            let text = bindery_fields::yaml_to_json(&body.bytes);
            text.map(Into::into).map_err(|flaw| Status::bad_request(format!("error decoding YAML: {flaw}")))
        }
    }
}

/// Reads a body as an object of a kind.
pub fn read(kind: &'static Kind, body: &Body, strict: bool) -> Result<Read, Status> {
    let text = json(body)?;
    let named: TypeOf = serde_json::from_slice(&text).map_err(|flaw| unrecognized(kind, &text, &flaw))?;
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
            Some(_) => {
                let package = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
                format!("converting ({said_version}.{said}) to ({package}.{}): unknown conversion", kind.kind)
            }
            None => {
                let version = &named.api_version;
                format!("no kind {said:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"")
            }
        }));
    }
    let decoded = bindery_fields::decode(schema(kind)?, &text, strictness(strict)).map_err(|flaw| refuse(flaw.0))?;
    let mut object = decoded.value;
    name_kind(&mut object, kind);
    Ok(Read { object, flaws: decoded.flaws })
}

fn strictness(report: bool) -> Strictness {
    if report { Strictness::Report } else { Strictness::Ignore }
}

fn name_kind(object: &mut Value, kind: &Kind) {
    crate::value::set(object, &["kind"], kind.kind);
    crate::value::set(object, &["apiVersion"], kind.api_version());
}

fn unrecognized(kind: &Kind, text: &[u8], flaw: &serde_json::Error) -> Status {
    let summary = match text.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(text).chars().take(1024).collect(),
        Some(_) => text.iter().take(1024).map(|byte| format!("{byte:02x}")).collect(),
    };
    let what = if flaw.is_eof() {
        "unexpected end of JSON input".to_owned()
    } else if text.first() == Some(&b'[') && flaw.is_data() {
        let go = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        format!("json: cannot unmarshal array into Go value of type {go}")
    } else {
        let at = text.iter().find(|byte| !byte.is_ascii_whitespace()).map_or(' ', |byte| char::from(*byte));
        format!("invalid character '{at}' looking for beginning of value")
    };
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {what} ({summary})",
        kind.kind
    ))
}

/// Applies a patch that is not server-side apply.
pub fn patched(kind: &Kind, live: &Value, patch: PatchType, body: &Body, strict: bool) -> Result<Read, Status> {
    let (schema, text) = (schema(kind)?, json(body)?);
    let patched = match patch {
        PatchType::Json => bindery_fields::json_patch(live, &text),
        PatchType::Merge => bindery_fields::merge_patch(live, &text),
        PatchType::Strategic => bindery_fields::strategic_merge_patch(schema, live, &text),
        PatchType::Apply => return Err(Status::internal("an apply patch is no patch of this kind")),
    };
    let patched = patched.map_err(|flaw| match flaw {
        PatchError::BadRequest(why) => Status::bad_request(why),
        PatchError::Unprocessable(why) => Status::failure(422, "Invalid", why),
        PatchError::TooLarge(why) => Status::failure(413, "RequestEntityTooLarge", why),
        PatchError::Internal(why) => Status::internal(why),
    })?;
    let named = |field| crate::value::text(&patched.value, &[field]).to_owned();
    let (said, said_kind) = (named("apiVersion"), named("kind"));
    let whole = || serde_json::to_string(&patched.value).unwrap_or_default();
    let mut flaws = Flaws::default();
    if said != kind.api_version() || said_kind != kind.kind {
        let why = match Kind::of_object(&said, &said_kind) {
            Some(other) => format!("converting ({}.{}) to (core.{}): unknown conversion", other.version, other.kind, kind.kind),
            None if said_kind.is_empty() => format!("Object 'Kind' is missing in '{}'", whole()),
            None => format!("no kind {said_kind:?} is registered for version {said:?} in scheme \"pkg/runtime/scheme.go:111\""),
        };
        flaws.invalid("patch", whole(), &why);
        flaws.refuse_as("", "", "")?;
    }
    let flaws_of_text = patched.flaws;
    // The text is only wanted for a refusal, so the value is kept for it rather than encoded each time.
    let kept = patched.value.clone();
    match bindery_fields::canonical(schema, patched.value, strictness(strict)) {
        Ok(decoded) => {
            let mut object = decoded.value;
            name_kind(&mut object, kind);
            Ok(Read { object, flaws: flaws_of_text.into_iter().chain(decoded.flaws).collect() })
        }
        Err(flaw) => {
            let mut flaws = Flaws::default();
            flaws.invalid("patch", serde_json::to_string(&kept).unwrap_or_default(), &flaw.0);
            flaws.refuse_as("", "", "")?;
            Err(Status::internal(flaw))
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
    let mut object = outcome.map_err(|flaw| match flaw {
        ApplyError::BadRequest(why) => Status::bad_request(why),
        ApplyError::Internal(why) => Status::internal(why),
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.iter().map(|conflict| Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: format!("conflict with {}", conflict.owner),
                field: conflict.field.clone(),
            });
            let details = Details { causes: causes.collect(), ..Details::default() };
            Status::failure(409, "Conflict", conflicts_text(&conflicts)).with(details)
        }
    })?;
    name_kind(&mut object, kind);
    Ok(object)
}

fn conflicts_text(conflicts: &[managed::Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", one.owner, one.field);
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    let mut owner = "";
    for conflict in conflicts {
        if conflict.owner != owner {
            let separator = if owner.is_empty() { "" } else { "\n" };
            text += &format!("{separator}conflicts with {}:", conflict.owner);
            owner = &conflict.owner;
        }
        text += &format!("\n- {}", conflict.field);
    }
    text
}
