//! Where health and metrics are served: only where that is asked for.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use tokio::net::TcpListener;

use super::listen;
use crate::metrics::Taken;
use crate::serve::{self, Shared};

/// How long after its lease ran out a leader is still well: it is about to notice.
const GRACE: Duration = Duration::from_secs(20);

/// Opens an address as Go's programs write it, or one of a host by its name.
pub async fn listen(address: &str) -> Result<TcpListener, String> {
    if let Ok(plain) = listen::parse(address) {
        return serve::listen(plain).await;
    }
    let mut named = tokio::net::lookup_host(address).await.map_err(|error| format!("{address}: {error}"))?;
    serve::listen(named.next().ok_or_else(|| format!("{address} is no address"))?).await
}

/// Serves for ever. With an election, whether it goes well is told at `/healthz/leader-election`.
pub async fn serve(listener: TcpListener, shared: Shared, metrics_path: String, election: Option<Election>) {
    let mut router = serve::router(shared.clone());
    if metrics_path != serve::METRICS {
        router = router.merge(serve::metrics_at(&metrics_path, shared));
    }
    if let Some(election) = election {
        let health = Router::new().route("/healthz/leader-election", get(is_well)).with_state(election);
        router = router.merge(health);
    }
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the HTTP server failed");
    }
}

/// An election that is looked after.
#[derive(Clone)]
pub struct Election {
    /// What was seen of the lease.
    pub taken: Taken,
    /// How long the lease is good for.
    pub duration: Duration,
}

impl Election {
    /// Whether we hold a lease that ran out a while ago.
    fn is_overdue(&self, now: Timestamp) -> bool {
        let Some(lease) = self.taken.lease().filter(|lease| lease.holder == lease.identity) else { return false };
        let Ok(renewed) = lease.renewed.parse::<Timestamp>() else { return false };
        let age = Duration::try_from(now.duration_since(renewed)).unwrap_or_default();
        age > self.duration + GRACE
    }
}

async fn is_well(State(election): State<Election>) -> Response {
    match election.is_overdue(Timestamp::now()) {
        false => "ok".into_response(),
        true => (StatusCode::INTERNAL_SERVER_ERROR, "the lease ran out, and was not given up").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindery_runtime::{LeaseStatus, Observer};

    #[test]
    fn a_leader_whose_lease_ran_out_is_not_well() {
        let overdue = |holder: &str, seconds_ago: i64| {
            let (taken, now) = (Taken::default(), Timestamp::UNIX_EPOCH);
            let renewed = Timestamp::from_second(-seconds_ago).expect("a moment").to_string();
            taken.lease_observed(&LeaseStatus {
                identity: "me".into(),
                holder: holder.into(),
                renewed,
                transitions: 0,
            });
            Election { taken, duration: Duration::from_secs(15) }.is_overdue(now)
        };
        assert!(!overdue("me", 34) && overdue("me", 36));
        assert!(!overdue("other", 36), "others are not ours to look after");
    }
}
