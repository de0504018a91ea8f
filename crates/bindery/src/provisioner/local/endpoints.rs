//! Readiness and metrics of the local disk provisioner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bindery_local_disks::agent::{Cleanings, EngineVolumes};
use bindery_local_disks::discover::Owner;
use tokio::net::TcpListener;

use super::metrics::Metrics;
use crate::endpoints;
use crate::metrics::CONTENT_TYPE;

/// What the endpoints report.
#[derive(Clone, Default)]
pub struct Status(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// The problems found by the last discovery; `None` before the first.
    discovery: Option<Vec<String>>,
    /// Why the current configuration files are invalid.
    config: Option<String>,
    /// Lists volumes, and knows which of them this provisioner owns.
    known: Option<(EngineVolumes, Owner)>,
}

impl Status {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the source of volumes, for metrics.
    pub fn set_volumes(&self, knowledge: EngineVolumes, owner: Owner) {
        self.lock().known = Some((knowledge, owner));
    }

    /// Records the problems of a discovery.
    pub fn set_discovery(&self, problems: Vec<String>) {
        self.lock().discovery = Some(problems);
    }

    /// Records whether the configuration files are valid. Logs a new problem.
    pub fn set_config(&self, problem: Option<String>) {
        let mut inner = self.lock();
        if let Some(error) = problem.as_ref().filter(|problem| inner.config.as_ref() != Some(problem)) {
            tracing::error!(error, "invalid configuration, keeping the previous one");
        }
        inner.config = problem;
    }

    /// Why the provisioner is not ready; empty if it is.
    fn problems(&self) -> Vec<String> {
        let inner = self.lock();
        let pending = || vec!["the first discovery is not complete".into()];
        let discovery = inner.discovery.clone().unwrap_or_else(pending);
        inner.config.clone().into_iter().chain(discovery).collect()
    }
}

#[derive(Clone)]
struct Shared {
    status: Status,
    metrics: Metrics,
    cleanings: Cleanings,
}

/// Serves forever.
pub async fn serve(
    listener: TcpListener,
    status: Status,
    metrics: Metrics,
    cleanings: Cleanings,
    metrics_path: String,
) {
    let path = format!("/{}", metrics_path.trim_start_matches('/'));
    let router = Router::new()
        .route("/ready", get(ready))
        .route("/healthz", get(|| async { "ok" }))
        .route(&path, get(page))
        .with_state(Shared { status, metrics, cleanings });
    endpoints::serve(listener, router).await;
}

/// Ready if the last discovery found no problem.
async fn ready(State(shared): State<Shared>) -> Response {
    match shared.status.problems() {
        problems if problems.is_empty() => "ok".into_response(),
        problems => (StatusCode::INTERNAL_SERVER_ERROR, problems.join("\n") + "\n").into_response(),
    }
}

async fn page(State(shared): State<Shared>) -> Response {
    let known = shared.status.lock().known.clone();
    let owned = match known {
        None => Vec::new(),
        Some((knowledge, owner)) => {
            let volumes = knowledge.list().await.unwrap_or_default();
            volumes.into_iter().filter(|volume| owner.owns(volume)).collect()
        }
    };
    let page = shared.metrics.page(&owned, &shared.cleanings);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response()
}
