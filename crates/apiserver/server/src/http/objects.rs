//! Requests for objects: from a path, a method and a query to what the store is asked.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::USER_AGENT;
use tokio::time::{Instant, timeout_at};

use super::accept::{self, Accept, Shape};
use super::events;
use super::messages;
use super::path::Place;
use super::protobuf;
use super::query::{self, Counts, Query};
use super::reply::{self, Manner, Reply};
use super::request::{Call, not_allowed, not_found};
use super::rows::Rows;
use super::shape::{Form, Include, Table};
use super::shared::Shared;
use crate::api::{Answer, Api, Body, Done, Format, Options, PatchType, Request, Target, Verb};
use crate::kinds::Kind;
use crate::status::Status;

/// How long a read waits for a revision that has not come yet.
const WAITS_FOR_REVISION: Duration = Duration::from_secs(3);

/// What is to be done at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Do(Verb),
    Watch,
}

/// Answers a request for objects of a kind.
pub async fn answer(
    shared: &Arc<Shared>,
    kind: &'static Kind,
    place: &Place<'_>,
    call: Call<'_>,
) -> Result<Reply, Status> {
    let verb = verb(kind, place, &call)?;
    check_name(&place.name)?;
    let is_list = matches!(verb, Verb::List | Verb::DeleteCollection);
    let is_delete = matches!(verb, Verb::Delete | Verb::DeleteCollection);
    let counts = Counts { list: is_list || place.watch, delete: is_delete };
    let (options, asked) = query::options(&Query::new(call.query), counts)?;
    let deed = if verb == Verb::List && asked.watch || place.watch { Deed::Watch } else { Deed::Do(verb) };
    let for_what = if deed == Deed::Watch { accept::Place::Events } else { accept::Place::Objects };
    let accept = Accept::parse(call.accept, for_what)?;
    let manner = Manner { format: accept.format, pretty: accept.pretty || call.is_pretty(asked.pretty) };
    let target = Target {
        kind,
        namespace: place.namespace.to_string(),
        name: place.name.to_string(),
        subresource: place.subresource.to_string(),
    };
    match deed {
        Deed::Watch => {
            let form = form(kind, accept.shape, &asked.include_object, None)?;
            watch(shared, &target, &options, form, asked.timeout_seconds).await
        }
        Deed::Do(verb) => {
            let body = body(verb, &target, &call)?;
            let user_agent = call.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
            let request = Request { verb, target, options, body, user_agent: user_agent.to_owned() };
            let answer = act(shared, &request).await?;
            show(kind, answer, accept.shape, &asked.include_object, manner)
        }
    }
}

/// What a method means at a place, if it is allowed there.
fn verb(kind: &Kind, place: &Place<'_>, call: &Call<'_>) -> Result<Verb, Status> {
    let has_name = !place.name.is_empty();
    let has_namespace = !place.namespace.is_empty();
    // One object of a kind with namespaces is not to be had without one, and nothing of another kind is in one.
    if has_namespace && !kind.namespaced || has_name && kind.namespaced && !has_namespace {
        return Err(not_found());
    }
    let verbs = if place.subresource.is_empty() {
        kind.verbs
    } else {
        let part = kind.subresources.iter().find(|part| part.name == place.subresource).ok_or_else(not_found)?;
        part.verbs
    };
    let is_part = !place.subresource.is_empty();
    let everywhere = kind.namespaced && !has_namespace;
    let (verb, name) = match (call.method, has_name) {
        (&Method::GET, true) => (Verb::Get, "get"),
        (&Method::GET, false) => (Verb::List, "list"),
        (&Method::POST, false) if !everywhere => (Verb::Create, "create"),
        // Such as a binding: it is posted below the object.
        (&Method::POST, true) if is_part => (Verb::Create, "create"),
        (&Method::PUT, true) => (Verb::Update, "update"),
        (&Method::PATCH, true) if verbs.contains(&"patch") => {
            (Verb::Patch(accept::patch_type(call.content_type)?), "patch")
        }
        (&Method::DELETE, true) => (Verb::Delete, "delete"),
        (&Method::DELETE, false) if !everywhere => (Verb::DeleteCollection, "deletecollection"),
        _ => return Err(not_allowed()),
    };
    if place.watch && !matches!(verb, Verb::Get | Verb::List) || !verbs.contains(&name) {
        return Err(not_allowed());
    }
    Ok(verb)
}

/// Refuses names that no path can hold.
fn check_name(name: &str) -> Result<(), Status> {
    let flaw = match name {
        "." | ".." => format!("may not be '{name}'"),
        _ if name.contains('/') => "may not contain '/'".to_owned(),
        _ if name.contains('%') => "may not contain '%'".to_owned(),
        _ => return Ok(()),
    };
    Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {flaw}")))
}

/// What was sent, where anything is to be sent. A patch is written as its type says.
fn body(verb: Verb, target: &Target, call: &Call<'_>) -> Result<Body, Status> {
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

/// Asks the store. What it answers is told when it can no longer be undone, and so is a refusal: that something is there already, or is
/// gone, may be known only from a write that is still on its way to the disk.
async fn act(shared: &Shared, request: &Request) -> Result<Answer, Status> {
    let kind = request.target.kind;
    let (answer, seen) = match request.verb {
        Verb::Get | Verb::List => when_it_comes(shared, |api| api.read(request)).await,
        Verb::Create | Verb::Update | Verb::Patch(_) | Verb::Delete | Verb::DeleteCollection => {
            shared.write(Some(kind), |api| api.handle(&shared.moment(), request))
        }
    };
    shared.persisted(answer.as_ref().map_or(seen, |answer| answer.revision)).await?;
    answer
}

/// Reads; and if that is about a revision that has not come yet, waits for it a little. Says too at which revision that was.
async fn when_it_comes<T>(shared: &Shared, read: impl Fn(&Api) -> Result<T, Status>) -> (Result<T, Status>, u64) {
    let first = shared.read(&read);
    if !first.0.as_ref().is_err_and(Status::is_too_large_revision) {
        return first;
    }
    let mut news = shared.changes();
    let until = Instant::now() + WAITS_FOR_REVISION;
    loop {
        news.mark_unchanged();
        let (outcome, seen) = shared.read(&read);
        if !outcome.as_ref().is_err_and(Status::is_too_large_revision)
            || timeout_at(until, news.changed()).await.is_err()
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
    let (watch, seen) = when_it_comes(shared, |api| api.watch(target, options)).await;
    shared.persisted(seen).await?;
    let watch = watch?;
    let lasts = events::lasts(timeout_seconds, shared.audit_id());
    Ok(events::stream(Arc::clone(shared), watch, form, lasts))
}

/// What is made of each object.
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

fn show(kind: &'static Kind, answer: Answer, shape: Shape, include: &str, manner: Manner) -> Result<Reply, Status> {
    let Answer { code, body, warnings, .. } = answer;
    let mut shown = match body {
        Done::Object(object) => {
            if let Shape::PartialList(_) = shape {
                return Err(wrong_shape(kind, "PartialObjectMetadataList", "not a list", ""));
            }
            reply::object(code, object, &form(kind, shape, include, None)?, manner)
        }
        Done::List(mut list) => {
            if let Shape::Partial(_) = shape {
                return Err(wrong_shape(kind, "PartialObjectMetadata", "a list", "List"));
            }
            let form = form(kind, shape, include, list.default_class.take())?;
            reply::rows(code, Rows::new(list, form), manner)
        }
        Done::Status(status) => {
            let json = Bytes::from(serde_json::to_vec(&*status).unwrap_or_default());
            reply::document(code, json, manner)
        }
    };
    reply::warn(&mut shown, &warnings);
    Ok(shown)
}

/// In the words of upstream, which names the type in its own code.
fn wrong_shape(kind: &Kind, asked: &str, what: &str, ending: &str) -> Status {
    let package = match kind.group.split('.').next() {
        None | Some("" | "events") => "core",
        Some(package) => package,
    };
    let message =
        format!("you requested {asked}, but the requested object is {what} (*{package}.{}{ending})", kind.kind);
    Status::failure(406, "NotAcceptable", message)
}
