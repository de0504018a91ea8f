//! Health, metrics and debug state, over plain HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use bindery_cache::Snapshot;
use bindery_engine::{Engine, Rejection};
use bindery_explain::{LINES, explain_pod};
use bindery_model::{Kind, ObjectKey};
use bindery_runtime::{EngineHost, EngineQuery, EventSink, Message, WatchStatus};
use bindery_scheduler::Scheduler;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::timeout;

use crate::metrics::{self, Recorder};

/// How long the engine task may take to answer. It decides in microseconds: after this long it is
/// stuck.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(5);

/// How many explanations are made at a time. Further requests wait.
const EXPLANATIONS_MAX: usize = 1;

/// How many queries wait for the engine task. Further ones wait for these.
const QUERIES_MAX: usize = 32;

/// How many of the last verdicts `/debug/state.json` shows.
const VERDICTS_SHOWN: usize = 50;

/// How many objects with a rejected request `/debug/state.json` shows.
const REJECTIONS_SHOWN: usize = 100;

/// The default path of metrics.
pub const METRICS_PATH: &str = "/metrics";

/// What requests are answered from.
#[derive(Clone)]
pub struct Shared {
    outbox: UnboundedSender<Message>,
    recorder: Recorder,
    events: EventSink,
    watches: WatchStatus,
    /// The lease's name, if there is leader election.
    lease: Option<String>,
    more_metrics: Option<RegisterMetrics>,
    /// Permission to explain. An explanation takes memory in proportion to the number of objects.
    explaining: Arc<Semaphore>,
    /// Limits the queries that wait for the engine task.
    queries: Arc<Semaphore>,
}

/// Registers additional metrics.
pub type RegisterMetrics = Arc<dyn Fn(&mut Registry) + Send + Sync>;

impl Shared {
    /// Answers from the engine task, from what it reported, and from the event sink.
    pub fn new(host: &EngineHost, recorder: Recorder, lease: Option<String>) -> Shared {
        Shared {
            outbox: host.outbox.clone(),
            recorder,
            events: host.events.clone(),
            watches: host.watches.clone(),
            lease,
            more_metrics: None,
            queries: Arc::new(Semaphore::new(QUERIES_MAX)),
            explaining: Arc::new(Semaphore::new(EXPLANATIONS_MAX)),
        }
    }

    /// Also serves these metrics.
    pub fn with_metrics(self, more: RegisterMetrics) -> Shared {
        Shared { more_metrics: Some(more), ..self }
    }

    /// Reads from the engine. An error response if the engine task does not answer.
    async fn ask<T: Send + 'static>(&self, read: impl FnOnce(&Engine) -> T + Send + 'static) -> Result<T, Response> {
        let answer = async {
            let _waiting = self.queries.acquire().await.ok()?;
            let (ask, answer) = EngineQuery::new(read);
            self.outbox.send(Message::Query(ask)).ok()?;
            answer.await.ok()
        };
        let stuck = || (StatusCode::INTERNAL_SERVER_ERROR, "the engine task does not answer").into_response();
        timeout(ENGINE_TIMEOUT, answer).await.ok().flatten().ok_or_else(stuck)
    }
}

/// The routes of every program.
pub fn router(shared: Shared) -> Router {
    Router::new()
        .route("/healthz", get(healthy))
        .route("/livez", get(healthy))
        .route("/readyz", get(ready))
        .route(METRICS_PATH, get(metrics))
        .route("/debug/state.json", get(state))
        .with_state(shared)
}

/// Metrics at another path.
pub fn metrics_at(path: &str, shared: Shared) -> Router {
    Router::new().route(path, get(metrics)).with_state(shared)
}

/// Serves forever. Logs the address.
pub async fn serve(listener: TcpListener, router: Router) {
    match listener.local_addr() {
        Ok(address) => tracing::info!(%address, "serving health and metrics"),
        Err(error) => tracing::warn!(%error, "serving health and metrics at an unknown address"),
    }
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "HTTP server failed");
    }
}

/// Healthy if the engine task answers.
async fn healthy(State(shared): State<Shared>) -> Response {
    shared.ask(|_| "ok").await.into_response()
}

/// Ready if every kind was listed, every watch is current, and no permission is missing; as the
/// leader or standing by.
async fn ready(State(shared): State<Shared>) -> Response {
    let is_synced = match shared.ask(Engine::is_synced).await {
        Ok(is_synced) => is_synced,
        Err(stuck) => return stuck,
    };
    let mut problems = Vec::new();
    if !is_synced {
        problems.push("the initial lists are not complete".to_owned());
    }
    problems.extend(shared.watches.problems());
    problems.extend(shared.recorder.permissions().problems());
    match problems.is_empty() {
        true => "ok".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, problems.join("\n")).into_response(),
    }
}

async fn metrics(State(shared): State<Shared>) -> Response {
    let (dropped, recorder) = (shared.events.dropped(), shared.recorder.clone());
    let (lease, more, watches) = (shared.lease.clone(), shared.more_metrics.clone(), shared.watches.clone());
    let collect = move |engine: &Engine| {
        metrics::collect(engine, &recorder, &watches, lease.as_deref(), dropped, more.as_deref())
    };
    let page = |registry| ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::page(&registry));
    shared.ask(collect).await.map(page).into_response()
}

/// The object that `/debug/state.json` shows: `?pvc=NAMESPACE/NAME`, `?pod=NAMESPACE/NAME`,
/// `?pv=NAME` or `?vac=NAME`. Without any: the state of the engine.
#[derive(Deserialize)]
struct StateQuery {
    pvc: Option<String>,
    pod: Option<String>,
    pv: Option<String>,
    vac: Option<String>,
}

impl StateQuery {
    fn key(self) -> Result<Option<ObjectKey>, &'static str> {
        let namespaced = |kind, text: &str| {
            let (namespace, name) = text.split_once('/').ok_or("?pvc= and ?pod= take NAMESPACE/NAME")?;
            Ok(Some(ObjectKey { kind, namespace: namespace.into(), name: name.into() }))
        };
        match self {
            StateQuery { pvc: Some(claim), .. } => namespaced(Kind::Claim, &claim),
            StateQuery { pod: Some(pod), .. } => namespaced(Kind::Pod, &pod),
            StateQuery { pv: Some(volume), .. } => Ok(Some(ObjectKey::volume(volume))),
            StateQuery { vac, .. } => Ok(vac.map(|class| ObjectKey::cluster(Kind::AttributesClass, class))),
        }
    }
}

async fn state(State(shared): State<Shared>, Query(query): Query<StateQuery>) -> Response {
    let key = match query.key() {
        Ok(key) => key,
        Err(error) => return (StatusCode::BAD_REQUEST, error).into_response(),
    };
    let recorder = shared.recorder.clone();
    let Some(key) = key else {
        return shared.ask(move |engine| engine_state(engine, &recorder)).await.map(Json).into_response();
    };
    // The semaphore is never closed.
    let _permit = shared.explaining.acquire().await;
    let about = key.clone();
    let (mut state, snapshot) = match shared.ask(move |engine| object_state(engine, &recorder, &about)).await {
        Ok(answer) => answer,
        Err(stuck) => return stuck,
    };
    if let Some(snapshot) = snapshot {
        let explain = move || explain_pod(&snapshot.build(), &key.pod_key(), LINES).ok();
        state["explanation"] = json!(tokio::task::spawn_blocking(explain).await.ok().flatten());
    }
    Json(state).into_response()
}

/// The last verdicts about an object, and what would be decided now; for a pod also the objects to
/// explain it from, if this program schedules pods. Explaining takes time in proportion to the
/// number of objects, so it is not done here, in the engine task.
fn object_state(engine: &Engine, recorder: &Recorder, key: &ObjectKey) -> (Value, Option<Snapshot>) {
    let now = engine.would_decide(key).map(|(set, verdict)| {
        json!({"controller": set, "rule": verdict.rule.name, "why": verdict.rule.why, "note": verdict.note})
    });
    // Other programs do not watch everything that scheduling depends on.
    let schedules = engine.controllers().any(|controller| controller == Scheduler::NAME) && key.kind == Kind::Pod;
    let snapshot = schedules.then(|| engine.known().snapshot());
    let object = engine.known().object(key);
    let state = json!({
        "key": key.to_string(),
        "known": object.as_ref().map(|object| {
            json!({"version": object.meta().version, "uid": object.meta().uid.as_str()})
        }),
        "lastVerdicts": recorder.decisions(Some(key)),
        "lastRejection": engine.rejection_of(key).map(rejection),
        "explanation": null,
        "verdictNow": object.is_some().then(|| now.collect::<Vec<_>>()),
    });
    (state, snapshot)
}

/// A rejected request that was not made up for since.
fn rejection(rejection: &Rejection) -> Value {
    json!({
        "controller": rejection.set,
        "key": rejection.key.to_string(),
        "target": rejection.target.to_string(),
        "step": rejection.step,
        "status": rejection.error.status(),
        "error": rejection.error.to_string(),
        "failures": rejection.failures,
        "retryInSeconds": rejection.retry_in.map(|delay| delay.as_secs_f64()),
    })
}

/// The state of the engine, for troubleshooting.
fn engine_state(engine: &Engine, recorder: &Recorder) -> Value {
    let known = engine.known();
    let watches: BTreeMap<&str, Value> = Kind::ALL
        .into_iter()
        .map(|kind| (kind.as_str(), json!({"version": known.watched_version(kind), "count": known.count(kind)})))
        .collect();
    let (requests, operations) = engine.in_flight();
    let lease = recorder.lease().map(|lease| {
        json!({
            "identity": lease.identity,
            "holder": lease.holder,
            "renewed": lease.renewed,
            "transitions": lease.transitions,
        })
    });
    let decisions = recorder.decisions(None);
    json!({
        "controllers": engine.controllers().collect::<Vec<_>>(),
        "watches": watches,
        "synced": engine.is_synced(),
        "isLeader": engine.is_leader(),
        "lease": lease,
        "keysPending": engine.pending(),
        "requestsInFlight": requests,
        "operationsInFlight": operations,
        "availableVolumes": known.free_volumes().len(),
        "unboundClaims": known.unmatched_claims().len(),
        "verdicts": engine.stats().by_rule.iter().collect::<BTreeMap<_, _>>(),
        "rejections": engine.rejections().take(REJECTIONS_SHOWN).map(rejection).collect::<Vec<_>>(),
        "permissionsMissing": recorder.permissions().missing().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "lastVerdicts": &decisions[decisions.len().saturating_sub(VERDICTS_SHOWN)..],
    })
}

#[cfg(test)]
mod tests {
    use bindery_engine::{Config, Input, Moment};
    use bindery_model::Object;

    use super::*;

    #[test]
    fn pod_is_explained_from_a_snapshot_and_not_in_the_engine_task() {
        let mut engine = Engine::new(Config::default(), vec![Box::new(Scheduler::new("bindery-scheduler"))]);
        let pod = r#"{"metadata":{"namespace":"d","name":"p","uid":"u"},"spec":{"schedulerName":"bindery-scheduler"}}"#;
        let pod = Object::from_json(Kind::Pod, pod.as_bytes()).expect("a valid pod");
        let key = pod.key();
        engine.handle(Moment::default(), Input::Watched(pod));
        let (state, snapshot) = object_state(&engine, &Recorder::default(), &key);
        assert!(state["explanation"].is_null(), "the engine task does not explain");
        let snapshot = snapshot.expect("the objects to explain it from");
        engine.handle(Moment::default(), Input::Deleted { key: key.clone(), version: 9 });
        let explanation = explain_pod(&snapshot.build(), &key.pod_key(), LINES).expect("the pod is in the snapshot");
        assert_eq!(explanation.rule, "schedule.no-nodes");
        assert!(object_state(&engine, &Recorder::default(), &ObjectKey::volume("v")).1.is_none());
    }
}
