//! Publishes CSIStorageCapacity objects and keeps them up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bindery_runtime::{Api, GetError};
use futures::StreamExt;
use futures::stream::iter;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::changes::CapacityChanges;
use super::plan::{Capacity, CapacityWrite, Identity, plan};
use super::schedule::{Item, RetryDelays, Schedule};
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
    /// How long to wait after failures.
    pub retry: RetryDelays,
    /// Volumes that were created or deleted.
    pub changes: Arc<CapacityChanges>,
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
        let mut schedule = Schedule::new(Instant::now(), self.poll, self.retry);
        loop {
            tokio::select! {
                () = sleep(CHECK_INTERVAL) => {}
                changes = self.changes.next() => {
                    changes.iter().for_each(|change| schedule.changed(Instant::now(), change));
                }
            }
            let Some(targets) = wanted().await else { continue };
            schedule.set_targets(Instant::now(), &targets);
            self.publish(&mut schedule).await;
        }
    }

    /// Calls GetCapacity for every class and segment that is due, and writes what has changed.
    /// Failures are retried later.
    async fn publish(&self, schedule: &mut Schedule) {
        let Some(due) = schedule.due(Instant::now()) else { return };
        let mut capacities: BTreeMap<Item, Capacity> =
            schedule.items().map(|item| (item.clone(), Capacity::Unknown)).collect();
        for (class, segments) in &due {
            match self.parameters(class).await {
                Ok(Some(parameters)) => {
                    let get_capacity = |segment: &Segment| self.get_capacity(class, segment.clone(), &parameters);
                    let results: Vec<_> =
                        iter(segments).map(get_capacity).buffer_unordered(self.calls_max.max(1)).collect().await;
                    capacities.extend(results);
                }
                // It was deleted, and so are its objects.
                Ok(None) => capacities.retain(|(other, _), _| other != class),
                Err(error) => {
                    tracing::warn!(class, error, "cannot read StorageClass, keeping its published capacity");
                }
            }
        }
        let mut failed: BTreeSet<Item> = BTreeSet::new();
        let is_swept = match self.write(&capacities, &mut failed).await {
            Ok(is_swept) => is_swept,
            Err(error) => {
                tracing::warn!(error, "cannot list CSIStorageCapacity objects");
                failed.extend(capacities.keys().cloned());
                false
            }
        };
        failed.extend(
            capacities.iter().filter(|(_, capacity)| **capacity == Capacity::Unknown).map(|(item, _)| item.clone()),
        );
        let now = Instant::now();
        schedule.record_sweep(now, is_swept);
        for (class, segments) in due {
            for segment in segments {
                let item = (class.clone(), segment);
                let retry_in = schedule.record(now, &item, !failed.contains(&item));
                if failed.contains(&item) {
                    tracing::debug!(class, ?retry_in, "capacity not published, will be retried");
                }
            }
        }
    }

    /// The parameters of a class; `None` if it certainly does not exist.
    async fn parameters(&self, class: &str) -> Result<Option<BTreeMap<String, String>>, String> {
        match self.api.get(&path::class(class)?).await {
            Ok(object) => Ok(Some(texts(&object, "/parameters"))),
            Err(GetError::NotFound(_)) => Ok(None),
            Err(error @ (GetError::Rejected(..) | GetError::Lost(_))) => Err(error.to_string()),
        }
    }

    /// Writes what has changed, and adds what could not be written to `failed`. Returns whether all
    /// obsolete objects were deleted.
    async fn write(&self, capacities: &BTreeMap<Item, Capacity>, failed: &mut BTreeSet<Item>) -> Result<bool, String> {
        let existing = self.existing().await?;
        let (mut current, mut obsolete) = (existing.len() as i64, 0);
        for (item, write) in plan(&self.identity, capacities, &existing) {
            match (self.apply(&write).await, &write) {
                (Ok(()), CapacityWrite::Create(_)) => current += 1,
                (Ok(()), CapacityWrite::Delete { .. }) => current -= 1,
                (Ok(()), CapacityWrite::Patch(_)) => {}
                (Err(error), write) => {
                    tracing::warn!(class = item.0, error, "cannot write CSIStorageCapacity");
                    obsolete += i64::from(matches!(write, CapacityWrite::Delete { .. }));
                    failed.insert(item);
                }
            }
        }
        self.counts.goal.store(capacities.len() as i64, Ordering::Relaxed);
        self.counts.current.store(current - obsolete, Ordering::Relaxed);
        self.counts.obsolete.store(obsolete, Ordering::Relaxed);
        Ok(obsolete == 0)
    }

    async fn get_capacity(
        &self,
        class: &str,
        segment: Segment,
        parameters: &BTreeMap<String, String>,
    ) -> (Item, Capacity) {
        let accessible_topology = (!segment.is_empty()).then(|| Topology { segments: segment.clone() });
        let parameters = parameters.clone();
        let request = GetCapacityRequest { volume_capabilities: vec![], parameters, accessible_topology };
        let capacity = match self.driver.get_capacity(request).await {
            Ok(answer) => Capacity::Known { bytes: answer.available_capacity, maximum: answer.maximum_volume_size },
            Err(status) => {
                tracing::warn!(class, ?segment, error = grpc_status::message(&status), "GetCapacity failed");
                Capacity::Unknown
            }
        };
        ((class.to_owned(), segment), capacity)
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

#[cfg(test)]
mod tests;
