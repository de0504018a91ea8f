//! The event sink: a bounded queue off the binding path, and a task that writes events one after the other.

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
use crate::correlate::{Correlator, Fate};

/// So many events wait at most; more are dropped, and counted. As many as upstream's recorder keeps.
const QUEUE_MAX: usize = 1000;

/// Where events are published. Publishing never waits.
#[derive(Clone)]
pub struct EventSink {
    queue: Sender<Event>,
    dropped: Arc<AtomicU64>,
}

impl EventSink {
    /// A sink, and the task that writes what is published. Run it for as long as events are wanted.
    pub fn new(api: Arc<Api>) -> (EventSink, impl Future<Output = ()> + Send) {
        let (queue, published) = channel(QUEUE_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = Writer { api, correlator: Correlator::default(), start: Instant::now(), dropped: dropped.clone() };
        (EventSink { queue, dropped }, writer.run(published))
    }

    /// Publishes a notice, unless too many wait.
    pub fn publish(&self, notice: Event) {
        if self.queue.try_send(notice).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many were dropped: because too many waited, or because there were too many about one object.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

struct Writer {
    api: Arc<Api>,
    correlator: Correlator,
    start: Instant,
    dropped: Arc<AtomicU64>,
}

impl Writer {
    async fn run(mut self, mut published: Receiver<Event>) {
        while let Some(notice) = published.recv().await {
            match self.correlator.fate(&notice, self.start.elapsed()) {
                Fate::Drop => {
                    self.dropped.fetch_add(1, Ordering::Relaxed);
                }
                Fate::Write(message) => self.write(&notice, message).await,
                Fate::Count { event, count, message } => self.count(&notice, &event, count, message).await,
            }
        }
    }

    async fn write(&mut self, notice: &Event, message: String) {
        let event = event(notice, &message, Timestamp::now());
        let name = event["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let body = event.to_string().into_bytes();
        let reply = self.call(Call::new(path(notice)).create(&PostParams::default(), body)).await;
        if reply.is_some_and(|reply| reply.status.is_success()) {
            self.correlator.written(notice, message, name);
        }
    }

    async fn count(&mut self, notice: &Event, event: &str, count: u32, message: String) {
        let now = Timestamp::now();
        let patch = Patch::Merge(json!({
            "metadata": {"annotations": {Event::NEXT_TRY: next_try(notice, now)}},
            "count": count,
            "lastTimestamp": wire_time(now),
            "message": message,
        }));
        let reply = self.call(Call::new(path(notice)).patch(event, &PatchParams::default(), &patch)).await;
        // An API server forgets events after an hour: then it is a new one.
        if reply.is_some_and(|reply| reply.status == StatusCode::NOT_FOUND) {
            self.write(notice, message).await;
        }
    }

    /// Events are not worth a fight: what cannot be written now is lost, and said so to who listens closely.
    async fn call(&self, request: Result<http::Request<Vec<u8>>, kube::core::request::Error>) -> Option<Reply> {
        match self.api.call(request.ok()?).await {
            Ok(reply) if reply.status.is_success() || reply.status == StatusCode::NOT_FOUND => Some(reply),
            Ok(reply) => {
                tracing::debug!(error = reply.message(), "an event was refused");
                Some(reply)
            }
            Err(lost) => {
                tracing::debug!(error = lost.0, "an event was lost");
                // A server that is away shall not have the queue run into it at full speed.
                tokio::time::sleep(Duration::from_millis(200)).await;
                None
            }
        }
    }
}

/// When it is tried again, if it is.
fn next_try(notice: &Event, now: Timestamp) -> Option<String> {
    Some(wire_time(now.checked_add(notice.again_in?).ok()?))
}

/// Events about objects without a namespace live in `default`.
fn namespace(notice: &Event) -> &str {
    if notice.about.namespace.is_empty() { "default" } else { &notice.about.namespace }
}

fn path(notice: &Event) -> String {
    format!("/api/v1/namespaces/{}/events", namespace(notice))
}

/// A moment, as the API writes it.
pub(crate) fn wire_time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn event(notice: &Event, message: &str, now: Timestamp) -> Value {
    let about = &notice.about;
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": format!("{}.{:x}", about.name, now.as_nanosecond()),
            "namespace": namespace(notice),
            "annotations": next_try(notice, now).map(|moment| json!({Event::NEXT_TRY: moment})),
        },
        "involvedObject": {
            "kind": about.kind.as_str(),
            "apiVersion": about.kind.api_version(),
            "namespace": about.namespace.as_str(),
            "name": about.name.as_str(),
            "uid": notice.meta.uid.as_str(),
            "resourceVersion": notice.meta.version.to_string(),
        },
        "type": notice.event_type.as_str(),
        "reason": notice.reason.as_str(),
        "message": message,
        "count": 1,
        "firstTimestamp": wire_time(now),
        "lastTimestamp": wire_time(now),
        "source": {"component": notice.component},
        "reportingComponent": notice.component,
        "reportingInstance": "",
    })
}
