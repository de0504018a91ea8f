//! Leader election with a Lease. Every write is conditional on the resourceVersion that was read.
//!
//! Leader election avoids duplicate work. Safety does not depend on it: with two leaders,
//! conflicting writes fail.
//!
//! The Lease has calls of its own, without a rate limit, so that a renewal never waits behind the
//! work that the leader has queued.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use kube::Client;
use kube::api::{GetParams, PostParams};
use kube::core::request::Request as Call;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::api::{Api, CALL_DEADLINE};
use crate::observer::{LeaseStatus, Observer};

/// The configuration of a Lease, as in upstream's leader election.
#[derive(Debug, Clone)]
pub struct LeaseConfig {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Our identity.
    pub identity: String,
    /// How long other candidates wait after the last renewal that they observed.
    pub duration: Duration,
    /// How long the leader retries a renewal before it gives up leadership.
    pub renew_deadline: Duration,
    /// The interval between attempts.
    pub retry_period: Duration,
    /// Labels to create the Lease with.
    pub labels: Vec<(String, String)>,
}

/// The error of a write that lost against another.
const CONFLICT: &str = "the lease was changed by another write";

/// A candidate for a Lease.
pub struct Lease {
    api: Api,
    config: LeaseConfig,
    /// The lease as last observed, and when. Expiry is measured with the local clock, as in
    /// upstream.
    seen: Option<(Value, Instant)>,
    observer: Arc<dyn Observer>,
    /// The last error, which is not logged as a warning again while it lasts.
    last_error: Option<String>,
}

impl Lease {
    /// A candidate with a client of its own, which other work must not use: a connection that is
    /// full of other requests would delay renewals. Every observed state is reported to the
    /// observer.
    pub fn new(client: Client, config: LeaseConfig, observer: Arc<dyn Observer>) -> Lease {
        // As in client-go, a request that hangs leaves time for another one before the deadline.
        let api = Api::new(client, CALL_DEADLINE.min(config.renew_deadline / 2), None);
        Lease { api, config, seen: None, observer, last_error: None }
    }

    /// The Lease's name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Waits until the lease is acquired.
    pub async fn acquire(&mut self) {
        loop {
            match self.try_hold().await {
                Ok(true) => {
                    tracing::info!(identity = self.config.identity, lease = self.config.name, "lease acquired");
                    return;
                }
                Ok(false) => {}
                Err(error) => self.failed(error, "lease not acquired, retrying"),
            }
            sleep(self.config.retry_period).await;
        }
    }

    /// Renews the lease. Returns when a renewal did not succeed within the deadline.
    pub async fn hold(&mut self) {
        loop {
            sleep(self.config.retry_period).await;
            let deadline = self.config.renew_deadline;
            let renewed = timeout(deadline, async {
                loop {
                    match self.try_hold().await {
                        Ok(held) => return held,
                        Err(error) => self.failed(error, "lease not renewed, retrying"),
                    }
                    sleep(self.config.retry_period).await;
                }
            });
            if !matches!(renewed.await, Ok(true)) {
                tracing::warn!(lease = self.config.name, "lease lost");
                return;
            }
        }
    }

    /// Releases the lease, so that another candidate can acquire it at once.
    pub async fn release(&mut self) {
        let released = timeout(self.config.renew_deadline, async {
            loop {
                match self.try_release().await {
                    // A renewal in flight at shutdown was written first.
                    Err(error) if error == CONFLICT => {}
                    done => return done,
                }
            }
        });
        match released.await.unwrap_or_else(|_| Err("no response within the deadline".into())) {
            Ok(()) => tracing::info!(lease = self.config.name, "lease released"),
            Err(error) => tracing::warn!(error, "lease not released, it will expire"),
        }
    }

    /// Reads and releases the lease. The last observed state may be older than the last renewal.
    async fn try_release(&mut self) -> Result<(), String> {
        let Some(mut lease) = self.read().await?.filter(|lease| self.is_ours(lease)) else { return Ok(()) };
        lease["spec"]["holderIdentity"] = "".into();
        lease["spec"]["leaseDurationSeconds"] = 1.into();
        self.replace(lease).await
    }

    fn is_ours(&self, lease: &Value) -> bool {
        lease["spec"]["holderIdentity"] == self.config.identity.as_str()
    }

    /// Logs an error: a new one as a warning.
    fn failed(&mut self, error: String, what: &'static str) {
        let lease = &self.config.name;
        match self.last_error.as_ref() == Some(&error) || error == CONFLICT {
            true => tracing::debug!(lease, error, "{what}"),
            false => tracing::warn!(lease, error, "{what}"),
        }
        self.last_error = Some(error);
    }

    /// Acquires or renews the lease, unless another candidate holds it. `Err` if that is unknown.
    async fn try_hold(&mut self) -> Result<bool, String> {
        let Some(lease) = self.read().await? else { return self.create().await.map(|()| true) };
        self.last_error = None;
        let is_new = self.seen.as_ref().is_none_or(|(seen, _)| seen["metadata"] != lease["metadata"]);
        if is_new {
            self.observed(lease.clone());
        }
        if !self.is_ours(&lease) && !self.is_expired(&lease) {
            return Ok(false);
        }
        self.replace(self.held(lease)).await.map(|()| true)
    }

    /// Whether the lease was released, or not renewed for its duration.
    fn is_expired(&self, lease: &Value) -> bool {
        let is_free = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty();
        is_free || self.seen.as_ref().is_some_and(|(_, since)| since.elapsed() > self.config.duration)
    }

    /// The lease with us as its holder.
    fn held(&self, mut lease: Value) -> Value {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        if !self.is_ours(&lease) {
            let transitions = lease["spec"]["leaseTransitions"].as_i64().unwrap_or_default();
            lease["spec"]["leaseTransitions"] = (transitions + 1).into();
            lease["spec"]["acquireTime"] = now.clone().into();
        }
        lease["spec"]["holderIdentity"] = self.config.identity.clone().into();
        lease["spec"]["leaseDurationSeconds"] = self.config.duration.as_secs().max(1).into();
        lease["spec"]["renewTime"] = now.into();
        lease
    }

    fn at(&self) -> Call {
        Call::new(format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.config.namespace))
    }

    async fn read(&self) -> Result<Option<Value>, String> {
        let request = self.at().get(&self.config.name, &GetParams::default()).map_err(|error| error.to_string())?;
        let reply = self.api.call(request).await.map_err(|lost| lost.0)?;
        match reply.status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => {
                serde_json::from_slice(&reply.body).map(Some).map_err(|error| error.to_string())
            }
            _ => Err(reply.message()),
        }
    }

    async fn create(&mut self) -> Result<(), String> {
        let labels: BTreeMap<&String, &String> = self.config.labels.iter().map(|(key, value)| (key, value)).collect();
        let lease = self.held(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.config.name, "namespace": self.config.namespace, "labels": labels},
            "spec": {"leaseTransitions": -1},
        }));
        let body = lease.to_string().into_bytes();
        let request = self.at().create(&PostParams::default(), body).map_err(|error| error.to_string())?;
        self.swap(request).await
    }

    async fn replace(&mut self, lease: Value) -> Result<(), String> {
        let body = lease.to_string().into_bytes();
        let request = self.at().replace(&self.config.name, &PostParams::default(), body);
        self.swap(request.map_err(|error| error.to_string())?).await
    }

    /// Writes the lease unless it has changed. After a conflict, the next attempt reads who holds
    /// it: the other write may only have changed a label.
    async fn swap(&mut self, request: http::Request<Vec<u8>>) -> Result<(), String> {
        let reply = self.api.call(request).await.map_err(|lost| lost.0)?;
        if reply.status == StatusCode::CONFLICT {
            return Err(CONFLICT.into());
        }
        if !reply.status.is_success() {
            return Err(reply.message());
        }
        let lease = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
        self.observed(lease);
        Ok(())
    }

    fn observed(&mut self, lease: Value) {
        let text = |field: &str| lease["spec"][field].as_str().unwrap_or_default().to_owned();
        self.observer.lease_observed(&LeaseStatus {
            identity: self.config.identity.clone(),
            holder: text("holderIdentity"),
            renewed: text("renewTime"),
            transitions: lease["spec"]["leaseTransitions"].as_i64().unwrap_or_default(),
        });
        self.seen = Some((lease, Instant::now()));
    }
}
