//! OpenAPI: one document for each group version, and one for all of them. They are large, so they
//! are created on first use.

use bindery_fields::openapi;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, ETAG, EXPIRES, LOCATION, VARY};

use super::body::Body;
use super::query::Query;
use super::reply::{OutputFormat, Reply, document, page_not_found, reply};

/// `/openapi/v3`
pub fn index(output: OutputFormat) -> Reply {
    document(200, openapi::index().to_string().into(), output)
}

/// `/openapi/v3/PATH`
pub fn of_path(path: &str, query: &Query<'_>, requested: &DocumentRequest<'_>) -> Reply {
    let Some(text) = text_at(path) else { return page_not_found() };
    let found = Document::new(text);
    let hash = query.get("hash").filter(|hash| !hash.is_empty());
    if let Some(hash) = &hash
        && **hash != *found.hash
    {
        let mut moved = found.reply(301, Body::empty());
        if let Ok(url) = HeaderValue::try_from(format!("/openapi/v3/{path}?hash={}", found.hash)) {
            moved.headers_mut().insert(LOCATION, url);
        }
        return moved;
    }
    let mut reply = requested.answer(&found);
    if hash.is_some() && reply.status() == 200 {
        let headers = reply.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        headers.insert(EXPIRES, a_year_from_now());
    }
    reply
}

/// `/openapi/v2`
pub fn v2(requested: &DocumentRequest<'_>) -> Reply {
    if !requested.accepts_json() && requested.accepts(V2_REQUESTED) {
        return reply(200, HeaderValue::from_static(V2_RESPONSE), Body::Whole(empty_schema().into()));
    }
    requested.answer(&Document::new(openapi::v2_text()))
}

/// The media type that kubectl requests for `/openapi/v2`, and no other.
const V2_REQUESTED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// Upstream's media type for that response: the requested one is not valid.
const V2_RESPONSE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// A protobuf document without schemas. kubectl requires one before it creates the objects of a
/// `List`, to validate them itself; what has no schema it leaves to the server, which validates
/// every object.
fn empty_schema() -> Vec<u8> {
    const SWAGGER: u8 = 1;
    const INFO: u8 = 2;
    const TITLE: u8 = 1;
    const VERSION: u8 = 2;
    let info = [field(TITLE, b"bindery"), field(VERSION, b"unversioned")].concat();
    [field(SWAGGER, b"2.0"), field(INFO, &info)].concat()
}

/// A length-delimited protobuf field, with fewer than 128 bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("the fields are short");
    debug_assert!(length < 0x80, "the length fits into one byte");
    [&[number << 3 | 2, length], bytes].concat()
}

fn text_at(path: &str) -> Option<&'static str> {
    let (group, version) = match path.strip_prefix("apis/") {
        Some(rest) => rest.split_once('/')?,
        None => ("", path.strip_prefix("api/")?),
    };
    openapi::v3_text(group, version)
}

struct Document {
    text: &'static str,
    hash: String,
}

impl Document {
    fn new(text: &'static str) -> Document {
        Document { text, hash: openapi::hash(text) }
    }

    fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }

    fn reply(&self, code: u16, body: Body) -> Reply {
        let mut reply = reply(code, HeaderValue::from_static("application/json"), body);
        if let Ok(etag) = HeaderValue::try_from(self.etag()) {
            reply.headers_mut().insert(ETAG, etag);
        }
        reply.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
        reply
    }
}

/// The headers of a request for a document.
pub struct DocumentRequest<'a> {
    /// The Accept header.
    pub accept: Option<&'a str>,
    /// The If-None-Match header.
    pub known: Option<&'a str>,
}

impl DocumentRequest<'_> {
    fn accepts_json(&self) -> bool {
        self.accept.is_none_or(str::is_empty)
            || ["application/json", "*/*", "application/*"].into_iter().any(|kind| self.accepts(kind))
    }

    /// Whether a media type is accepted.
    fn accepts(&self, media_type: &str) -> bool {
        let is_it = |clause: &str| clause.split(';').next().unwrap_or_default().trim() == media_type;
        self.accept.is_some_and(|accept| accept.split(',').any(is_it))
    }

    fn answer(&self, found: &Document) -> Reply {
        if !self.accepts_json() {
            found.reply(406, Body::empty())
        } else if self.known == Some(&found.etag()) {
            found.reply(304, Body::empty())
        } else {
            found.reply(200, Body::Whole(found.text.as_bytes().into()))
        }
    }
}

/// A date in the format of HTTP.
fn a_year_from_now() -> HeaderValue {
    let then = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(365 * 24);
    let text = then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("0"))
}
