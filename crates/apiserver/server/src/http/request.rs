//! One request: who asks, for what, and the answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, IF_NONE_MATCH, USER_AGENT,
};
use http::{HeaderName, Method};
use hyper::body::{Body as _, Incoming};

use super::accept::{self, Accept};
use super::openapi::Asked;
use super::path::{Path, Place};
use super::query::Query;
use super::reply::{self, AUDIT_ID, Manner, Reply};
use super::reviews::Review;
use super::shared::{Shared, panicked};
use super::{health, objects, openapi, version};
use crate::api::Format;
use crate::kinds::Kind;
use crate::status::{Details, Status};

/// The largest body that is read.
const BODY_BYTES_MAX: usize = 3 << 20;
/// How much of a larger one is thrown away before its client is told.
const DISCARDED_BYTES_MAX: usize = 32 << 20;
/// How long a client may take to send one.
const BODY_WITHIN: Duration = Duration::from_secs(60);

const IMPERSONATE: HeaderName = HeaderName::from_static("impersonate-user");

/// A request whose body was read.
pub struct Call<'a> {
    /// GET and so on.
    pub method: &'a Method,
    /// What follows the question mark.
    pub query: Option<&'a str>,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The Accept header.
    pub accept: Option<&'a str>,
    /// The Content-Type header.
    pub content_type: Option<&'a str>,
    /// The body.
    pub body: Bytes,
}

impl Call<'_> {
    /// Whether people are to read the answer: they say so, or come with a browser.
    pub fn is_pretty(&self, asked: Option<bool>) -> bool {
        let agent = || header(self.headers, &USER_AGENT).unwrap_or_default();
        asked.unwrap_or_else(|| ["curl", "Wget", "Mozilla/5.0"].iter().any(|browser| agent().starts_with(browser)))
    }

    fn manner(&self) -> Manner {
        let pretty = Query::new(self.query).get("pretty").map(|value| value != "false" && value != "0");
        Manner { format: Format::Json, pretty: self.is_pretty(pretty) }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Answers one request. `trusted` says whether the connection itself showed a certificate of ours.
pub async fn answer(shared: &Arc<Shared>, trusted: bool, request: http::Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let audit_id = parts.headers.get(&AUDIT_ID).cloned().unwrap_or_else(|| new_audit_id(shared.audit_id()));
    let mut call = Call {
        method: &parts.method,
        query: parts.uri.query(),
        headers: &parts.headers,
        accept: header(&parts.headers, &ACCEPT),
        content_type: header(&parts.headers, &CONTENT_TYPE),
        body: Bytes::new(),
    };
    let manner = call.manner();
    let answered = caught(async {
        authenticate(shared, trusted, call.headers)?;
        call.body = read(body, call.headers).await?;
        route(shared, parts.uri.path(), call).await
    });
    let refused = |status: Status| {
        let format = Accept::of_refusals(header(&parts.headers, &ACCEPT));
        reply::status(&status, Manner { format, ..manner })
    };
    let mut reply = answered.await.unwrap_or_else(refused);
    reply.headers_mut().insert(AUDIT_ID, audit_id);
    if parts.method == Method::HEAD {
        reply = without_body(reply);
    }
    reply
}

/// Who asks for the head alone is told how long the rest would be, and not sent it.
fn without_body(reply: Reply) -> Reply {
    let (mut head, body) = reply.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Reply::from_parts(head, super::body::Body::empty())
}

/// Answers what panics with a 500: others on the same connection are not to suffer for it.
async fn caught(answer: impl Future<Output = Result<Reply, Status>>) -> Result<Reply, Status> {
    let mut answer = std::pin::pin!(answer);
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}

/// A UUID of version 4.
fn new_audit_id(chance: u128) -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bits = chance & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let mut text = [b'-'; 36];
    for place in (0..text.len()).rev().filter(|place| !matches!(place, 8 | 13 | 18 | 23)) {
        text[place] = DIGITS[(bits & 0xf) as usize];
        bits >>= 4;
    }
    HeaderValue::from_bytes(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn authenticate(shared: &Shared, trusted: bool, headers: &HeaderMap) -> Result<(), Status> {
    let shown = || header(headers, &AUTHORIZATION).and_then(|value| value.split_once(' '));
    let has_token =
        || shown().is_some_and(|(kind, token)| kind.eq_ignore_ascii_case("Bearer") && shared.knows(token.trim()));
    if !trusted && !has_token() {
        return Err(Status::failure(401, "Unauthorized", "Unauthorized"));
    }
    match header(headers, &IMPERSONATE) {
        None => Ok(()),
        // Better refused than done with more rights than were asked for.
        Some(user) => Err(Status::failure(
            403,
            "Forbidden",
            format!("users {user:?} is forbidden: this server has one user, and does not act as another"),
        )
        .with(Details { name: user.to_owned(), kind: "users".to_owned(), ..Details::default() })),
    }
}

/// Reads a body.
async fn read(body: Incoming, headers: &HeaderMap) -> Result<Bytes, Status> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let length = header(headers, &CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > DISCARDED_BYTES_MAX as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_WITHIN, read_frames(body)).await {
        Ok(read) => read,
        Err(_) => Err(Status::failure(504, "Timeout", "Timeout: the body of the request did not come in time")),
    }
}

fn too_large() -> Status {
    let message = format!("Request entity too large: limit is {BODY_BYTES_MAX}");
    Status::failure(413, "RequestEntityTooLarge", message)
}

/// One that came in one piece, as most do, is not copied. One that is too large is read on for a while and thrown away: a
/// client that is still sending would not hear the answer.
async fn read_frames(mut body: Incoming) -> Result<Bytes, Status> {
    let (mut first, mut rest, mut bytes) = (Bytes::new(), BytesMut::new(), 0);
    loop {
        let frame = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await;
        let data = match frame {
            None => break,
            Some(Err(error)) => return Err(Status::bad_request(format!("the body could not be read: {error}"))),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        bytes += data.len();
        match bytes {
            0..=BODY_BYTES_MAX if first.is_empty() => first = data,
            0..=BODY_BYTES_MAX => rest.extend_from_slice(&data),
            _ if bytes > DISCARDED_BYTES_MAX => break,
            _ => (first, rest) = (Bytes::new(), BytesMut::new()),
        }
    }
    if bytes > BODY_BYTES_MAX {
        return Err(too_large());
    }
    if rest.is_empty() {
        return Ok(first);
    }
    Ok([first.as_ref(), rest.as_ref()].concat().into())
}

async fn route(shared: &Arc<Shared>, path: &str, call: Call<'_>) -> Result<Reply, Status> {
    let path = Path::parse(path);
    if let Path::Objects(place) = &path {
        return at_place(shared, place, call).await;
    }
    about_the_server(shared, &path, &call)
}

async fn at_place(shared: &Arc<Shared>, place: &Place<'_>, call: Call<'_>) -> Result<Reply, Status> {
    if let Some(kind) = Kind::of_path(place.group, place.version, &place.resource) {
        return objects::answer(shared, kind, place, call).await;
    }
    if let Some(review) = Review::find(place.group, place.version, &place.resource) {
        return review_at(shared, review, place, &call);
    }
    nothing_in(shared, place.group)
}

/// What is said of a path that leads nowhere: as an API in a group that there is, as a server in one that there is not.
fn nothing_in(shared: &Shared, group: &str) -> Result<Reply, Status> {
    if shared.documents.serves(group) { Err(not_found()) } else { Ok(reply::page_not_found()) }
}

/// What is said of a path that leads nowhere.
pub fn not_found() -> Status {
    Status::failure(404, "NotFound", "the server could not find the requested resource").with(Details::default())
}

/// What is said of a method that has no meaning at a path.
pub fn not_allowed() -> Status {
    let message = "the server does not allow this method on the requested resource";
    Status::failure(405, "MethodNotAllowed", message).with(Details::default())
}

fn review_at(shared: &Shared, review: &Review, place: &Place<'_>, call: &Call<'_>) -> Result<Reply, Status> {
    let in_place = place.name.is_empty() && place.namespace.is_empty() != review.namespaced;
    if call.method != Method::POST || !in_place {
        return Err(not_allowed());
    }
    let sent = review.read(call.content_type, &call.body)?;
    let answer = review.answer(sent, &|token| shared.knows(token))?;
    Ok(reply::document(201, answer.to_string().into(), call.manner()))
}

/// Answers what is not about objects. All of it is only ever read.
fn about_the_server(shared: &Shared, path: &Path<'_>, call: &Call<'_>) -> Result<Reply, Status> {
    // Upstream does not look at the method where it lists groups.
    if !matches!(*call.method, Method::GET | Method::HEAD) && !matches!(path, Path::Groups) {
        return Err(not_allowed());
    }
    let query = Query::new(call.query);
    let manner = call.manner();
    let known = header(call.headers, &IF_NONE_MATCH);
    let asked = Asked { accept: call.accept, known };
    let accept = || Accept::parse(call.accept, accept::Place::Discovery);
    Ok(match path {
        Path::Root => shared.documents.root(manner),
        Path::Version => reply::document(200, version::document().into(), Manner { pretty: false, ..manner }),
        Path::Health(endpoint, check) => health::answer(endpoint, *check, &query),
        Path::CoreVersions => shared.documents.core(accept()?, manner, known),
        Path::Groups => shared.documents.groups(accept()?, manner, known),
        Path::Group(group) => shared.documents.group(group, manner).unwrap_or_else(reply::page_not_found),
        Path::Resources(group, version) => match shared.documents.resources(group, version, manner) {
            Some(reply) => reply,
            None => nothing_in(shared, group)?,
        },
        Path::OpenApiV2 => openapi::v2(&asked),
        Path::OpenApiIndex => openapi::index(manner),
        Path::OpenApi(path) => openapi::of_path(path, &query, &asked),
        Path::Objects(_) | Path::Unknown => reply::page_not_found(),
    })
}

#[cfg(test)]
mod tests {
    use super::new_audit_id;

    #[test]
    fn requests_are_named_by_uuids_of_version_four() {
        assert_eq!(new_audit_id(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(new_audit_id(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(new_audit_id(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210), "01234567-89ab-4def-bedc-ba9876543210");
    }
}
