//! Publishes CSIStorageCapacity objects and keeps them up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bindery_runtime::Api;
use futures::StreamExt;
use futures::stream::iter;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::plan::{Capacity, CapacityWrite, Identity, plan};
use super::segments::Segment;
use crate::driver::Driver;
use crate::fields::texts;
use crate::grpc_status;
use crate::path;
use crate::proto::{GetCapacityRequest, Topology};

/// How often to check whether classes or topology segments have changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What to publish capacity for: every combination of class and topology segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// The names of the driver's classes.
    pub classes: BTreeSet<String>,
    /// The driver's topology segments.
    pub segments: BTreeSet<Segment>,
}

/// The numbers of CSIStorageCapacity objects, for metrics.
#[derive(Debug, Default)]
pub struct Counts {
    /// Wanted objects: one for each class and segment.
    pub goal: AtomicI64,
    /// Existing wanted objects.
    pub current: AtomicI64,
    /// Existing objects that could not be deleted.
    pub obsolete: AtomicI64,
}

/// Publishes CSIStorageCapacity objects.
pub struct CapacityPublisher {
    /// The API server, with its own rate limit.
    pub api: Arc<Api>,
    /// The driver.
    pub driver: Driver,
    /// The labels and owner of the objects.
    pub identity: Identity,
    /// How often to call GetCapacity.
    pub poll: Duration,
    /// The maximum number of concurrent GetCapacity calls.
    pub calls_max: usize,
    /// Notified when a volume was created or deleted.
    pub changed: Arc<Notify>,
    /// Updated after every round.
    pub counts: Arc<Counts>,
}

impl CapacityPublisher {
    /// Runs forever: publishes at every poll interval, when classes or segments have changed, and
    /// when a volume was created or deleted.
    pub async fn run<F>(self, wanted: impl Fn() -> F)
    where
        F: Future<Output = Option<Targets>>,
    {
        let (mut published, mut due) = (None, Instant::now());
        loop {
            tokio::select! {
                () = sleep(CHECK_INTERVAL) => {}
                () = self.changed.notified() => due = Instant::now(),
            }
            let Some(wanted) = wanted().await else { continue };
            if Instant::now() < due && published.as_ref() == Some(&wanted) {
                continue;
            }
            match self.publish(&wanted).await {
                Ok(()) => (published, due) = (Some(wanted), Instant::now() + self.poll),
                Err(error) => tracing::warn!(error, "cannot publish storage capacity"),
            }
        }
    }

    /// Calls GetCapacity for every class and segment, and writes what has changed. Failures
    /// are retried in the next round.
    async fn publish(&self, wanted: &Targets) -> Result<(), String> {
        let mut capacities = BTreeMap::new();
        for class in &wanted.classes {
            let at = path::class(class)?;
            let Ok(class_object) = self.api.get(&at).await else { continue };
            let parameters = texts(&class_object, "/parameters");
            let get_capacity = |segment: &'_ Segment| {
                let (segment, parameters) = (segment.clone(), parameters.clone());
                async move { (segment.clone(), self.get_capacity(segment, parameters).await) }
            };
            let results: Vec<_> =
                iter(&wanted.segments).map(get_capacity).buffer_unordered(self.calls_max.max(1)).collect().await;
            capacities.extend(results.into_iter().map(|(segment, capacity)| ((class.clone(), segment), capacity)));
        }
        let existing = self.existing().await?;
        let (mut current, mut obsolete) = (existing.len() as i64, 0);
        for write in plan(&self.identity, &capacities, &existing) {
            match (self.apply(&write).await, &write) {
                (Ok(()), CapacityWrite::Create(_)) => current += 1,
                (Ok(()), CapacityWrite::Delete { .. }) => current -= 1,
                (Ok(()), CapacityWrite::Patch(_)) => {}
                (Err(error), write) => {
                    tracing::warn!(error, "cannot write CSIStorageCapacity");
                    obsolete += i64::from(matches!(write, CapacityWrite::Delete { .. }));
                }
            }
        }
        self.counts.goal.store(capacities.len() as i64, Ordering::Relaxed);
        self.counts.current.store(current - obsolete, Ordering::Relaxed);
        self.counts.obsolete.store(obsolete, Ordering::Relaxed);
        Ok(())
    }

    async fn get_capacity(&self, segment: Segment, parameters: BTreeMap<String, String>) -> Capacity {
        let accessible_topology = (!segment.is_empty()).then_some(Topology { segments: segment });
        let request = GetCapacityRequest { volume_capabilities: vec![], parameters, accessible_topology };
        match self.driver.get_capacity(request).await {
            Ok(answer) => Capacity::Known { bytes: answer.available_capacity, maximum: answer.maximum_volume_size },
            Err(status) => {
                tracing::warn!(error = grpc_status::message(&status), "GetCapacity failed");
                Capacity::Unknown
            }
        }
    }

    async fn existing(&self) -> Result<Vec<Value>, String> {
        let labels = self.identity.labels().map(|(key, value)| format!("{key}%3D{value}")).join("%2C");
        let at = format!("{}?labelSelector={labels}", self.identity.collection());
        let mut list = self.api.get(&at).await.map_err(|error| error.to_string())?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    async fn apply(&self, write: &CapacityWrite) -> Result<(), String> {
        let (method, path, media, body) = match write {
            CapacityWrite::Create(object) => {
                (http::Method::POST, self.identity.collection(), "application/json", object.clone())
            }
            CapacityWrite::Patch(patch) => {
                (http::Method::PATCH, patch.path.clone(), "application/merge-patch+json", patch.body.clone())
            }
            CapacityWrite::Delete { path, preconditions } => {
                (http::Method::DELETE, path.clone(), "application/json", json!({"preconditions": preconditions}))
            }
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, media)
            .body(body.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        self.api.object(request).await.map(drop).map_err(|error| error.to_string())
    }
}
