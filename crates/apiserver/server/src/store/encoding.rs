//! The encoding of objects: kind, version and revision come first, so that they can be cut off or
//! replaced without decoding.

use super::Stored;
use bytes::Bytes;
use serde_json::{Map, Value};
use std::io::Write;

const METADATA: &[u8] = b"\"metadata\":{\"resourceVersion\":\"";

/// Encodes an object in canonical form, with kind and apiVersion, at a revision.
pub fn encode(object: &Value, revision: u64) -> Stored {
    let (bytes, empty) = (write(object, Some(revision)), Map::new());
    let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    let labels = metadata.get("labels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
    let owners = metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let owners = owners.filter_map(|owner| Some(owner.get("uid")?.as_str()?.into()));
    Stored {
        revision,
        bytes,
        uid: metadata.get("uid").and_then(Value::as_str).unwrap_or_default().into(),
        labels: labels.collect(),
        owners: owners.collect(),
        is_draft: false,
    }
}

/// Encodes an object that is not stored, such as the result of a dry run.
pub fn encode_draft(object: &Value) -> Bytes {
    write(object, None)
}

fn write(object: &Value, revision: Option<u64>) -> Bytes {
    let mut out = Vec::with_capacity(2048);
    let empty = Map::new();
    let fields = object.as_object().unwrap_or(&empty);
    out.push(b'{');
    for name in ["kind", "apiVersion"] {
        member(&mut out, name, fields.get(name).unwrap_or(&Value::Null));
        out.push(b',');
    }
    let metadata = fields.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    match revision {
        Some(revision) => {
            out.extend_from_slice(METADATA);
            write!(out, "{revision}\"").expect("writing to memory cannot fail");
            for (name, value) in metadata.iter().filter(|(name, _)| *name != "resourceVersion") {
                out.push(b',');
                member(&mut out, name, value);
            }
            out.push(b'}');
        }
        None => member(&mut out, "metadata", &Value::Object(metadata.clone())),
    }
    for (name, value) in fields {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            out.push(b',');
            member(&mut out, name, value);
        }
    }
    out.push(b'}');
    // A copy has the exact size; shrinking the buffer would fragment memory.
    Bytes::copy_from_slice(&out)
}

fn member(out: &mut Vec<u8>, name: &str, value: &Value) {
    serde_json::to_writer(&mut *out, name).expect("writing to memory cannot fail");
    out.push(b':');
    serde_json::to_writer(&mut *out, value).expect("writing to memory cannot fail");
}

/// An encoded object without `{`, kind and apiVersion, as in a list.
pub fn item(encoded: &[u8]) -> &[u8] {
    &encoded[metadata_at(encoded)..]
}

/// The object with another revision.
pub fn with_revision(encoded: &[u8], revision: u64) -> Bytes {
    let start = metadata_at(encoded);
    if !encoded[start..].starts_with(METADATA) {
        return Bytes::copy_from_slice(encoded);
    }
    let start = start + METADATA.len();
    let end = start + encoded[start..].iter().position(|byte| *byte == b'"').unwrap_or(0);
    let mut out = Vec::with_capacity(encoded.len() + 8);
    out.extend_from_slice(&encoded[..start]);
    write!(out, "{revision}").expect("writing to memory cannot fail");
    out.extend_from_slice(&encoded[end..]);
    Bytes::from(out.into_boxed_slice())
}

/// The offset of the metadata: after the second comma, since kinds and versions contain none.
fn metadata_at(encoded: &[u8]) -> usize {
    let commas = encoded.iter().enumerate().filter(|(_, byte)| **byte == b',').map(|(at, _)| at);
    commas.skip(1).map(|at| at + 1).next().unwrap_or(0)
}
