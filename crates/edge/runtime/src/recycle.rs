//! Scrubbing a volume with a pod: made, watched until it ends, and removed.

use std::collections::BTreeSet;
use std::time::Duration;

use bindery_model::ObjectKey;
use bindery_model::event::{EventType, Reason};
use bindery_rules_api::{Event, Recycle};
use http::StatusCode;
use kube::api::{DeleteParams, GetParams, ListParams, PostParams, Preconditions};
use kube::core::request::Request as Call;
use serde_json::Value;
use tokio::time::sleep;

use crate::api::{Api, Reply};
use crate::events::EventSink;

/// How often the pod is looked at. It takes seconds to minutes; nobody waits for the moment it ends.
const LOOK: Duration = Duration::from_secs(1);

/// Scrubs a volume; says how, where it failed.
pub(crate) async fn recycle(api: &Api, events: &EventSink, recycle: &Recycle) -> Result<(), String> {
    let scrub = Scrub::new(api, events, recycle);
    scrub.create().await?;
    let ended = scrub.wait().await;
    let removed = scrub.remove().await;
    ended.map_err(|error| format!("failed to recycle volume: {error}"))?;
    removed.map_err(|error| format!("failed to delete recycler pod: {error}"))
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

    /// Makes the pod. One of that name is an older scrub's, of who knows what: it is removed, and the scrub tried again later.
    async fn create(&self) -> Result<(), String> {
        let body = self.recycle.pod.to_string().into_bytes();
        let reply = self.call(self.at("pods").create(&PostParams::default(), body)).await?;
        if reply.status == StatusCode::CONFLICT {
            let (namespace, name) = (&self.namespace, &self.name);
            let removed = self.remove().await;
            removed.map_err(|error| format!("failed to delete old recycler pod {namespace}/{name}: {error}"))?;
            return Err("old recycler pod found, will retry later".into());
        }
        if reply.status.is_success() {
            return Ok(());
        }
        Err(format!("unexpected error creating recycler pod:  {}", reply.message()))
    }

    /// Waits until the pod ends, and tells what happens to it meanwhile.
    async fn wait(&self) -> Result<(), String> {
        let mut told = BTreeSet::new();
        loop {
            sleep(LOOK).await;
            self.tell(&mut told).await;
            let reply = self.call(self.at("pods").get(&self.name, &GetParams::default())).await;
            let pod: Value = match reply {
                Ok(reply) if reply.status == StatusCode::NOT_FOUND => return Err("recycler pod was deleted".into()),
                Ok(reply) => serde_json::from_slice(&reply.body).unwrap_or_default(),
                // A server that does not answer now may answer later; the pod's own deadline ends the wait.
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

    /// Publishes the pod's events that are new as events of the volume.
    async fn tell(&self, told: &mut BTreeSet<String>) {
        let params = ListParams::default().fields(&format!("involvedObject.name={}", self.name));
        let Ok(reply) = self.call(self.at("events").list(&params)).await else { return };
        let list: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        for event in list["items"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if !told.insert(text(&event["metadata"]["uid"])) {
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
                again_in: None,
                missing: None,
            });
        }
    }

    /// Removes the pod, this very one if it can be told.
    async fn remove(&self) -> Result<(), String> {
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
        let is_gone = reply.status.is_success() || reply.status == StatusCode::NOT_FOUND;
        if is_gone { Ok(()) } else { Err(reply.message()) }
    }
}
