//! Health, metrics and a look inside, over plain HTTP. On loopback unless told otherwise.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use bindery_engine::Engine;
use bindery_runtime::{Ask, EventSink, Message};
use bindery_volumes::Kind;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use crate::metrics::{self, Measurements};

/// How long the brain may take to answer. It decides in microseconds: who waits longer waits for something that is stuck.
const ANSWER: Duration = Duration::from_secs(5);

/// What requests are answered from.
#[derive(Clone)]
pub struct Shared {
    outbox: UnboundedSender<Message>,
    measured: Measurements,
    events: EventSink,
}

impl Shared {
    /// Answers from the brain, what was measured, and the event sink.
    pub fn new(outbox: UnboundedSender<Message>, measured: Measurements, events: EventSink) -> Shared {
        Shared { outbox, measured, events }
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

/// Serves for ever.
pub async fn serve(listener: TcpListener, shared: Shared) {
    let router = Router::new()
        .route("/healthz", get(healthy))
        .route("/livez", get(healthy))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/debug/state.json", get(state))
        .with_state(shared);
    if let Err(error) = axum::serve(listener, router).await {
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
    let (dropped, measured) = (shared.events.dropped(), shared.measured.clone());
    match shared.ask(move |engine| metrics::page(engine, &measured, dropped)).await {
        Some(page) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], page).into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the brain does not answer").into_response(),
    }
}

async fn state(State(shared): State<Shared>) -> Response {
    match shared.ask(inside).await {
        Some(state) => Json(state).into_response(),
        None => (StatusCode::INTERNAL_SERVER_ERROR, "the brain does not answer").into_response(),
    }
}

/// What a person who is called at night wants to see first.
fn inside(engine: &Engine) -> Value {
    let known = engine.known();
    let watches: BTreeMap<&str, Value> = Kind::ALL
        .into_iter()
        .map(|kind| (kind.as_str(), json!({"version": known.watched_version(kind), "count": known.count(kind)})))
        .collect();
    let (requests, operations) = engine.in_flight();
    json!({
        "watches": watches,
        "synced": engine.is_synced(),
        "leading": engine.is_leading(),
        "keysPending": engine.pending(),
        "requestsInFlight": requests,
        "operationsInFlight": operations,
        "freeVolumes": known.pool().len(),
        "lookingClaims": known.demand().len(),
        "verdicts": engine.stats().by_rule.iter().collect::<BTreeMap<_, _>>(),
    })
}
