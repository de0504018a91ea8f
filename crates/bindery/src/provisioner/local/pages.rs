//! Readiness and metrics of local disks, over plain HTTP.

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
use crate::metrics::CONTENT_TYPE;

/// What the pages are about.
#[derive(Clone, Default)]
pub struct Pages(Arc<Mutex<Standing>>);

#[derive(Default)]
struct Standing {
    /// What the last round found wrong; `None` before the first.
    round: Option<Vec<String>>,
    /// What is wrong with the configuration that is there now.
    config: Option<String>,
    /// Who is asked for volumes, and which are ours.
    known: Option<(EngineVolumes, Owner)>,
}

impl Pages {
    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says who is asked for volumes, and which are ours.
    pub fn is_at(&self, knowledge: EngineVolumes, owner: Owner) {
        self.standing().known = Some((knowledge, owner));
    }

    /// A round is over, and this was wrong.
    pub fn round_is_over(&self, problems: Vec<String>) {
        self.standing().round = Some(problems);
    }

    /// The configuration was looked at, and this is wrong with it.
    pub fn config_is(&self, problem: Option<String>) {
        let mut standing = self.standing();
        if let Some(error) = problem.as_ref().filter(|problem| standing.config.as_ref() != Some(problem)) {
            tracing::error!(error, "the configuration makes no sense: goes on with what was there before");
        }
        standing.config = problem;
    }

    /// What keeps this from being ready; nothing when it is.
    fn problems(&self) -> Vec<String> {
        let standing = self.standing();
        let of_round = standing.round.clone().unwrap_or_else(|| vec!["the first round is not over".into()]);
        standing.config.clone().into_iter().chain(of_round).collect()
    }
}

#[derive(Clone)]
struct Shared {
    pages: Pages,
    metrics: Metrics,
    cleanings: Cleanings,
}

/// Serves for ever.
pub async fn serve(listener: TcpListener, pages: Pages, metrics: Metrics, cleanings: Cleanings, metrics_path: String) {
    let path = format!("/{}", metrics_path.trim_start_matches('/'));
    let router = Router::new()
        .route("/ready", get(ready))
        .route("/healthz", get(|| async { "ok" }))
        .route(&path, get(page))
        .with_state(Shared { pages, metrics, cleanings });
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the HTTP server failed");
    }
}

/// Ready is who found nothing wrong in the last round.
async fn ready(State(shared): State<Shared>) -> Response {
    match shared.pages.problems() {
        problems if problems.is_empty() => "ok".into_response(),
        problems => (StatusCode::INTERNAL_SERVER_ERROR, problems.join("\n") + "\n").into_response(),
    }
}

async fn page(State(shared): State<Shared>) -> Response {
    let known = shared.pages.standing().known.clone();
    let ours = match known {
        None => Vec::new(),
        Some((knowledge, owner)) => {
            let volumes = knowledge.list().await.unwrap_or_default();
            volumes.into_iter().filter(|volume| owner.owns(volume)).collect()
        }
    };
    let page = shared.metrics.page(&ours, &shared.cleanings);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response()
}
