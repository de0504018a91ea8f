//! The form in which an object is returned: itself, its metadata, or a row of a table.

use std::io::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::kinds::{Kind, PrintContext};
use crate::status::Status;

/// The form in which each object is returned.
#[derive(Debug, Clone)]
pub enum Form {
    /// The object itself.
    Plain,
    /// Its metadata only, in a version of `meta.k8s.io`.
    Partial(&'static str),
    /// A row, or a table of one row.
    Table(Table),
}

/// A table of objects.
#[derive(Debug, Clone)]
pub struct Table {
    /// The version of `meta.k8s.io`.
    pub version: &'static str,
    /// The kind of the objects.
    pub kind: &'static Kind,
    /// How much of each object is part of its row.
    pub include: Include,
    /// The current time, for ages.
    pub now: Timestamp,
    /// The class to mark as the default.
    pub default_class: Option<String>,
}

/// How much of an object is part of its row.
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
    /// Parses `includeObject`.
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

/// Writes the metadata of an object as a PartialObjectMetadata.
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
    /// Writes the part of a table before its column definitions.
    pub fn write_head(&self, out: &mut Vec<u8>, metadata: &str) {
        push(
            out,
            format_args!(r#"{{"kind":"Table","apiVersion":"meta.k8s.io/{}","metadata":{metadata},"#, self.version),
        );
    }

    /// Writes the column definitions.
    pub fn write_columns(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#""columnDefinitions":["#);
        for (index, column) in self.kind.columns.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
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
        let context = PrintContext { now: self.now, default_class: self.default_class.as_deref() };
        let cells = Value::from((self.kind.cells)(&value, &context));
        push(out, format_args!(r#"{{"cells":{cells},"#));
        if let Some(conditions) = self.kind.strategy.row_conditions(&value) {
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

    /// Writes a table of one object. In a watch only the first has column definitions.
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

/// Appends formatted text.
pub fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory cannot fail");
}
