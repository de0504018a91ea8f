//! The event sink: a bounded queue, and a task that writes one event at a time. The engine never
//! waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bindery_rules_api::Event;
use http::StatusCode;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::request::Request as Call;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::api::{Api, Reply};
use crate::correlator::{Correlated, Correlator};

/// The most events that wait, as in upstream's recorder. Further events are dropped and counted.
const QUEUE_MAX: usize = 1000;

/// Publishes events without blocking.
#[derive(Clone)]
pub struct EventSink {
    queue: Sender<Event>,
    dropped: Arc<AtomicU64>,
}

impl EventSink {
    /// A sink, and the task that writes its events, which the caller must run.
    pub fn new(api: Arc<Api>) -> (EventSink, impl Future<Output = ()> + Send) {
        let (queue, published) = channel(QUEUE_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let (correlator, start) = (Correlator::default(), Instant::now());
        let writer = Writer { api, correlator, start, dropped: dropped.clone(), is_failing: false };
        (EventSink { queue, dropped }, writer.run(published))
    }

    /// Queues an event, or drops it if the queue is full.
    pub fn publish(&self, event: Event) {
        if self.queue.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of events dropped because the queue was full or an object had too many events.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

struct Writer {
    api: Arc<Api>,
    correlator: Correlator,
    start: Instant,
    dropped: Arc<AtomicU64>,
    /// Whether the last event could not be written. Further ones are not logged as warnings.
    is_failing: bool,
}

impl Writer {
    async fn run(mut self, mut published: Receiver<Event>) {
        while let Some(event) = published.recv().await {
            match self.correlator.correlate(&event, self.start.elapsed()) {
                Correlated::Drop => {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                }
                Correlated::Write(message) => self.write(&event, message).await,
                Correlated::Count { name, count, message } => self.count(&event, &name, count, message).await,
            }
        }
    }

    async fn write(&mut self, event: &Event, message: String) {
        let body = event_body(event, &message, Timestamp::now());
        let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let body = body.to_string().into_bytes();
        let reply = self.call(Call::new(path(event)).create(&PostParams::default(), body)).await;
        if reply.is_some_and(|reply| reply.status.is_success()) {
            self.correlator.written(event, message, name);
        }
    }

    async fn count(&mut self, event: &Event, name: &str, count: u32, message: String) {
        let now = Timestamp::now();
        let patch = Patch::Merge(json!({
            "metadata": {"annotations": {Event::NEXT_TRY: next_try(event, now)}},
            "count": count,
            "lastTimestamp": wire_time(now),
            "message": message,
        }));
        let reply = self.call(Call::new(path(event)).patch(name, &PatchParams::default(), &patch)).await;
        // Events expire after an hour. Then a new one is created.
        if reply.is_some_and(|reply| reply.status == StatusCode::NOT_FOUND) {
            self.write(event, message).await;
        }
    }

    /// Sends a request once. Events are best effort: one that cannot be written is dropped.
    async fn call(&mut self, request: Result<http::Request<Vec<u8>>, kube::core::request::Error>) -> Option<Reply> {
        match self.api.call(request.ok()?).await {
            Ok(reply) if reply.status.is_success() || reply.status == StatusCode::NOT_FOUND => {
                self.is_failing = false;
                Some(reply)
            }
            Ok(reply) => {
                self.failed(&reply.message());
                Some(reply)
            }
            Err(lost) => {
                self.failed(&lost.0);
                // Slow down while the API server is unreachable.
                tokio::time::sleep(Duration::from_millis(200)).await;
                None
            }
        }
    }

    fn failed(&mut self, error: &str) {
        match std::mem::replace(&mut self.is_failing, true) {
            false => tracing::warn!(error, "event not written"),
            true => tracing::debug!(error, "event not written"),
        }
    }
}

/// The time of the next retry, if there is one.
fn next_try(event: &Event, now: Timestamp) -> Option<String> {
    Some(wire_time(now.checked_add(event.retry_in?).ok()?))
}

/// Events about cluster-scoped objects are in the namespace `default`.
fn namespace(event: &Event) -> &str {
    if event.about.namespace.is_empty() { "default" } else { &event.about.namespace }
}

fn path(event: &Event) -> String {
    format!("/api/v1/namespaces/{}/events", namespace(event))
}

/// A time as the API formats it.
pub(crate) fn wire_time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn event_body(event: &Event, message: &str, now: Timestamp) -> Value {
    let about = &event.about;
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{}.{:x}", about.name, now.as_nanosecond()),
            "namespace": namespace(event),
            "annotations": next_try(event, now).map(|moment| json!({Event::NEXT_TRY: moment})),
        },
        "involvedObject": {
            "kind": about.kind.as_str(),
            "apiVersion": about.kind.api_version(),
            "namespace": about.namespace.as_str(),
            "name": about.name.as_str(),
            "uid": event.meta.uid.as_str(),
            "resourceVersion": event.meta.version.to_string(),
        },
        "type": event.event_type.as_str(),
        "reason": event.reason.as_str(),
        "message": message,
        "count": 1,
        "firstTimestamp": wire_time(now),
        "lastTimestamp": wire_time(now),
        "source": {"component": event.component},
        "reportingComponent": event.component,
        "reportingInstance": "",
    })
}
