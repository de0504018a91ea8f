//! Responses: status, headers, and the body in the requested form.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WARNING, X_CONTENT_TYPE_OPTIONS,
};
use http::{Response, StatusCode};
use serde_json::Value;

use super::body::{Body, CHUNK_BYTES};
use super::pretty::indented;
use super::rows::Rows;
use super::shape::{Form, Table, write_partial};
use crate::api::Format;
use crate::status::Status;

/// An HTTP response.
pub type Reply = Response<Body>;

/// Identifies a request, so that it can be found in logs.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, private");

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputFormat {
    /// JSON or YAML.
    pub format: Format,
    /// Whether it is indented.
    pub pretty: bool,
}

impl OutputFormat {
    /// JSON without indentation.
    pub const PLAIN: OutputFormat = OutputFormat { format: Format::Json, pretty: false };
}

/// A response with a body.
pub fn reply(code: u16, content_type: HeaderValue, body: Body) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, NO_CACHE);
    headers.insert(CONTENT_TYPE, content_type);
    reply
}

/// Plain text.
pub fn text(code: u16, text: impl Into<Bytes>) -> Reply {
    let mut reply = reply(code, TEXT, Body::Whole(text.into()));
    if code != 200 {
        reply.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    reply
}

/// The response where neither an object nor an API is served.
pub fn page_not_found() -> Reply {
    text(404, "404 page not found\n")
}

/// One encoded JSON document.
pub fn document(code: u16, json: Bytes, output: OutputFormat) -> Reply {
    match output {
        OutputFormat { format: Format::Json, pretty: false } => reply(code, JSON, Body::Whole(json)),
        OutputFormat { format: Format::Json, pretty: true } => reply(code, JSON, Body::Whole(indented(&json).into())),
        OutputFormat { format: Format::Yaml, .. } => reply(code, YAML, Body::Whole(yaml(&json))),
    }
}

/// Converts JSON that this server has encoded to YAML.
fn yaml(json: &[u8]) -> Bytes {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    serde_saphyr::to_string(&value).unwrap_or_default().into()
}

/// A failure, or a success without an object.
pub fn status(status: &Status, output: OutputFormat) -> Reply {
    let json = serde_json::to_vec(status).unwrap_or_default();
    let mut reply = document(status.http_code(), json.into(), output);
    let seconds = status.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = seconds {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    warn(&mut reply, &status.warnings);
    reply
}

/// One object.
pub fn object(code: u16, object: Bytes, form: &Form, output: OutputFormat) -> Reply {
    let shown = match form {
        Form::Plain => object,
        Form::Partial(version) => {
            let mut out = Vec::with_capacity(object.len());
            write_partial(&mut out, version, &object);
            out.into()
        }
        Form::Table(table) => single_table(table, &object),
    };
    document(code, shown, output)
}

fn single_table(table: &Table, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(2 * object.len());
    table.write_single(&mut out, object, true);
    out.into()
}

/// A list: sent at once if it is short, and encoded as the client reads it otherwise.
pub fn rows(code: u16, rows: Rows, output: OutputFormat) -> Reply {
    if output != OutputFormat::PLAIN {
        return document(code, rows.all(), output);
    }
    match rows.whole(CHUNK_BYTES) {
        Ok(whole) => reply(code, JSON, Body::Whole(whole)),
        Err(rows) => reply(code, JSON, Body::Rows(rows)),
    }
}

/// Upstream's limits: beyond the first, each warning is cut to the second.
const WARNINGS_LETTERS_MAX: usize = 4096;
const CUT_WARNING_LETTERS: usize = 256;

/// Adds warnings as headers, without control characters.
pub fn warn(reply: &mut Reply, warnings: &[String]) {
    let total: usize = warnings.iter().map(|warning| warning.chars().count()).sum();
    let each = if total > WARNINGS_LETTERS_MAX { CUT_WARNING_LETTERS } else { total };
    let mut written = 0;
    for warning in warnings {
        if written >= WARNINGS_LETTERS_MAX {
            break;
        }
        let cut: String = warning.chars().take(each).collect();
        written += cut.chars().count();
        let text: String = cut.chars().filter(|letter| !letter.is_control()).collect();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            reply.headers_mut().append(WARNING, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_limited() {
        let mut reply = text(200, "ok");
        let long: Vec<String> = (0..100).map(|number| format!("{number}{}", "é".repeat(100_000))).collect();
        warn(&mut reply, &long);
        let sent: Vec<usize> = reply.headers().get_all(WARNING).iter().map(HeaderValue::len).collect();
        assert_eq!(sent.len(), WARNINGS_LETTERS_MAX / CUT_WARNING_LETTERS);
        assert!(sent.iter().all(|length| *length < 2 * CUT_WARNING_LETTERS + 10), "{sent:?}");
    }
}
