//! The structure of Kubernetes objects: schemas, strict decoding, patches, field ownership, OpenAPI
//! documents.
//!
//! All functions are synchronous, work on `serde_json::Value` and have no side effects. The schema
//! of each kind comes from one table (`table.txt`), which decoding, patching, ownership and the
//! documents share.
//!
//! Bodies may be nested 127 levels deep. What a patch copies, shifts and compares is limited, so
//! that no patch takes more than a fraction of a second.
//!
//! This crate has no store, no validation rules, no clock and no HTTP.

pub mod decode;
mod fieldset;
pub mod managed;
pub mod openapi;
pub mod patch;
mod schema;

pub use decode::{DecodeError, Decoded, FromYaml, Strictness, canonical, decode, yaml_to_json};
pub(crate) use fieldset::FieldSet;
pub use patch::{PatchError, PatchKind, Patched, Validation, merge_patch, strategic_merge_patch};
pub use schema::Schema;
