//! Leader election on a Lease, by compare-and-swap: every write carries the resourceVersion that was read.
//!
//! Who leads is a matter of economy, not of safety: two leaders would only make each other's writes fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use kube::api::{GetParams, PostParams};
use kube::core::request::Request as Call;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::api::Api;
use crate::observe::{Leased, Observer};

/// How a lease is held. The defaults are upstream's.
#[derive(Debug, Clone)]
pub struct LeaseConfig {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Who we are.
    pub identity: String,
    /// How long others wait after they last saw the lease renewed.
    pub duration: Duration,
    /// How long we go on trying to renew it before we stop leading.
    pub renew_deadline: Duration,
    /// How often we try.
    pub retry_period: Duration,
    /// Labels that it is made with.
    pub labels: Vec<(String, String)>,
}

/// Why a write of the lease failed that another's came before.
const CHANGED: &str = "the lease has changed meanwhile";

/// A lease, from our side.
pub struct Lease {
    api: Arc<Api>,
    config: LeaseConfig,
    /// The lease as last seen, and when that was: expiry is measured by our own clock, whatever the holder's says.
    seen: Option<(Value, Instant)>,
    observer: Arc<dyn Observer>,
}

impl Lease {
    /// A lease that is not held yet. The observer hears who holds it.
    pub fn new(api: Arc<Api>, config: LeaseConfig, observer: Arc<dyn Observer>) -> Lease {
        Lease { api, config, seen: None, observer }
    }

    /// Waits until we lead.
    pub async fn acquire(&mut self) {
        loop {
            match self.try_hold().await {
                Ok(true) => {
                    tracing::info!(identity = self.config.identity, lease = self.config.name, "leads");
                    return;
                }
                Ok(false) => {}
                Err(error) => tracing::debug!(error, "the lease cannot be had"),
            }
            sleep(self.config.retry_period).await;
        }
    }

    /// Renews the lease for as long as that succeeds in time. Returns when we lead no more.
    pub async fn hold(&mut self) {
        loop {
            sleep(self.config.retry_period).await;
            let deadline = self.config.renew_deadline;
            let renewed = timeout(deadline, async {
                loop {
                    match self.try_hold().await {
                        Ok(held) => return held,
                        Err(error) => tracing::debug!(error, "the lease cannot be renewed"),
                    }
                    sleep(self.config.retry_period).await;
                }
            });
            if !matches!(renewed.await, Ok(true)) {
                tracing::warn!(lease = self.config.name, "leads no more");
                return;
            }
        }
    }

    /// Gives the lease up, so that another need not wait.
    pub async fn release(&mut self) {
        let released = timeout(self.config.renew_deadline, async {
            loop {
                match self.try_release().await {
                    // A renewal that was under way when we were told to stop came between.
                    Err(error) if error == CHANGED => {}
                    done => return done,
                }
            }
        });
        match released.await.unwrap_or_else(|_| Err("no answer in time".into())) {
            Ok(()) => tracing::info!(lease = self.config.name, "the lease is released"),
            Err(error) => tracing::warn!(error, "the lease was not released, and runs out"),
        }
    }

    /// Releases the lease as it is now: what was last seen of it may be older than our last renewal.
    async fn try_release(&mut self) -> Result<(), String> {
        let Some(mut lease) = self.read().await?.filter(|lease| self.is_ours(lease)) else { return Ok(()) };
        lease["spec"]["holderIdentity"] = "".into();
        lease["spec"]["leaseDurationSeconds"] = 1.into();
        self.replace(lease).await
    }

    fn is_ours(&self, lease: &Value) -> bool {
        lease["spec"]["holderIdentity"] == self.config.identity.as_str()
    }

    /// Takes or renews the lease, if nobody else holds it. `Err` when it could not be found out.
    async fn try_hold(&mut self) -> Result<bool, String> {
        let Some(lease) = self.read().await? else { return self.create().await.map(|()| true) };
        let is_new = self.seen.as_ref().is_none_or(|(seen, _)| seen["metadata"] != lease["metadata"]);
        if is_new {
            self.saw(lease.clone());
        }
        if !self.is_ours(&lease) && !self.is_over(&lease) {
            return Ok(false);
        }
        self.replace(self.held(lease)).await.map(|()| true)
    }

    /// Whether another's lease has run out: it was given up, or not renewed since we saw it.
    fn is_over(&self, lease: &Value) -> bool {
        let is_free = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().is_empty();
        is_free || self.seen.as_ref().is_some_and(|(_, since)| since.elapsed() > self.config.duration)
    }

    /// The lease as we hold it from now on.
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

    /// Writes the lease if it is as it was read. Who comes second does not have it; but whether the first was another instance,
    /// or only somebody who put a label on it, the next look tells.
    async fn swap(&mut self, request: http::Request<Vec<u8>>) -> Result<(), String> {
        let reply = self.api.call(request).await.map_err(|lost| lost.0)?;
        if reply.status == StatusCode::CONFLICT {
            return Err(CHANGED.into());
        }
        if !reply.status.is_success() {
            return Err(reply.message());
        }
        let lease = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
        self.saw(lease);
        Ok(())
    }

    fn saw(&mut self, lease: Value) {
        let text = |field: &str| lease["spec"][field].as_str().unwrap_or_default().to_owned();
        self.observer.leased(&Leased {
            identity: self.config.identity.clone(),
            holder: text("holderIdentity"),
            renewed: text("renewTime"),
            transitions: lease["spec"]["leaseTransitions"].as_i64().unwrap_or_default(),
        });
        self.seen = Some((lease, Instant::now()));
    }
}
