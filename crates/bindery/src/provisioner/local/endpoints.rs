//! Readiness and metrics of the local disk provisioner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bindery_local_disks::agent::{Cleanings, EngineVolumes, Problems};
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
    discovery: Option<Problems>,
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
    pub fn set_discovery(&self, problems: Problems) {
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

    /// Whether the provisioner is ready, and all problems. A problem of one disk does not make it
    /// unready: the other disks are served, and the rollout to other nodes must not stop.
    fn readiness(&self) -> (bool, Vec<String>) {
        let inner = self.lock();
        let Some(Problems { general, disks }) = inner.discovery.clone() else {
            return (false, vec!["the first discovery is not complete".into()]);
        };
        let general: Vec<String> = inner.config.clone().into_iter().chain(general).collect();
        let is_ready = general.is_empty();
        (is_ready, general.into_iter().chain(disks.iter().map(ToString::to_string)).collect())
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

/// Ready if the last discovery found no general problem. Lists all problems in either case.
async fn ready(State(shared): State<Shared>) -> Response {
    match shared.status.readiness() {
        (true, problems) if problems.is_empty() => "ok".into_response(),
        (true, problems) => format!("ok, except for\n{}\n", problems.join("\n")).into_response(),
        (false, problems) => (StatusCode::INTERNAL_SERVER_ERROR, problems.join("\n") + "\n").into_response(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_local_disks::agent::DiskProblem;
    use bindery_local_disks::rules::discovery;

    #[test]
    fn one_bad_disk_does_not_make_the_provisioner_unready() {
        let status = Status::default();
        assert!(!status.readiness().0, "before the first discovery");
        let note = "/mnt/fast/d is not an actual mountpoint".to_owned();
        let bad = DiskProblem { class: "fast".into(), rule: &discovery::NOT_MOUNTED, note };
        status.set_discovery(Problems { general: Vec::new(), disks: vec![bad.clone()] });
        let line = "class \"fast\": /mnt/fast/d is not an actual mountpoint [local.discovery.not-mounted]".to_owned();
        assert_eq!(status.readiness(), (true, vec![line.clone()]));
        status.set_discovery(Problems { general: vec!["class \"fast\" is missing".into()], disks: vec![bad] });
        assert_eq!(status.readiness(), (false, vec!["class \"fast\" is missing".into(), line]));
        status.set_discovery(Problems::default());
        assert_eq!(status.readiness(), (true, Vec::new()));
        status.set_config(Some("invalid".into()));
        assert!(!status.readiness().0);
    }
}
