//! OpenAPI: one document for each group version, and one for all of them. They are large, and made when they are first asked for.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, ETAG, EXPIRES, LOCATION, VARY};
use serde_json::{Value, json};

use super::body::Body;
use super::discovery::hash;
use super::query::Query;
use super::reply::{Manner, Reply, document, page_not_found, reply};

/// The documents, as far as they were asked for.
#[derive(Default)]
pub struct OpenApi {
    v3: OnceLock<BTreeMap<String, Document>>,
    v2: OnceLock<Document>,
}

struct Document {
    bytes: Bytes,
    hash: String,
}

impl Document {
    fn new(value: &Value) -> Document {
        let bytes = Bytes::from(value.to_string());
        let hash = hash(&bytes);
        Document { bytes, hash }
    }

    fn etag(&self) -> HeaderValue {
        HeaderValue::try_from(format!("\"{}\"", self.hash)).expect("hexadecimal digits are fit for a header")
    }
}

/// Where the document of a group version is, below `/openapi/v3/`.
pub fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

impl OpenApi {
    fn documents(&self, versions: impl Iterator<Item = (&'static str, &'static str)>) -> &BTreeMap<String, Document> {
        self.v3.get_or_init(|| {
            let known = versions.filter_map(|(group, version)| {
                let value = bindery_fields::openapi::v3(group, version)?;
                Some((path(group, version), Document::new(&value)))
            });
            known.collect()
        })
    }

    /// `/openapi/v3`
    pub fn index(&self, versions: impl Iterator<Item = (&'static str, &'static str)>, manner: Manner) -> Reply {
        let paths: BTreeMap<&str, Value> = self
            .documents(versions)
            .iter()
            .map(|(path, document)| {
                let url = format!("/openapi/v3/{path}?hash={}", document.hash);
                (path.as_str(), json!({"serverRelativeURL": url}))
            })
            .collect();
        document(200, json!({"paths": paths}).to_string().into(), manner)
    }

    /// `/openapi/v3/PATH`
    pub fn of_version(
        &self,
        versions: impl Iterator<Item = (&'static str, &'static str)>,
        path: &str,
        query: &Query<'_>,
        asked: &Asked<'_>,
    ) -> Reply {
        let Some(found) = self.documents(versions).get(path) else { return page_not_found() };
        let hash = query.get("hash").filter(|hash| !hash.is_empty());
        if let Some(hash) = &hash
            && **hash != *found.hash
        {
            let mut moved = asked.reply(301, found, Body::empty());
            if let Ok(url) = HeaderValue::try_from(format!("/openapi/v3/{path}?hash={}", found.hash)) {
                moved.headers_mut().insert(LOCATION, url);
            }
            return moved;
        }
        let mut reply = asked.answer(found);
        if hash.is_some() && reply.status() == 200 {
            let headers = reply.headers_mut();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            headers.insert(EXPIRES, a_year_from_now());
        }
        reply
    }

    /// `/openapi/v2`
    pub fn v2(&self, asked: &Asked<'_>) -> Reply {
        asked.answer(self.v2.get_or_init(|| Document::new(&bindery_fields::openapi::v2())))
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
        let media_types = |accept: &str| -> bool {
            accept.split(',').any(|clause| {
                matches!(
                    clause.split(';').next().unwrap_or_default().trim(),
                    "application/json" | "*/*" | "application/*"
                )
            })
        };
        self.accept.is_none_or(|accept| accept.is_empty() || media_types(accept))
    }

    fn answer(&self, found: &Document) -> Reply {
        let etag = found.etag();
        if !self.accepts_json() {
            self.reply(406, found, Body::empty())
        } else if self.known.is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
            self.reply(304, found, Body::empty())
        } else {
            self.reply(200, found, Body::Whole(found.bytes.clone()))
        }
    }

    fn reply(&self, code: u16, found: &Document, body: Body) -> Reply {
        let mut reply = reply(code, HeaderValue::from_static("application/json"), body);
        reply.headers_mut().insert(ETAG, found.etag());
        reply.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
        reply
    }
}

/// In the form that HTTP has for times.
fn a_year_from_now() -> HeaderValue {
    let then = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(365 * 24);
    let text = then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("0"))
}
