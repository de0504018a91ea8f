//! From text to an object in the form in which the API server itself would print it.

use std::borrow::Cow;

use serde::de::DeserializeSeed;
use serde_json::Value;

use crate::Schema;

mod duplicates;
mod plain;
mod reader;
mod syntax;

pub(crate) use duplicates::untyped;
pub(crate) use reader::read_field;
pub use syntax::mistake;

/// Whether flaws (unknown and duplicate fields) are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Unknown fields are dropped without a word.
    Ignore,
    /// Unknown and duplicate fields are named in `Decoded::flaws`. What becomes of them (a warning, a refusal) is the caller's choice.
    Report,
}

/// An object in canonical form: known fields only, no nulls, nothing that Go's encoder would leave out, quantities and times in their
/// canonical spelling, and the empty structs that Go's encoder prints even if nothing is in them (`status: {}`).
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object.
    pub value: Value,
    /// `unknown field "spec.foo"`, `duplicate field "spec.foo"`, as upstream words them; without doubles.
    pub flaws: Vec<String>,
}

/// The text is no object of the kind; the message is the one of Go's decoder (`json: cannot unmarshal …`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(pub String);

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

/// Reads JSON text as an object of the kind.
pub fn decode(schema: &Schema, text: &[u8], strictness: Strictness) -> Result<Decoded, DecodeError> {
    let text = valid_utf8(text);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    let mut notes = reader::Notes::new(strictness == Strictness::Report);
    let read = reader(schema, &mut notes).deserialize(&mut deserializer).and_then(|value| {
        deserializer.end()?;
        Ok(value)
    });
    let value = read.map_err(|_| DecodeError(mistake(text.as_bytes())))?;
    decoded(schema, value, notes)
}

/// Brings a value that is at hand already, such as the outcome of a patch, into canonical form.
pub fn canonical(schema: &Schema, value: Value, strictness: Strictness) -> Result<Decoded, DecodeError> {
    let mut notes = reader::Notes::new(strictness == Strictness::Report);
    let value = reader(schema, &mut notes).deserialize(value).map_err(|error| DecodeError(error.to_string()))?;
    decoded(schema, value, notes)
}

fn reader<'a>(schema: &Schema, notes: &'a mut reader::Notes) -> reader::Reader<'a> {
    reader::Reader { shape: schema.shape(), owner: schema.kind, go_type: schema.go_type(), notes }
}

fn decoded(schema: &Schema, value: Value, notes: reader::Notes) -> Result<Decoded, DecodeError> {
    match notes.error {
        Some(error) => Err(DecodeError(error)),
        None if value.is_null() => Ok(Decoded { value: schema.empty().clone(), flaws: notes.flaws }),
        None => Ok(Decoded { value, flaws: notes.flaws }),
    }
}

/// Go's decoder takes bytes that are no UTF-8 for U+FFFD.
fn valid_utf8(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// The `apiVersion` and `kind` that a body says it is of; empty if it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeMeta {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
}

/// Reads what JSON text says it is. The error is the whole message of the 400 that upstream answers with where `expected` is wanted.
pub fn type_meta(expected: &str, text: &[u8]) -> Result<TypeMeta, DecodeError> {
    bare_type_meta(text).map_err(|DecodeError(error)| {
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

/// The same, where nothing is said of what was expected, nor of the text.
pub fn bare_type_meta(text: &[u8]) -> Result<TypeMeta, DecodeError> {
    let read = read_type_meta(&valid_utf8(text));
    let named = read.map_err(|error| DecodeError(format!("couldn't get version/kind; json parse error: {error}")))?;
    if named.api_version.matches('/').count() > 1 {
        return Err(DecodeError(format!("unexpected GroupVersion string: {}", named.api_version)));
    }
    Ok(named)
}

/// Why a text is no JSON object, in the words of Go's decoder; none if it is one.
pub fn object_mistake(text: &[u8]) -> Option<String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let mut types = duplicates::Types::default();
    let read = types.read(&mut deserializer).and_then(|()| deserializer.end());
    match (read, types.other) {
        (Err(_), _) => Some(mistake(text)),
        (Ok(()), Some(given)) => {
            Some(format!("json: cannot unmarshal {given} into Go value of type map[string]interface {{}}"))
        }
        (Ok(()), None) => None,
    }
}

/// A text in quotes, as Go writes it.
pub fn go_quoted(text: &str) -> String {
    let letters = text.chars().map(|letter| if letter == '"' { "\\\"".to_owned() } else { syntax::go_char(letter) });
    format!("\"{}\"", letters.collect::<String>())
}

fn read_type_meta(text: &str) -> Result<TypeMeta, String> {
    const GO_TYPE: &str =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut types = duplicates::Types::default();
    let read = types.read(&mut deserializer).and_then(|()| deserializer.end());
    read.map_err(|_| mistake(text.as_bytes()))?;
    match (types.other, types.mismatch) {
        (Some(given), _) => Err(format!("json: cannot unmarshal {given} into Go value of type {GO_TYPE}")),
        (None, Some((field, given))) => {
            Err(format!("json: cannot unmarshal {given} into Go struct field .{field} of type string"))
        }
        (None, None) => Ok(TypeMeta { api_version: types.api_version, kind: types.kind }),
    }
}

/// JSON text that was YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromYaml {
    /// The JSON text. Of duplicate keys it holds the last.
    pub json: Vec<u8>,
    /// The first duplicate key: `line 7: key "a" already set in map`.
    pub flaw: Option<String>,
}

/// YAML text as JSON text.
pub fn yaml_to_json(text: &[u8]) -> Result<FromYaml, DecodeError> {
    let text = valid_utf8(text);
    let refuse = |error: serde_saphyr::Error| DecodeError(format!("yaml: {error}"));
    let (value, flaw) = match serde_saphyr::from_str::<Value>(&text) {
        Ok(value) => (value, None),
        Err(error) => {
            let flaw = duplicate_key(&error).ok_or_else(|| refuse(error))?;
            let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
            (serde_saphyr::from_str_with_options(&text, options).map_err(refuse)?, Some(flaw))
        }
    };
    let json = serde_json::to_vec(&value).map_err(|error| DecodeError(error.to_string()))?;
    Ok(FromYaml { json, flaw })
}

fn duplicate_key(error: &serde_saphyr::Error) -> Option<String> {
    let serde_saphyr::Error::DuplicateMappingKey { key, location } = error.without_snippet() else { return None };
    Some(format!("line {}: key {} already set in map", location.line(), go_quoted(key.as_deref().unwrap_or_default())))
}
