//! From text to an object in the form in which the API server itself would print it.

use serde_json::Value;

use crate::Schema;

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
pub fn decode(_schema: &Schema, _text: &[u8], _strictness: Strictness) -> Result<Decoded, DecodeError> {
    todo!()
}

/// Brings a value that is at hand already, such as the outcome of a patch, into canonical form.
pub fn canonical(_schema: &Schema, _value: Value, _strictness: Strictness) -> Result<Decoded, DecodeError> {
    todo!()
}

/// YAML text as JSON text. Duplicate keys are an error, as they are for upstream.
pub fn yaml_to_json(_text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    todo!()
}
