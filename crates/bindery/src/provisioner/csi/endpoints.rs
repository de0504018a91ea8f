//! Health and metrics of the CSI provisioner, at csi-provisioner's paths.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use tokio::net::TcpListener;

use crate::endpoints::{self, Shared};
use crate::metrics::Recorder;

/// How long after its lease expired the leader still counts as healthy: it is about to notice, and
/// exits.
const GRACE_PERIOD: Duration = Duration::from_secs(20);

/// Serves forever. With leader election, `/healthz/leader-election` reports its health.
pub async fn serve(listener: TcpListener, shared: Shared, metrics_path: String, election: Option<LeaseHealth>) {
    let mut router = endpoints::router(shared.clone());
    if metrics_path != endpoints::METRICS_PATH {
        router = router.merge(endpoints::metrics_at(&metrics_path, shared));
    }
    if let Some(health) = election {
        let health = Router::new().route("/healthz/leader-election", get(lease_health)).with_state(health);
        router = router.merge(health);
    }
    endpoints::serve(listener, router).await;
}

/// The health of leader election.
#[derive(Clone)]
pub struct LeaseHealth {
    /// Knows the last state of the lease.
    pub recorder: Recorder,
    /// How long the lease is valid after a renewal.
    pub duration: Duration,
}

impl LeaseHealth {
    /// Whether this instance holds a lease that expired longer ago than the grace period.
    fn is_overdue(&self, now: Timestamp) -> bool {
        let Some(lease) = self.recorder.lease().filter(|lease| lease.holder == lease.identity) else { return false };
        let Ok(renewed) = lease.renewed.parse::<Timestamp>() else { return false };
        let age = Duration::try_from(now.duration_since(renewed)).unwrap_or_default();
        age > self.duration + GRACE_PERIOD
    }
}

async fn lease_health(State(health): State<LeaseHealth>) -> Response {
    match health.is_overdue(Timestamp::now()) {
        false => "ok".into_response(),
        true => (StatusCode::INTERNAL_SERVER_ERROR, "the lease expired, and was not released").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_runtime::{LeaseStatus, Observer};

    #[test]
    fn leader_with_an_expired_lease_is_unhealthy() {
        let overdue = |holder: &str, seconds_ago: i64| {
            let (recorder, now) = (Recorder::default(), Timestamp::UNIX_EPOCH);
            let renewed = Timestamp::from_second(-seconds_ago).expect("a time").to_string();
            recorder.lease_observed(&LeaseStatus {
                identity: "me".into(),
                holder: holder.into(),
                renewed,
                transitions: 0,
            });
            LeaseHealth { recorder, duration: Duration::from_secs(15) }.is_overdue(now)
        };
        assert!(!overdue("me", 34) && overdue("me", 36));
        assert!(!overdue("other", 36), "another instance's lease does not count");
    }
}
