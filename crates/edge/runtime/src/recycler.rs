//! The recycler: scrubs a volume with a pod, which is created with a scheduling gate, released from
//! it once the volume is marked, watched until it ends, and deleted. [`Recycle`] says why.
//!
//! A pod that the API server no longer has is taken for ended. This does not hold for pods that
//! were deleted by force, or whose node was lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bindery_model::ObjectKey;
use bindery_model::event::{EventType, Reason};
use bindery_rules_api::{Event, Failure, Operation, OperationOutput, Recycle, RecycleStep};
use futures::future::BoxFuture;
use http::StatusCode;
use kube::api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::request::Request as Call;
use serde_json::{Value, json};
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
            let outcome = step(&self.api, &self.events, &recycle).await;
            match &outcome {
                Ok(_) => tracing::info!(operation = name, "operation succeeded"),
                Err(error) => tracing::warn!(operation = name, error, "operation failed"),
            }
            outcome.map(|uid| recycle.output(&uid)).map_err(Failure::new)
        })
    }
}

/// Takes a step, and returns the UID for its output.
async fn step(api: &Api, events: &EventSink, recycle: &Recycle) -> Result<String, String> {
    let scrub = Scrub::new(api, events, recycle);
    match &recycle.step {
        RecycleStep::CreatePod { marked } => scrub.create(marked.as_deref()).await,
        RecycleStep::RunPod(proof) => {
            let Some(marked) = proof.recycler_pod() else { return Err("the volume is not marked".into()) };
            let ended = scrub.run(marked).await;
            let deleted = scrub.delete(|pod| uid(pod) == marked.as_str()).await;
            ended.map_err(|error| format!("failed to recycle volume: {error}"))?;
            deleted.map_err(|error| format!("failed to delete recycler pod: {error}"))?;
            Ok(marked.to_string())
        }
        RecycleStep::DeletePod { marked } => match scrub.delete(|_| true).await? {
            Deleted::Gone => Ok(marked.to_string()),
            Deleted::Terminating => Err("the recycler pod is still terminating".into()),
        },
    }
}

/// What is left of a pod after its deletion.
enum Deleted {
    /// Nothing.
    Gone,
    /// It ends within its grace period.
    Terminating,
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

    /// Creates the pod, and returns its UID. An existing one that the volume is marked with is used
    /// instead, unless it has failed. Any other one is left from an earlier scrub or is foreign: it
    /// is deleted, and scrubbing is retried later.
    async fn create(&self, marked: Option<&str>) -> Result<String, String> {
        let body = self.recycle.pod.to_string().into_bytes();
        let reply = self.call(self.at("pods").create(&PostParams::default(), body)).await?;
        if reply.status == StatusCode::CONFLICT {
            let found = self.get().await?;
            let is_usable =
                |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null() && pod["status"]["phase"] != "Failed";
            let uid = found.as_ref().filter(|pod| is_usable(pod)).map(uid).filter(|uid| Some(*uid) == marked);
            if let Some(uid) = uid {
                return Ok(uid.to_owned());
            }
            let (namespace, name) = (&self.namespace, &self.name);
            let deleted = self.delete(|_| true).await;
            deleted.map_err(|error| format!("failed to delete old recycler pod {namespace}/{name}: {error}"))?;
            return Err("old recycler pod found, will retry later".into());
        }
        if reply.status.is_success() {
            return Ok(uid(&body_of(&reply)).to_owned());
        }
        Err(format!("unexpected error creating recycler pod:  {}", reply.message()))
    }

    /// The pod, if it exists.
    async fn get(&self) -> Result<Option<Value>, String> {
        let reply = self.call(self.at("pods").get(&self.name, &GetParams::default())).await?;
        match reply.status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => Ok(Some(body_of(&reply))),
            _ => Err(reply.message()),
        }
    }

    /// Lets the pod with this UID run, waits until it ends, and publishes its events on the volume.
    async fn run(&self, expected: &str) -> Result<(), String> {
        let mut published = BTreeSet::new();
        loop {
            let pod = match self.get().await {
                Ok(pod) => pod.filter(|pod| uid(pod) == expected).ok_or("recycler pod was deleted")?,
                // The API server may answer later; the pod's own deadline ends the wait.
                Err(error) => {
                    tracing::debug!(pod = self.name, error, "recycler pod cannot be read, retrying");
                    sleep(POLL_INTERVAL).await;
                    continue;
                }
            };
            self.publish_events(&mut published).await;
            let message = pod["status"]["message"].as_str().unwrap_or_default();
            match pod["status"]["phase"].as_str() {
                Some("Succeeded") => return Ok(()),
                Some("Failed") if message.is_empty() => return Err("pod failed, pod.Status.Message unknown".into()),
                Some("Failed") => return Err(message.to_owned()),
                Some(_) | None => {}
            }
            self.remove_gate(&pod).await?;
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Removes the scheduling gate, on the condition of the pod's UID and resourceVersion.
    async fn remove_gate(&self, pod: &Value) -> Result<(), String> {
        let gates = pod["spec"]["schedulingGates"].as_array().map(Vec::as_slice).unwrap_or_default();
        let others: Vec<&Value> = gates.iter().filter(|gate| gate["name"] != Recycle::GATE).collect();
        if others.len() == gates.len() {
            return Ok(());
        }
        let metadata = &pod["metadata"];
        let patch = json!({
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "spec": {"schedulingGates": others},
        });
        let patch = self.at("pods").patch(&self.name, &PatchParams::default(), &Patch::Merge(patch));
        let reply = self.call(patch).await?;
        match reply.status {
            // It has changed: it is read again.
            StatusCode::CONFLICT | StatusCode::NOT_FOUND => Ok(()),
            status if status.is_success() => Ok(()),
            _ => Err(format!("cannot remove the scheduling gate of the recycler pod: {}", reply.message())),
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
            let volume = &self.recycle.volume;
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

    /// Deletes the pod if it is the expected one, on the condition of its UID.
    async fn delete(&self, is_expected: impl Fn(&Value) -> bool) -> Result<Deleted, String> {
        let Some(pod) = self.get().await?.filter(is_expected) else { return Ok(Deleted::Gone) };
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(uid(&pod).to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        let reply = self.call(self.at("pods").delete(&self.name, &params)).await?;
        if !reply.status.is_success() && reply.status != StatusCode::NOT_FOUND {
            return Err(reply.message());
        }
        // A pod that has run is kept until its containers have ended.
        Ok(if self.get().await?.is_none() { Deleted::Gone } else { Deleted::Terminating })
    }
}

fn body_of(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap_or_default()
}
