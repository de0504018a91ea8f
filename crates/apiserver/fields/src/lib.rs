//! The structure of Kubernetes objects: schemas, strict decoding, patches, field ownership, OpenAPI documents.
//!
//! Everything works on `serde_json::Value`, at once and without side effects. What a kind looks like is read from one table of facts
//! (`table.txt`), so that decoding, patching, ownership and the documents cannot disagree.
//!
//! This room does not know any store, any rule of a kind, any clock, nor HTTP.

pub mod decode;
pub mod fieldset;
pub mod managed;
pub mod openapi;
pub mod patch;
mod schema;

pub use decode::{DecodeError, Decoded, FromYaml, Strictness, canonical, decode, yaml_to_json};
pub use fieldset::FieldSet;
pub use patch::{PatchError, PatchKind, Patched, Validation, json_patch, merge_patch, strategic_merge_patch};
pub use schema::Schema;
