//! Handles an HTTP request: authentication, body, routing.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, IF_NONE_MATCH, USER_AGENT};
use http::{HeaderName, Method};
use hyper::body::{Body as _, Incoming};

use super::accept::{self, Accept};
use super::audit::AuditEvent;
use super::call_info::CallVerb;
use super::openapi::DocumentRequest;
use super::path::{Path, ResourcePath};
use super::query::Query;
use super::reply::{self, AUDIT_ID, OutputFormat, Reply};
use super::reviews::Review;
use super::shared::{Shared, panic_status};
use super::{authentication, health, metrics, objects, openapi, snapshot, version};
use crate::api::Format;
use crate::kinds::Kind;
use crate::rng::uuid_v4;
use crate::status::Status;

/// The largest body that is accepted.
const BODY_BYTES_MAX: usize = 3 << 20;
/// How much of a larger body is discarded before the error is sent.
const DISCARDED_BYTES_MAX: usize = 32 << 20;
/// Upstream's limit for a client's own audit ID; a longer one is replaced.
const AUDIT_ID_BYTES_MAX: usize = 64;
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// A request with its body.
pub struct HttpCall<'a> {
    /// The method.
    pub method: &'a Method,
    /// The query, without the question mark.
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

impl HttpCall<'_> {
    /// Whether to indent the response: requested, or a browser.
    pub fn is_pretty(&self, requested: Option<bool>) -> bool {
        let agent = || header(self.headers, &USER_AGENT).unwrap_or_default();
        requested.unwrap_or_else(|| ["curl", "Wget", "Mozilla/5.0"].iter().any(|browser| agent().starts_with(browser)))
    }

    fn output(&self) -> OutputFormat {
        let pretty = Query::new(self.query).get("pretty").map(|value| value != "false" && value != "0");
        OutputFormat { format: Format::Json, pretty: self.is_pretty(pretty) }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A client, as far as its connection tells.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// Its address.
    pub address: SocketAddr,
    /// Whether it presented one of our certificates.
    pub trusted: bool,
}

/// Responds to a request.
pub async fn answer(shared: &Arc<Shared>, client: Client, request: http::Request<Incoming>) -> Reply {
    let received = jiff::Timestamp::now();
    let (parts, body) = request.into_parts();
    let given_id = parts.headers.get(&AUDIT_ID).filter(|id| id.len() <= AUDIT_ID_BYTES_MAX).cloned();
    let audit_id = given_id.unwrap_or_else(|| new_audit_id(shared.audit_id()));
    let path = Path::parse(parts.uri.path());
    let mut call = HttpCall {
        method: &parts.method,
        query: parts.uri.query(),
        headers: &parts.headers,
        accept: header(&parts.headers, &ACCEPT),
        content_type: header(&parts.headers, &CONTENT_TYPE),
        body: Bytes::new(),
    };
    let output = call.output();
    let answered = catch_panics(async {
        authentication::authenticate(shared, client.trusted, call.headers)?;
        let _slot = shared.slots.request(&path)?;
        call.body = read(body, call.headers).await?;
        route(shared, &path, call).await
    });
    let refused = |status: Status| {
        let format = Accept::error_format(header(&parts.headers, &ACCEPT));
        reply::status(&status, OutputFormat { format, ..output })
    };
    let mut reply = answered.await.unwrap_or_else(refused);
    let (verb, code) = (CallVerb::of(&parts.method, &path, parts.uri.query()), reply.status().as_u16());
    shared.metrics.responded(verb, &path, code);
    let client = client.address;
    shared.record(&AuditEvent { request: &parts, path: &path, verb, audit_id: &audit_id, received, client, code });
    reply.headers_mut().insert(AUDIT_ID, audit_id);
    if parts.method == Method::HEAD {
        reply = without_body(reply);
    }
    reply
}

/// A HEAD response has the length of the body, but no body.
fn without_body(reply: Reply) -> Reply {
    let (mut head, body) = reply.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Reply::from_parts(head, super::body::Body::empty())
}

/// A panic becomes a 500, and does not affect other requests of the connection.
async fn catch_panics(answer: impl Future<Output = Result<Reply, Status>>) -> Result<Reply, Status> {
    let mut answer = std::pin::pin!(answer);
    std::future::poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(panic_status())))
    })
    .await
}

/// A new audit ID: a version 4 UUID.
fn new_audit_id(random: u128) -> HeaderValue {
    HeaderValue::try_from(uuid_v4(random)).unwrap_or_else(|_| HeaderValue::from_static(""))
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
    match tokio::time::timeout(BODY_TIMEOUT, read_frames(body)).await {
        Ok(read) => read,
        Err(_) => Err(Status::failure(504, "Timeout", "Timeout: the request body was not received in time")),
    }
}

fn too_large() -> Status {
    let message = format!("Request entity too large: limit is {BODY_BYTES_MAX}");
    Status::failure(413, "RequestEntityTooLarge", message)
}

/// A body in one frame, the usual case, is not copied. The rest of a body that is too large is
/// discarded up to a limit: a client that is still sending would not read the response.
async fn read_frames(mut body: Incoming) -> Result<Bytes, Status> {
    let (mut first, mut rest, mut bytes) = (Bytes::new(), BytesMut::new(), 0);
    loop {
        let frame = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await;
        let data = match frame {
            None => break,
            Some(Err(error)) => return Err(Status::bad_request(format!("cannot read the request body: {error}"))),
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

async fn route(shared: &Arc<Shared>, path: &Path<'_>, call: HttpCall<'_>) -> Result<Reply, Status> {
    if let Some(resource) = path.resource() {
        return route_resource(shared, resource, call).await;
    }
    if *path == Path::Snapshot && *call.method == Method::GET {
        return snapshot::answer(shared).await;
    }
    server_document(shared, path, &call)
}

async fn route_resource(
    shared: &Arc<Shared>,
    resource: &ResourcePath<'_>,
    call: HttpCall<'_>,
) -> Result<Reply, Status> {
    if let Some(kind) = Kind::of_path(resource.group, resource.version, &resource.resource) {
        return objects::answer(shared, kind, resource, call).await;
    }
    if let Some(review) = Review::find(resource.group, resource.version, &resource.resource) {
        return answer_review(shared, review, resource, &call);
    }
    unknown_path(shared, resource.group)
}

/// The response for an unknown path: a status if the group exists, plain text otherwise.
fn unknown_path(shared: &Shared, group: &str) -> Result<Reply, Status> {
    if shared.documents.serves(group) { Err(Status::no_such_path()) } else { Ok(reply::page_not_found()) }
}

fn answer_review(
    shared: &Shared,
    review: &Review,
    resource: &ResourcePath<'_>,
    call: &HttpCall<'_>,
) -> Result<Reply, Status> {
    let in_place = resource.name.is_empty() && resource.namespace.is_empty() != review.namespaced;
    if call.method != Method::POST || !in_place {
        return Err(Status::not_allowed());
    }
    let sent = review.read(call.content_type, &call.body)?;
    let answer = review.answer(sent, &|token| shared.is_admin_token(token))?;
    Ok(reply::document(201, answer.to_string().into(), call.output()))
}

/// Responds with documents that are not objects, all of them read-only.
fn server_document(shared: &Shared, path: &Path<'_>, call: &HttpCall<'_>) -> Result<Reply, Status> {
    // Upstream ignores the method for the list of groups.
    if !matches!(*call.method, Method::GET | Method::HEAD) && !matches!(path, Path::Groups) {
        return Err(Status::not_allowed());
    }
    let query = Query::new(call.query);
    let output = call.output();
    let known = header(call.headers, &IF_NONE_MATCH);
    let requested = DocumentRequest { accept: call.accept, known };
    let accept = || Accept::parse(call.accept, accept::Endpoint::Discovery);
    Ok(match path {
        Path::Root => shared.documents.root(output),
        Path::Version => reply::document(200, version::document().into(), OutputFormat { pretty: false, ..output }),
        Path::Health(endpoint, check) => health::answer(endpoint, *check, &query),
        Path::CoreVersions => shared.documents.core(accept()?, output, known),
        Path::Groups => shared.documents.groups(accept()?, output, known),
        Path::Group(group) => shared.documents.group(group, output).unwrap_or_else(reply::page_not_found),
        Path::Resources(group, version) => match shared.documents.resources(group, version, output) {
            Some(reply) => reply,
            None => unknown_path(shared, group)?,
        },
        Path::OpenApiV2 => openapi::v2(&requested),
        Path::OpenApiIndex => openapi::index(output),
        Path::OpenApi(path) => openapi::of_path(path, &query, &requested),
        Path::Metrics => reply::text(200, metrics::page(shared)),
        Path::Objects(_) | Path::Snapshot | Path::Unknown => reply::page_not_found(),
    })
}

#[cfg(test)]
mod tests {
    use super::new_audit_id;

    #[test]
    fn audit_ids_are_version_4_uuids() {
        assert_eq!(new_audit_id(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(new_audit_id(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(new_audit_id(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210), "01234567-89ab-4def-bedc-ba9876543210");
    }
}
