//! The recycler: scrubs a volume with a pod, which is created, watched until it ends, and deleted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bindery_model::ObjectKey;
use bindery_model::event::{EventType, Reason};
use bindery_rules_api::{Event, Failure, Operation, OperationOutput, Recycle};
use futures::future::BoxFuture;
use http::StatusCode;
use kube::api::{DeleteParams, GetParams, ListParams, PostParams, Preconditions};
use kube::core::request::Request as Call;
use serde_json::Value;
use tokio::time::sleep;

use crate::api::{Api, Reply};
use crate::events::EventSink;
use crate::operation::RunOperation;

/// How often the pod is checked. Scrubbing takes seconds to minutes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Runs [`Operation::Recycle`].
pub struct Recycler {
    api: Arc<Api>,
    events: EventSink,
}

impl Recycler {
    /// A recycler. The events of its pods are published on the volumes.
    pub fn new(api: Arc<Api>, events: EventSink) -> Recycler {
        Recycler { api, events }
    }
}

impl RunOperation for Recycler {
    fn run(&self, operation: Operation) -> BoxFuture<'_, Result<OperationOutput, Failure>> {
        Box::pin(async move {
            let name = operation.name();
            let Operation::Recycle(recycle) = operation else {
                return Err(Failure::new("the recycler only recycles volumes"));
            };
            tracing::info!(operation = name, "operation started");
            let outcome = scrub(&self.api, &self.events, &recycle).await;
            match &outcome {
                Ok(()) => tracing::info!(operation = name, "operation succeeded"),
                Err(error) => tracing::warn!(operation = name, error, "operation failed"),
            }
            outcome.map(|()| OperationOutput::default()).map_err(Failure::new)
        })
    }
}

async fn scrub(api: &Api, events: &EventSink, recycle: &Recycle) -> Result<(), String> {
    let scrub = Scrub::new(api, events, recycle);
    scrub.create().await?;
    let ended = scrub.wait().await;
    let deleted = scrub.delete().await;
    ended.map_err(|error| format!("failed to recycle volume: {error}"))?;
    deleted.map_err(|error| format!("failed to delete recycler pod: {error}"))
}

struct Scrub<'a> {
    api: &'a Api,
    events: &'a EventSink,
    recycle: &'a Recycle,
    namespace: String,
    name: String,
}

impl<'a> Scrub<'a> {
    fn new(api: &'a Api, events: &'a EventSink, recycle: &'a Recycle) -> Scrub<'a> {
        let text = |field: &str| recycle.pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        Scrub { api, events, recycle, namespace: text("namespace"), name: text("name") }
    }

    fn at(&self, plural: &str) -> Call {
        Call::new(format!("/api/v1/namespaces/{}/{plural}", self.namespace))
    }

    async fn call(&self, request: Result<http::Request<Vec<u8>>, kube::core::request::Error>) -> Result<Reply, String> {
        let request = request.map_err(|error| error.to_string())?;
        self.api.call(request).await.map_err(|lost| lost.0)
    }

    /// Creates the pod. An existing one is left from an earlier operation, with an unknown outcome:
    /// it is deleted, and scrubbing is retried later.
    async fn create(&self) -> Result<(), String> {
        let body = self.recycle.pod.to_string().into_bytes();
        let reply = self.call(self.at("pods").create(&PostParams::default(), body)).await?;
        if reply.status == StatusCode::CONFLICT {
            let (namespace, name) = (&self.namespace, &self.name);
            let deleted = self.delete().await;
            deleted.map_err(|error| format!("failed to delete old recycler pod {namespace}/{name}: {error}"))?;
            return Err("old recycler pod found, will retry later".into());
        }
        if reply.status.is_success() {
            return Ok(());
        }
        Err(format!("unexpected error creating recycler pod:  {}", reply.message()))
    }

    /// Waits until the pod ends, and publishes its events on the volume.
    async fn wait(&self) -> Result<(), String> {
        let mut published = BTreeSet::new();
        loop {
            sleep(POLL_INTERVAL).await;
            self.publish_events(&mut published).await;
            let reply = self.call(self.at("pods").get(&self.name, &GetParams::default())).await;
            let pod: Value = match reply {
                Ok(reply) if reply.status == StatusCode::NOT_FOUND => return Err("recycler pod was deleted".into()),
                Ok(reply) => serde_json::from_slice(&reply.body).unwrap_or_default(),
                // The API server may answer later; the pod's own deadline ends the wait.
                Err(_) => continue,
            };
            let message = pod["status"]["message"].as_str().unwrap_or_default();
            match pod["status"]["phase"].as_str() {
                Some("Succeeded") => return Ok(()),
                Some("Failed") if message.is_empty() => return Err("pod failed, pod.Status.Message unknown".into()),
                Some("Failed") => return Err(message.to_owned()),
                Some(_) | None => {}
            }
        }
    }

    /// Publishes new events of the pod as events of the volume.
    async fn publish_events(&self, published: &mut BTreeSet<String>) {
        let params = ListParams::default().fields(&format!("involvedObject.name={}", self.name));
        let Ok(reply) = self.call(self.at("events").list(&params)).await else { return };
        let list: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        for event in list["items"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if !published.insert(text(&event["metadata"]["uid"])) {
                continue;
            }
            let volume = self.recycle.proof.volume();
            let is_warning = event["type"] == EventType::Warning.as_str();
            self.events.publish(Event {
                about: ObjectKey::volume(volume.name.clone()),
                meta: volume.clone(),
                event_type: if is_warning { EventType::Warning } else { EventType::Normal },
                reason: Reason::RecyclerPod,
                message: format!("Recycler pod: {}", text(&event["message"])),
                component: self.recycle.component,
                retry_in: None,
                missing: None,
            });
        }
    }

    /// Deletes the pod, on the condition of its UID if it is known.
    async fn delete(&self) -> Result<(), String> {
        let reply = self.call(self.at("pods").get(&self.name, &GetParams::default())).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        let pod: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let uid = pod["metadata"]["uid"].as_str().map(str::to_owned);
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::default()
        };
        let reply = self.call(self.at("pods").delete(&self.name, &params)).await?;
        let is_deleted = reply.status.is_success() || reply.status == StatusCode::NOT_FOUND;
        if is_deleted { Ok(()) } else { Err(reply.message()) }
    }
}
