//! Requests for objects: converts path, method and query to a request to the store.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::USER_AGENT;
use tokio::time::{Instant, timeout_at};

use super::accept::{self, Accept, Shape};
use super::events;
use super::messages;
use super::path::ResourcePath;
use super::protobuf;
use super::query::{self, ParameterScope, Query};
use super::reply::{self, OutputFormat, Reply};
use super::request::HttpCall;
use super::rows::Rows;
use super::shape::{Form, Include, Table};
use super::shared::Shared;
use crate::api::{Answer, AnswerBody, Api, Body, Format, Options, PatchType, Request, Target, Verb};
use crate::kinds::Kind;
use crate::status::Status;

/// How long a read waits for a revision in the future.
const REVISION_TIMEOUT: Duration = Duration::from_secs(3);

/// A verb of the API, or a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Verb(Verb),
    Watch,
}

/// Responds to a request for objects of a kind.
pub async fn answer(
    shared: &Arc<Shared>,
    kind: &'static Kind,
    path: &ResourcePath<'_>,
    call: HttpCall<'_>,
) -> Result<Reply, Status> {
    let verb = verb(kind, path, &call)?;
    check_name(&path.name)?;
    let is_list = matches!(verb, Verb::List | Verb::DeleteCollection);
    let is_delete = matches!(verb, Verb::Delete | Verb::DeleteCollection);
    let scope = ParameterScope { list: is_list || path.watch, delete: is_delete };
    let (options, view) = query::options(&Query::new(call.query), scope)?;
    let operation =
        if verb == Verb::List && view.watch || path.watch { Operation::Watch } else { Operation::Verb(verb) };
    let endpoint = if operation == Operation::Watch { accept::Endpoint::Events } else { accept::Endpoint::Objects };
    let accept = Accept::parse(call.accept, endpoint)?;
    let output = OutputFormat { format: accept.format, pretty: accept.pretty || call.is_pretty(view.pretty) };
    let target = Target {
        kind,
        namespace: path.namespace.to_string(),
        name: path.name.to_string(),
        subresource: path.subresource.to_string(),
    };
    match operation {
        Operation::Watch => {
            let form = form(kind, accept.shape, &view.include_object, None)?;
            watch(shared, &target, &options, form, view.timeout_seconds).await
        }
        Operation::Verb(verb) => {
            let body = body(verb, &target, &call)?;
            let user_agent = call.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let request = Request { verb, target, options, body, user_agent: user_agent.to_owned() };
            let answer = execute(shared, &request).await?;
            show(kind, answer, accept.shape, &view.include_object, output)
        }
    }
}

/// The verb of a method at a path, if it is allowed there.
fn verb(kind: &Kind, path: &ResourcePath<'_>, call: &HttpCall<'_>) -> Result<Verb, Status> {
    let has_name = !path.name.is_empty();
    let has_namespace = !path.namespace.is_empty();
    // Objects of a namespaced kind need a namespace, and cluster-scoped objects have none.
    if has_namespace && !kind.namespaced || has_name && kind.namespaced && !has_namespace {
        return Err(Status::no_such_path());
    }
    let verbs = if path.subresource.is_empty() {
        kind.verbs
    } else {
        let part =
            kind.subresources.iter().find(|part| part.name == path.subresource).ok_or_else(Status::no_such_path)?;
        part.verbs
    };
    let is_part = !path.subresource.is_empty();
    let everywhere = kind.namespaced && !has_namespace;
    let (verb, name) = match (call.method, has_name) {
        (&Method::GET, true) => (Verb::Get, "get"),
        (&Method::GET, false) => (Verb::List, "list"),
        (&Method::POST, false) if !everywhere => (Verb::Create, "create"),
        // A binding, for example, is posted to a subresource.
        (&Method::POST, true) if is_part => (Verb::Create, "create"),
        (&Method::PUT, true) => (Verb::Update, "update"),
        (&Method::PATCH, true) if verbs.contains(&"patch") => {
            (Verb::Patch(accept::patch_type(call.content_type)?), "patch")
        }
        (&Method::DELETE, true) => (Verb::Delete, "delete"),
        (&Method::DELETE, false) if !everywhere => (Verb::DeleteCollection, "deletecollection"),
        _ => return Err(Status::not_allowed()),
    };
    if path.watch && !matches!(verb, Verb::Get | Verb::List) || !verbs.contains(&name) {
        return Err(Status::not_allowed());
    }
    Ok(verb)
}

/// Rejects names that cannot be in a path.
fn check_name(name: &str) -> Result<(), Status> {
    let error = match name {
        "." | ".." => format!("may not be '{name}'"),
        _ if name.contains('/') => "may not contain '/'".to_owned(),
        _ if name.contains('%') => "may not contain '%'".to_owned(),
        _ => return Ok(()),
    };
    Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {error}")))
}

/// The body of the request, if the verb has one. The format of a patch follows from its type.
fn body(verb: Verb, target: &Target, call: &HttpCall<'_>) -> Result<Body, Status> {
    let format = match verb {
        Verb::Get | Verb::List => return Ok(Body::default()),
        Verb::Patch(PatchType::Apply) => Format::Yaml,
        Verb::Patch(_) => Format::Json,
        Verb::Create if call.content_type == Some(protobuf::MEDIA_TYPE) && target.subresource.is_empty() => {
            if let Some(object) = messages::read(target.kind, &call.body) {
                return Ok(Body { bytes: object?.to_string().into(), format: Format::Json });
            }
            accept::body_format(call.content_type)?
        }
        Verb::Create | Verb::Update => accept::body_format(call.content_type)?,
        Verb::Delete | Verb::DeleteCollection if call.body.is_empty() => Format::Json,
        Verb::Delete | Verb::DeleteCollection => accept::body_format(call.content_type)?,
    };
    Ok(Body { bytes: call.body.clone(), format })
}

/// Executes a request. The answer is returned when everything it depends on is persisted. This
/// includes errors: that an object exists, or does not, may follow from a write that is not
/// persisted yet.
async fn execute(shared: &Shared, request: &Request) -> Result<Answer, Status> {
    let kind = request.target.kind;
    let (answer, seen) = match request.verb {
        Verb::Get | Verb::List => wait_for_revision(shared, |api| api.read(request)).await,
        Verb::Create | Verb::Update | Verb::Patch(_) | Verb::Delete | Verb::DeleteCollection => {
            shared.write(Some(kind), |api| api.handle(&shared.context(), request))
        }
    };
    shared.persisted(answer.as_ref().map_or(seen, |answer| answer.revision)).await?;
    answer
}

/// Reads; waits briefly if the requested revision is in the future. Also returns the revision of
/// the store.
async fn wait_for_revision<T>(shared: &Shared, read: impl Fn(&Api) -> Result<T, Status>) -> (Result<T, Status>, u64) {
    let first = shared.read(&read);
    if !first.0.as_ref().is_err_and(Status::is_too_large_revision) {
        return first;
    }
    let mut changes = shared.changes();
    let until = Instant::now() + REVISION_TIMEOUT;
    loop {
        changes.mark_unchanged();
        let (outcome, seen) = shared.read(&read);
        if !outcome.as_ref().is_err_and(Status::is_too_large_revision)
            || timeout_at(until, changes.changed()).await.is_err()
        {
            return (outcome, seen);
        }
    }
}

async fn watch(
    shared: &Arc<Shared>,
    target: &Target,
    options: &Options,
    form: Form,
    timeout_seconds: Option<i64>,
) -> Result<Reply, Status> {
    let slot = shared.slots.watch()?;
    let (watch, seen) = wait_for_revision(shared, |api| api.watch(target, options)).await;
    shared.persisted(seen).await?;
    let watch = watch?;
    let watch_duration = events::watch_duration(timeout_seconds, shared.audit_id());
    Ok(events::stream(Arc::clone(shared), watch, form, watch_duration, slot))
}

/// The form in which each object is returned.
fn form(kind: &'static Kind, shape: Shape, include: &str, default_class: Option<String>) -> Result<Form, Status> {
    Ok(match shape {
        Shape::Plain | Shape::Discovery(_) => Form::Plain,
        Shape::Partial(version) | Shape::PartialList(version) => Form::Partial(version),
        Shape::Table(version) => Form::Table(Table {
            version,
            kind,
            include: Include::parse(include)?,
            now: jiff::Timestamp::now(),
            default_class,
        }),
    })
}

fn show(
    kind: &'static Kind,
    answer: Answer,
    shape: Shape,
    include: &str,
    output: OutputFormat,
) -> Result<Reply, Status> {
    let Answer { code, body, warnings, .. } = answer;
    let mut shown = match body {
        AnswerBody::Object(object) => {
            if let Shape::PartialList(_) = shape {
                return Err(wrong_shape(kind, "PartialObjectMetadataList", "not a list", ""));
            }
            reply::object(code, object, &form(kind, shape, include, None)?, output)
        }
        AnswerBody::List(mut list) => {
            if let Shape::Partial(_) = shape {
                return Err(wrong_shape(kind, "PartialObjectMetadata", "a list", "List"));
            }
            let form = form(kind, shape, include, list.default_class.take())?;
            reply::rows(code, Rows::new(list, form), output)
        }
        AnswerBody::Status(status) => {
            let json = Bytes::from(serde_json::to_vec(&*status).unwrap_or_default());
            reply::document(code, json, output)
        }
    };
    reply::warn(&mut shown, &warnings);
    Ok(shown)
}

/// Upstream's message, which names the Go type.
fn wrong_shape(kind: &Kind, view: &str, what: &str, ending: &str) -> Status {
    let package = match kind.group.split('.').next() {
        None | Some("" | "events") => "core",
        Some(package) => package,
    };
    let message =
        format!("you requested {view}, but the requested object is {what} (*{package}.{}{ending})", kind.kind);
    Status::failure(406, "NotAcceptable", message)
}
