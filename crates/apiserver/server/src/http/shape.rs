//! What is made of one encoded object before it is shown: nothing, its metadata alone, or the row of a table.

use std::io::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::kinds::{Kind, Sight};
use crate::status::Status;

/// What is made of each object.
#[derive(Debug, Clone)]
pub enum Form {
    /// It is shown as it is.
    Plain,
    /// Its metadata alone, in a version of `meta.k8s.io`.
    Partial(&'static str),
    /// A row, or a table of one row.
    Table(Table),
}

/// A table of objects.
#[derive(Debug, Clone)]
pub struct Table {
    /// The version of `meta.k8s.io`.
    pub version: &'static str,
    /// What the objects are.
    pub kind: &'static Kind,
    /// How much of each object goes with its row.
    pub include: Include,
    /// To tell ages.
    pub now: Timestamp,
    /// The class to mark as the default.
    pub default_class: Option<String>,
}

/// How much of an object goes with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    Nothing,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// Reads `includeObject`.
    pub fn parse(value: &str) -> Result<Include, Status> {
        match value {
            "" | "Metadata" => Ok(Include::Metadata),
            "Object" => Ok(Include::Object),
            "None" => Ok(Include::Nothing),
            other => Err(Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

#[derive(serde::Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

#[derive(serde::Deserialize)]
struct Revision<'a> {
    #[serde(borrow, rename = "resourceVersion", default)]
    revision: Option<&'a str>,
}

/// Writes an object's metadata, as an object of its own.
pub fn write_partial(out: &mut Vec<u8>, version: &str, object: &[u8]) {
    let metadata = metadata(object);
    push(
        out,
        format_args!(
            r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{version}","metadata":{metadata}}}"#
        ),
    );
}

fn metadata(object: &[u8]) -> &str {
    serde_json::from_slice::<Metadata<'_>>(object).map_or("{}", |object| object.metadata.get())
}

impl Table {
    /// Writes everything of a table that comes before its columns' definitions.
    pub fn write_head(&self, out: &mut Vec<u8>, metadata: &str) {
        push(
            out,
            format_args!(r#"{{"kind":"Table","apiVersion":"meta.k8s.io/{}","metadata":{metadata},"#, self.version),
        );
    }

    /// Writes the definitions of the columns.
    pub fn write_columns(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#""columnDefinitions":["#);
        for (place, column) in self.kind.columns.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let text = |text: &str| Value::from(text).to_string();
            push(
                out,
                format_args!(
                    r#"{comma}{{"name":{},"type":{},"format":{},"description":{},"priority":{}}}"#,
                    text(column.name),
                    text(column.kind),
                    text(column.format),
                    text(column.description),
                    column.priority
                ),
            );
        }
        out.push(b']');
    }

    /// Writes the row of an object.
    pub fn write_row(&self, out: &mut Vec<u8>, object: &[u8]) {
        let value: Value = serde_json::from_slice(object).unwrap_or_default();
        let sight = Sight { now: self.now, default_class: self.default_class.as_deref() };
        let cells = Value::from((self.kind.cells)(&value, &sight));
        push(out, format_args!(r#"{{"cells":{cells},"#));
        if let Some(conditions) = self.kind.rules.row_conditions(&value) {
            push(out, format_args!(r#""conditions":{conditions},"#));
        }
        out.extend_from_slice(br#""object":"#);
        match self.include {
            Include::Nothing => out.extend_from_slice(b"null"),
            Include::Metadata => write_partial(out, self.version, object),
            Include::Object => out.extend_from_slice(object),
        }
        out.push(b'}');
    }

    /// Writes a table of one object. In a stream only the first defines the columns.
    pub fn write_single(&self, out: &mut Vec<u8>, object: &[u8], columns: bool) {
        let metadata = metadata(object);
        let revision = serde_json::from_str::<Revision<'_>>(metadata).ok().and_then(|metadata| metadata.revision);
        let metadata =
            revision.map_or_else(|| "{}".to_owned(), |revision| format!(r#"{{"resourceVersion":"{revision}"}}"#));
        self.write_head(out, &metadata);
        if columns {
            self.write_columns(out);
        } else {
            out.extend_from_slice(br#""columnDefinitions":null"#);
        }
        out.extend_from_slice(br#","rows":["#);
        self.write_row(out, object);
        out.extend_from_slice(b"]}");
    }
}

/// Writing to memory cannot fail.
pub fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory can be written to");
}
