//! Health, metrics and a look inside, over plain HTTP. On loopback unless told otherwise.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use bindery_engine::Engine;
use bindery_explain::{LINES, explain_pod};
use bindery_model::{Kind, ObjectKey};
use bindery_runtime::{Ask, EventSink, Message};
use bindery_scheduler::Scheduler;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use crate::metrics::{self, Taken};

/// How long the brain may take to answer. It decides in microseconds: who waits longer waits for something that is stuck.
const ANSWER: Duration = Duration::from_secs(5);

/// How many of the last verdicts are told unasked.
const LAST: usize = 50;

/// What requests are answered from.
#[derive(Clone)]
pub struct Shared {
    outbox: UnboundedSender<Message>,
    taken: Taken,
    events: EventSink,
    /// The lease's name, where there is an election.
    lease: Option<String>,
    /// Whoever has more to tell on the page of metrics.
    more: Option<More>,
}

/// Registers more metrics.
pub type More = Arc<dyn Fn(&mut Registry) + Send + Sync>;

impl Shared {
    /// Answers from the brain, what was heard from it, and the event sink.
    pub fn new(outbox: UnboundedSender<Message>, taken: Taken, events: EventSink, lease: Option<String>) -> Shared {
        Shared { outbox, taken, events, lease, more: None }
    }

    /// The same, with more on the page of metrics.
    pub fn telling(self, more: More) -> Shared {
        Shared { more: Some(more), ..self }
    }

    /// Asks the brain; `None` when it does not answer.
    async fn ask<T: Send + 'static>(&self, look: impl FnOnce(&Engine) -> T + Send + 'static) -> Option<T> {
        let (ask, answer) = Ask::new(look);
        self.outbox.send(Message::Asked(ask)).ok()?;
        timeout(ANSWER, answer).await.ok()?.ok()
    }
}

/// Opens the address.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "serves health and metrics");
    }
    Ok(listener)
}

/// Where metrics are, unless they are wanted elsewhere.
pub const METRICS: &str = "/metrics";

/// What is served.
pub fn router(shared: Shared) -> Router {
    Router::new()
        .route("/healthz", get(healthy))
        .route("/livez", get(healthy))
        .route("/readyz", get(ready))
        .route(METRICS, get(metrics))
        .route("/debug/state.json", get(state))
        .with_state(shared)
}

/// Metrics, somewhere else.
pub fn metrics_at(path: &str, shared: Shared) -> Router {
    Router::new().route(path, get(metrics)).with_state(shared)
}

/// Serves for ever.
pub async fn serve(listener: TcpListener, shared: Shared) {
    if let Err(error) = axum::serve(listener, router(shared)).await {
        tracing::error!(%error, "the HTTP server failed");
    }
}

/// Healthy is who answers.
async fn healthy(State(shared): State<Shared>) -> Response {
    match shared.ask(|_| ()).await {
        Some(()) => "ok".into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the brain does not answer").into_response(),
    }
}

/// Ready is who knows the cluster, whether it leads or stands by.
async fn ready(State(shared): State<Shared>) -> Response {
    match shared.ask(Engine::is_synced).await {
        Some(true) => "ok".into_response(),
        Some(false) => (StatusCode::SERVICE_UNAVAILABLE, "not everything was listed yet").into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the brain does not answer").into_response(),
    }
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let (dropped, taken) = (shared.events.dropped(), shared.taken.clone());
    let (lease, more) = (shared.lease.clone(), shared.more.clone());
    match shared.ask(move |engine| metrics::page(engine, &taken, lease.as_deref(), dropped, more.as_deref())).await {
        Some(page) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], page).into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the brain does not answer").into_response(),
    }
}

/// Whom `/debug/state.json` is asked about: `?pvc=NAMESPACE/NAME`, `?pod=NAMESPACE/NAME`, `?pv=NAME` or `?vac=NAME`; else about
/// everything.
#[derive(Deserialize)]
struct About {
    pvc: Option<String>,
    pod: Option<String>,
    pv: Option<String>,
    vac: Option<String>,
}

impl About {
    /// The object, if it is one.
    fn key(self) -> Result<Option<ObjectKey>, &'static str> {
        let namespaced = |kind, text: &str| {
            let (namespace, name) = text.split_once('/').ok_or("?pvc= and ?pod= take NAMESPACE/NAME")?;
            Ok(Some(ObjectKey { kind, namespace: namespace.into(), name: name.into() }))
        };
        match self {
            About { pvc: Some(claim), .. } => namespaced(Kind::Claim, &claim),
            About { pod: Some(pod), .. } => namespaced(Kind::Pod, &pod),
            About { pv: Some(volume), .. } => Ok(Some(ObjectKey::volume(volume))),
            About { vac, .. } => Ok(vac.map(|class| ObjectKey::cluster(Kind::AttributesClass, class))),
        }
    }
}

async fn state(State(shared): State<Shared>, Query(about): Query<About>) -> Response {
    let about = match about.key() {
        Ok(key) => key,
        Err(error) => return (StatusCode::BAD_REQUEST, error).into_response(),
    };
    let taken = shared.taken.clone();
    let look = move |engine: &Engine| match about {
        None => inside(engine, &taken),
        Some(key) => about_one(engine, &taken, &key),
    };
    match shared.ask(look).await {
        Some(state) => Json(state).into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the brain does not answer").into_response(),
    }
}

/// An object: what was last decided about it, and what would be decided now; of a pod, where it is placed, also why.
fn about_one(engine: &Engine, taken: &Taken, key: &ObjectKey) -> Value {
    let now = engine.would_decide(key).map(|(set, verdict)| {
        json!({"controller": set, "rule": verdict.rule.name, "why": verdict.rule.why, "note": verdict.note})
    });
    // Who does not place pods has not heard of all that counts for it.
    let places = engine.controllers().any(|controller| controller == Scheduler::NAME) && key.kind == Kind::Pod;
    let explanation = places.then(|| explain_pod(engine.known(), &key.pod_key(), LINES).ok()).flatten();
    json!({
        "key": key.to_string(),
        "known": engine.known().object(key).map(|object| json!({"version": object.meta().version, "uid": object.meta().uid.as_str()})),
        "lastVerdicts": taken.recent(Some(key)),
        "explanation": explanation,
        "verdictNow": engine.known().object(key).is_some().then(|| now.collect::<Vec<_>>()),
    })
}

/// What a person who is called at night wants to see first.
fn inside(engine: &Engine, taken: &Taken) -> Value {
    let known = engine.known();
    let watches: BTreeMap<&str, Value> = Kind::ALL
        .into_iter()
        .map(|kind| (kind.as_str(), json!({"version": known.watched_version(kind), "count": known.count(kind)})))
        .collect();
    let (requests, operations) = engine.in_flight();
    let lease = taken.lease().map(|lease| {
        json!({
            "identity": lease.identity,
            "holder": lease.holder,
            "renewed": lease.renewed,
            "transitions": lease.transitions,
        })
    });
    let recent = taken.recent(None);
    json!({
        "controllers": engine.controllers().collect::<Vec<_>>(),
        "watches": watches,
        "synced": engine.is_synced(),
        "leading": engine.is_leader(),
        "lease": lease,
        "keysPending": engine.pending(),
        "requestsInFlight": requests,
        "operationsInFlight": operations,
        "freeVolumes": known.free_volumes().len(),
        "lookingClaims": known.unmatched_claims().len(),
        "verdicts": engine.stats().by_rule.iter().collect::<BTreeMap<_, _>>(),
        "lastVerdicts": &recent[recent.len().saturating_sub(LAST)..],
    })
}
