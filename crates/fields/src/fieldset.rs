//! Sets of field paths, as `fieldsV1` keeps them.

use serde_json::Value;

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {}

impl FieldSet {
    /// Reads FieldsV1.
    pub fn from_fields_v1(_fields: &Value) -> Result<FieldSet, String> {
        todo!()
    }

    /// Writes FieldsV1.
    pub fn to_fields_v1(&self) -> Value {
        todo!()
    }

    /// Whether no path is in it.
    pub fn is_empty(&self) -> bool {
        todo!()
    }
}
