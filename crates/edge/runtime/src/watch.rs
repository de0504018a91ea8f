//! Watches a kind: the initial list, then changes. An interrupted watch is resumed from the last
//! resourceVersion; the kind is listed again only when the server has compacted that version.
//!
//! The initial list is streamed at the beginning of the watch (`sendInitialEvents`), so that no
//! page of large objects is held in memory. If the server does not support this, the kind is listed
//! in pages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bindery_engine::Input;
use bindery_model::{Kind, Object, ObjectKey};
use futures::StreamExt;
use http::StatusCode;
use kube::api::WatchParams;
use kube::core::WatchEvent;
use kube::core::request::Request as Call;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{sleep, timeout};

use crate::api::Api;
use crate::engine_task::Message;
use crate::list::{ListError, Raw, decode, is_optional, list};
use crate::pending_claims::PendingClaims;

/// The delay before a retry, which doubles up to the maximum.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The delay before retrying a kind that the server does not serve.
const NOT_SERVED: Duration = Duration::from_secs(300);
/// The watch timeout in seconds, after which the server ends the watch.
const LIFETIME: u32 = 290;
/// A watch that is silent for longer than its timeout has lost its connection.
const SILENCE: Duration = Duration::from_secs(LIFETIME as u64 + 20);
/// The annotation of the bookmark after the initial list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Why a watch ended.
enum End {
    /// It was interrupted and can be resumed.
    Interrupted(String),
    /// The resourceVersion is too old (410 Gone): the kind must be listed again.
    Expired,
    /// The engine task has stopped.
    Closed,
}

/// Watches a kind forever and sends every change to the engine, without waiting for it.
pub async fn watch(api: Arc<Api>, kind: Kind, outbox: UnboundedSender<Message>) {
    watch_claims(api, kind, outbox, None).await;
}

/// The same for claims that are kept as received, too.
pub async fn watch_claims(api: Arc<Api>, kind: Kind, outbox: UnboundedSender<Message>, pending: Option<PendingClaims>) {
    let mut watch = Watch { api, kind, outbox, pending, version: None, streams: true };
    let mut wait = WAIT_MIN;
    let mut last_error = String::new();
    loop {
        if watch.version.is_none() && !watch.streams {
            match watch.list().await {
                Ok(()) => last_error.clear(),
                Err(ListError::NotServed) if is_optional(kind) => {
                    tracing::info!(kind = kind.as_str(), "kind not served by the API server, assuming no objects");
                    if !watch.send_empty_list() {
                        return;
                    }
                    sleep(NOT_SERVED).await;
                    continue;
                }
                Err(error) => {
                    let error = error.to_string();
                    if error == last_error {
                        tracing::debug!(kind = kind.as_str(), error, "list failed again, retrying");
                    } else {
                        tracing::warn!(kind = kind.as_str(), error, "list failed, retrying");
                    }
                    last_error = error;
                    sleep(wait).await;
                    wait = (wait * 2).min(WAIT_MAX);
                    continue;
                }
            }
        }
        let before = watch.version.clone();
        match watch.connect().await {
            End::Closed => return,
            // A streaming list cannot be resumed. If it is not supported or fails, pages are used.
            End::Interrupted(why) if watch.version.is_none() => {
                tracing::debug!(kind = kind.as_str(), why, "streaming list failed, listing in pages");
                watch.streams = false;
                continue;
            }
            End::Expired => {
                tracing::debug!(
                    kind = kind.as_str(),
                    version = watch.version,
                    "resourceVersion expired, listing again"
                );
                // If the streaming list itself expires, fall back to pages.
                watch.streams &= watch.version.take().is_some();
            }
            End::Interrupted(why) => {
                tracing::debug!(kind = kind.as_str(), version = watch.version, why, "watch interrupted, resuming");
            }
        }
        // Progress resets the delay. Without progress, the server is not retried in a tight loop.
        if watch.version.is_some() && watch.version != before {
            wait = WAIT_MIN;
        } else {
            sleep(wait).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }
}

struct Watch {
    api: Arc<Api>,
    kind: Kind,
    outbox: UnboundedSender<Message>,
    /// Where unbound claims are kept as received.
    pending: Option<PendingClaims>,
    /// The resourceVersion to resume from; `None` before the initial list.
    version: Option<String>,
    /// Whether the server supports streaming lists, as far as is known. One failure disables them.
    streams: bool,
}

impl Watch {
    async fn list(&mut self) -> Result<(), ListError> {
        let (version, objects) = list(&self.api, self.kind).await?;
        self.listed(version, objects);
        Ok(())
    }

    /// Sends an empty list. Returns false if the engine task has stopped.
    fn send_empty_list(&self) -> bool {
        let empty = Input::Listed { kind: self.kind, version: 0, objects: Vec::new() };
        self.outbox.send(Message::Input(empty)).is_ok()
    }

    fn listed(&mut self, version: String, objects: Vec<Object>) -> bool {
        let kind = self.kind;
        tracing::debug!(kind = kind.as_str(), version, count = objects.len(), "listed");
        let listed = Input::Listed { kind, version: version.parse().unwrap_or(0), objects };
        self.version = Some(version);
        self.outbox.send(Message::Input(listed)).is_ok()
    }

    /// One connection: sends what it delivers, and tracks the resourceVersion to resume from.
    async fn connect(&mut self) -> End {
        // The initial list, while it is streamed.
        let mut initial = self.version.is_none().then(BTreeMap::<ObjectKey, Object>::new);
        if let Some(pending) = self.pending.as_ref().filter(|_| initial.is_some()) {
            pending.clear();
        }
        let params = WatchParams {
            bookmarks: true,
            timeout: Some(LIFETIME),
            send_initial_events: initial.is_some(),
            ..WatchParams::default()
        };
        let request = match Call::new(self.kind.path()).watch(&params, self.version.as_deref().unwrap_or_default()) {
            Ok(request) => request,
            Err(error) => return End::Interrupted(error.to_string()),
        };
        let stream = match timeout(self.api.deadline(), self.api.client().request_events::<Raw>(request)).await {
            Err(_) => return End::Interrupted("no response".into()),
            Ok(Ok(stream)) => stream,
            Ok(Err(kube::Error::Api(status))) if status.code == StatusCode::GONE => return End::Expired,
            Ok(Err(error)) => return End::Interrupted(error.to_string()),
        };
        let mut stream = stream.boxed();
        loop {
            let limit = if initial.is_some() { self.api.deadline() } else { SILENCE };
            let event = match timeout(limit, stream.next()).await {
                // A server that does not know the parameter never sends the final bookmark.
                Err(_) if initial.is_some() => return End::Interrupted("the initial list did not end".into()),
                Err(_) => return End::Interrupted("no event within the watch timeout".into()),
                Ok(None) => return End::Interrupted("the connection was closed".into()),
                Ok(Some(Err(error))) => return End::Interrupted(error.to_string()),
                Ok(Some(Ok(event))) => event,
            };
            self.keep_pending(&event);
            let sent = match (&mut initial, event) {
                (_, WatchEvent::Error(status)) if status.code == StatusCode::GONE => return End::Expired,
                (_, WatchEvent::Error(status)) => return End::Interrupted(status.message),
                (Some(objects), WatchEvent::Bookmark(bookmark)) => {
                    if !bookmark.metadata.annotations.contains_key(INITIAL_EVENTS_END) {
                        continue;
                    }
                    let objects = std::mem::take(objects).into_values().collect();
                    initial = None;
                    self.listed(bookmark.metadata.resource_version, objects)
                }
                (Some(objects), WatchEvent::Added(raw) | WatchEvent::Modified(raw)) => {
                    objects.extend(decode(self.kind, raw.as_ref()).map(|object| (object.key(), object)));
                    continue;
                }
                (Some(objects), WatchEvent::Deleted(raw)) => {
                    decode(self.kind, raw.as_ref()).map(|object| objects.remove(&object.key()));
                    continue;
                }
                (None, event) => self.changed(event),
            };
            if !sent {
                return End::Closed;
            }
        }
    }

    /// Keeps an unbound claim as received.
    fn keep_pending(&self, event: &WatchEvent<Raw>) {
        let Some(pending) = &self.pending else { return };
        match event {
            WatchEvent::Added(raw) | WatchEvent::Modified(raw) => pending.seen(raw.get()),
            WatchEvent::Deleted(raw) => pending.deleted(raw.get()),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        }
    }

    /// Sends a change. Returns false if the engine task has stopped.
    fn changed(&mut self, event: WatchEvent<Raw>) -> bool {
        let kind = self.kind;
        let input = match event {
            WatchEvent::Error(_) => return true,
            WatchEvent::Bookmark(bookmark) => {
                let version = bookmark.metadata.resource_version;
                let input = Input::Bookmark { kind, version: version.parse().unwrap_or(0) };
                self.version = Some(version);
                input
            }
            WatchEvent::Added(raw) | WatchEvent::Modified(raw) => {
                let Some(object) = decode(kind, &raw) else { return true };
                self.advance(&object);
                Input::Watched(object)
            }
            WatchEvent::Deleted(raw) => {
                let Some(object) = decode(kind, &raw) else { return true };
                self.advance(&object);
                Input::Deleted { key: object.key(), version: object.meta().version }
            }
        };
        self.outbox.send(Message::Input(input)).is_ok()
    }

    /// Moves the resume point to an object's version, unless it could not be parsed (0).
    fn advance(&mut self, object: &Object) {
        if object.meta().version != 0 {
            self.version = Some(object.meta().version.to_string());
        }
    }
}
