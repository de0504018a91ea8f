//! OpenAPI: one document for each group version, and one for all of them. They are large, and made when they are first asked for.

use bindery_fields::openapi;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, ETAG, EXPIRES, LOCATION, VARY};

use super::body::Body;
use super::query::Query;
use super::reply::{Manner, Reply, document, page_not_found, reply};

/// `/openapi/v3`
pub fn index(manner: Manner) -> Reply {
    document(200, openapi::index().to_string().into(), manner)
}

/// `/openapi/v3/PATH`
pub fn of_path(path: &str, query: &Query<'_>, asked: &Asked<'_>) -> Reply {
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
    let mut reply = asked.answer(&found);
    if hash.is_some() && reply.status() == 200 {
        let headers = reply.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        headers.insert(EXPIRES, a_year_from_now());
    }
    reply
}

/// `/openapi/v2`
pub fn v2(asked: &Asked<'_>) -> Reply {
    if !asked.accepts_json() && asked.accepts(V2_ASKED) {
        return reply(200, HeaderValue::from_static(V2_ANSWERED), Body::Whole(undescribed().into()));
    }
    asked.answer(&Document::new(openapi::v2_text()))
}

/// How kubectl asks for `/openapi/v2`, and takes nothing else.
const V2_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// How upstream answers that: the other is no proper media type.
const V2_ANSWERED: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// A description in protobuf that describes nothing. kubectl wants one before it makes the objects of a `List`, to check them
/// itself; what is not described it leaves to the server, which checks each of them when it is made.
fn undescribed() -> Vec<u8> {
    const SWAGGER: u8 = 1;
    const INFO: u8 = 2;
    const TITLE: u8 = 1;
    const VERSION: u8 = 2;
    let info = [field(TITLE, b"bindery"), field(VERSION, b"unversioned")].concat();
    [field(SWAGGER, b"2.0"), field(INFO, &info)].concat()
}

/// A field of a message: its number, and that it has a length; the length; the bytes, of which there are few here.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("what is said of nothing is short");
    debug_assert!(length < 0x80, "a length in one byte");
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

/// How a document is asked for.
pub struct Asked<'a> {
    /// The Accept header.
    pub accept: Option<&'a str>,
    /// The If-None-Match header.
    pub known: Option<&'a str>,
}

impl Asked<'_> {
    fn accepts_json(&self) -> bool {
        self.accept.is_none_or(str::is_empty)
            || ["application/json", "*/*", "application/*"].into_iter().any(|kind| self.accepts(kind))
    }

    /// Whether a media type is among those that are asked for.
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

/// In the form that HTTP has for times.
fn a_year_from_now() -> HeaderValue {
    let then = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(365 * 24);
    let text = then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("0"))
}
