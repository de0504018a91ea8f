//! Decodes text into an object in the form in which the API server would print it.

use std::borrow::Cow;

use serde::de::DeserializeSeed;
use serde_json::Value;

use crate::Schema;

mod reader;
mod scalar;
mod syntax;
mod untyped;

pub(crate) use reader::read_field;
pub use syntax::syntax_error;
pub(crate) use untyped::untyped;

/// Whether strict decoding errors (unknown and duplicate fields) are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Unknown fields are dropped silently.
    Ignore,
    /// Unknown and duplicate fields are listed in `Decoded::strict_errors`. The caller decides
    /// whether they are warnings or errors.
    Report,
}

/// An object in canonical form: known fields only, no nulls, nothing that Go's encoder would omit,
/// quantities and times in their canonical spelling, and the empty structs that Go's encoder always
/// prints (`status: {}`).
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object.
    pub value: Value,
    /// `unknown field "spec.foo"`, `duplicate field "spec.foo"`, with upstream's wording; each
    /// once.
    pub strict_errors: Vec<String>,
}

/// The text is not an object of the kind. The message is that of Go's decoder (`json: cannot
/// unmarshal …`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(pub String);

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

/// Decodes JSON text as an object of the kind.
pub fn decode(schema: &Schema, text: &[u8], strictness: Strictness) -> Result<Decoded, DecodeError> {
    let text = valid_utf8(text);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let mut diagnostics = reader::Diagnostics::new(strictness == Strictness::Report);
    let read = reader(schema, &mut diagnostics).deserialize(&mut deserializer).and_then(|value| {
        deserializer.end()?;
        Ok(value)
    });
    let value = read.map_err(|_| DecodeError(syntax_error(text.as_bytes())))?;
    decoded(schema, value, diagnostics)
}

/// Converts a value, such as the result of a patch, to canonical form.
pub fn canonical(schema: &Schema, value: Value, strictness: Strictness) -> Result<Decoded, DecodeError> {
    let mut diagnostics = reader::Diagnostics::new(strictness == Strictness::Report);
    let value = reader(schema, &mut diagnostics).deserialize(value).map_err(|error| DecodeError(error.to_string()))?;
    decoded(schema, value, diagnostics)
}

fn reader<'a>(schema: &Schema, diagnostics: &'a mut reader::Diagnostics) -> reader::Reader<'a> {
    reader::Reader { shape: schema.shape(), owner: schema.kind, go_type: schema.go_type(), diagnostics }
}

fn decoded(schema: &Schema, value: Value, diagnostics: reader::Diagnostics) -> Result<Decoded, DecodeError> {
    match diagnostics.error {
        Some(error) => Err(DecodeError(error)),
        None if value.is_null() => {
            Ok(Decoded { value: schema.empty().clone(), strict_errors: diagnostics.strict_errors })
        }
        None => Ok(Decoded { value, strict_errors: diagnostics.strict_errors }),
    }
}

/// Go's decoder replaces invalid UTF-8 with U+FFFD.
fn valid_utf8(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// The struct into which Go decodes the `apiVersion` and `kind` of a body.
pub(crate) const GO_TYPE_META: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The `apiVersion` and `kind` of a body; empty if the body does not set them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeMeta {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
}

/// Reads the `apiVersion` and `kind` of JSON text. The error is the whole message of upstream's 400
/// response where `expected` is the expected kind.
pub fn type_meta(expected: &str, text: &[u8]) -> Result<TypeMeta, DecodeError> {
    type_meta_only(text).map_err(|DecodeError(error)| {
        let (shown, rest) = text.split_at(text.len().min(30));
        let shown = match shown.first() {
            None => "<empty>".to_owned(),
            Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
            Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let more = if rest.is_empty() { "" } else { " ..." };
        let prefix = format!("the object provided is unrecognized (must be of type {expected})");
        DecodeError(format!("{prefix}: {error} ({shown}{more})"))
    })
}

/// Like [`type_meta`], but the error mentions neither the expected kind nor the text.
pub fn type_meta_only(text: &[u8]) -> Result<TypeMeta, DecodeError> {
    let read = read_type_meta(&valid_utf8(text));
    let named = read.map_err(|error| DecodeError(format!("couldn't get version/kind; json parse error: {error}")))?;
    if named.api_version.matches('/').count() > 1 {
        return Err(DecodeError(format!("unexpected GroupVersion string: {}", named.api_version)));
    }
    Ok(named)
}

/// Why a text is not a JSON object, with the wording of Go's decoder; `None` if it is one.
pub fn object_error(text: &[u8]) -> Option<String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let mut types = untyped::Types::default();
    let read = types.read(&mut deserializer).and_then(|()| deserializer.end());
    match (read, types.other) {
        (Err(_), _) => Some(syntax_error(text)),
        (Ok(()), Some(given)) => {
            Some(format!("json: cannot unmarshal {given} into Go value of type map[string]interface {{}}"))
        }
        (Ok(()), None) => None,
    }
}

/// Quotes a text as Go's `%q` does.
pub fn go_quoted(text: &str) -> String {
    let letters = text.chars().map(|letter| if letter == '"' { "\\\"".to_owned() } else { syntax::go_char(letter) });
    format!("\"{}\"", letters.collect::<String>())
}

fn read_type_meta(text: &str) -> Result<TypeMeta, String> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut types = untyped::Types::default();
    let read = types.read(&mut deserializer).and_then(|()| deserializer.end());
    read.map_err(|_| syntax_error(text.as_bytes()))?;
    match (types.other, types.mismatch) {
        (Some(given), _) => Err(format!("json: cannot unmarshal {given} into Go value of type {GO_TYPE_META}")),
        (None, Some((field, given))) => {
            Err(format!("json: cannot unmarshal {given} into Go struct field .{field} of type string"))
        }
        (None, None) => Ok(TypeMeta { api_version: types.api_version, kind: types.kind }),
    }
}

/// YAML text converted to JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromYaml {
    /// The JSON text. If a key occurs twice, the last value is used.
    pub json: Vec<u8>,
    /// The first duplicate key: `line 7: key "a" already set in map`.
    pub duplicate_key: Option<String>,
}

/// Converts YAML text to JSON text.
pub fn yaml_to_json(text: &[u8]) -> Result<FromYaml, DecodeError> {
    let text = valid_utf8(text);
    let refuse = |error: serde_saphyr::Error| DecodeError(format!("yaml: {error}"));
    let (value, duplicate) = match serde_saphyr::from_str::<Value>(&text) {
        Ok(value) => (value, None),
        Err(error) => {
            let duplicate = duplicate_key(&error).ok_or_else(|| refuse(error))?;
            let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
            (serde_saphyr::from_str_with_options(&text, options).map_err(refuse)?, Some(duplicate))
        }
    };
    let json = serde_json::to_vec(&value).map_err(|error| DecodeError(error.to_string()))?;
    Ok(FromYaml { json, duplicate_key: duplicate })
}

fn duplicate_key(error: &serde_saphyr::Error) -> Option<String> {
    let serde_saphyr::Error::DuplicateMappingKey { key, location } = error.without_snippet() else { return None };
    Some(format!("line {}: key {} already set in map", location.line(), go_quoted(key.as_deref().unwrap_or_default())))
}
