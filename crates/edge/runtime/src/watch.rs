//! Watches a kind: the initial list, then changes. An interrupted watch is resumed from the last
//! resourceVersion; the kind is listed again only when the server has compacted that version.
//!
//! The initial list is streamed at the beginning of the watch (`sendInitialEvents`), so that no
//! page of large objects is held in memory. If streaming fails, the kind is listed in pages this
//! time; if the server does not support it, for as long as it may take to upgrade the server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bindery_model::{Kind, Object, ObjectKey};
use futures::StreamExt;
use http::StatusCode;
use kube::api::WatchParams;
use kube::core::WatchEvent;
use kube::core::request::Request as Call;
use tokio::time::{Instant, sleep, timeout};

use crate::api::Api;
use crate::change_queue::{ChangeSender, WatchedChange};
use crate::connection_error::connection_error;
use crate::list::{ListError, Raw, decode, is_optional, list};
use crate::pending_claims::PendingClaims;
use crate::watch_status::{WatchError, WatchStatus};

/// The delay before a retry, which doubles up to the maximum.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The delay before retrying a kind that the server does not serve.
const NOT_SERVED: Duration = Duration::from_secs(300);
/// How long a server that does not support streaming lists is not asked for one.
const STREAM_AGAIN: Duration = Duration::from_secs(3600);
/// The watch timeout in seconds, after which the server ends the watch.
const LIFETIME: u32 = 290;
/// A watch that is silent for longer than its timeout has lost its connection.
const SILENCE: Duration = Duration::from_secs(LIFETIME as u64 + 20);
/// The annotation of the bookmark after the initial list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Why a watch ended.
#[derive(Debug)]
enum End {
    /// The server ended it: after its timeout, or because this client was too slow.
    Ended,
    /// It was interrupted and can be resumed.
    Interrupted(WatchError),
    /// The server does not support streaming lists.
    CannotStream(WatchError),
    /// The resourceVersion is too old (410 Gone): the kind must be listed again.
    Expired,
    /// The engine task has stopped.
    Closed,
}

/// How the next list is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// Streamed.
    Stream,
    /// In pages, because streaming has just failed. The next one is streamed again.
    PagesOnce,
    /// In pages until this time, because the server does not support streaming.
    PagesUntil(Instant),
}

impl Listing {
    fn streams(self, now: Instant) -> bool {
        match self {
            Listing::Stream => true,
            Listing::PagesOnce => false,
            Listing::PagesUntil(until) => now >= until,
        }
    }

    /// After a list in pages.
    fn listed(self) -> Listing {
        match self {
            Listing::Stream | Listing::PagesOnce => Listing::Stream,
            Listing::PagesUntil(until) => Listing::PagesUntil(until),
        }
    }
}

/// Watches a kind forever and sends every change, without waiting for the receiver.
pub async fn watch(api: Arc<Api>, kind: Kind, outbox: ChangeSender, status: WatchStatus) {
    watch_claims(api, kind, outbox, status, None).await;
}

/// The same for claims that are kept as received, too.
pub async fn watch_claims(
    api: Arc<Api>,
    kind: Kind,
    outbox: ChangeSender,
    status: WatchStatus,
    pending: Option<PendingClaims>,
) {
    status.started(kind);
    let mut watch = Watch { api, kind, outbox, status, pending, version: None, listing: Listing::Stream };
    let mut wait = WAIT_MIN;
    loop {
        if watch.version.is_none() && !watch.listing.streams(Instant::now()) {
            match watch.list().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(ListError::NotServed) if is_optional(kind) => {
                    tracing::info!(kind = kind.as_str(), "kind not served by the API server, assuming no objects");
                    if !watch.send_empty_list() {
                        return;
                    }
                    sleep(NOT_SERVED).await;
                    continue;
                }
                Err(error) => {
                    let is_refused = matches!(error, ListError::Refused(_));
                    watch.failed(WatchError { message: error.to_string(), is_refused }, "list failed, retrying");
                    sleep(wait).await;
                    wait = (wait * 2).min(WAIT_MAX);
                    continue;
                }
            }
        }
        let before = watch.version.clone();
        match watch.connect().await {
            End::Closed => return,
            // A streaming list cannot be resumed.
            End::CannotStream(why) => {
                tracing::info!(
                    kind = kind.as_str(),
                    why = why.message,
                    "streaming list not supported, listing in pages"
                );
                watch.listing = Listing::PagesUntil(Instant::now() + STREAM_AGAIN);
                continue;
            }
            End::Interrupted(why) if watch.version.is_none() => {
                tracing::debug!(kind = kind.as_str(), why = why.message, "streaming list failed, listing in pages");
                watch.listing = Listing::PagesOnce;
                continue;
            }
            End::Expired => {
                tracing::debug!(
                    kind = kind.as_str(),
                    version = watch.version,
                    "resourceVersion expired, listing again"
                );
                // If the streaming list itself expires, fall back to pages.
                if watch.version.take().is_none() {
                    watch.listing = Listing::PagesOnce;
                }
            }
            End::Ended => {
                let error = "the server ended the watch";
                tracing::debug!(kind = kind.as_str(), version = watch.version, error, "watch interrupted, resuming");
            }
            End::Interrupted(why) => watch.failed(why, "watch interrupted, resuming"),
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
    outbox: ChangeSender,
    status: WatchStatus,
    /// Where unbound claims are kept as received.
    pending: Option<PendingClaims>,
    /// The resourceVersion to resume from; `None` before the initial list.
    version: Option<String>,
    listing: Listing,
}

impl Watch {
    /// Lists in pages. Returns false if the engine task has stopped.
    async fn list(&mut self) -> Result<bool, ListError> {
        let (version, objects) = list(&self.api, self.kind).await?;
        self.listing = self.listing.listed();
        Ok(self.listed(version, objects))
    }

    /// Records and logs an error: a new one, or one that lasts, as a warning.
    fn failed(&self, error: WatchError, what: &'static str) {
        let (kind, version) = (self.kind.as_str(), &self.version);
        match self.status.failed(self.kind, error.clone()) {
            true => tracing::warn!(kind, version, error = error.message, "{what}"),
            false => tracing::debug!(kind, version, error = error.message, "{what}"),
        }
    }

    /// Sends an empty list. Returns false if the engine task has stopped.
    fn send_empty_list(&self) -> bool {
        self.status.not_served(self.kind);
        self.outbox.send(WatchedChange::Listed(self.kind, 0, Vec::new()))
    }

    fn listed(&mut self, version: String, objects: Vec<Object>) -> bool {
        tracing::debug!(kind = self.kind.as_str(), version, count = objects.len(), "listed");
        self.status.is_current(self.kind);
        let listed = WatchedChange::Listed(self.kind, version.parse().unwrap_or(0), objects);
        self.version = Some(version);
        self.outbox.send(listed)
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
            Err(error) => return interrupted(error.to_string()),
        };
        let stream = match timeout(self.api.deadline(), self.api.client().request_events::<Raw>(request)).await {
            Err(_) => return interrupted("no response"),
            Ok(Ok(stream)) => stream,
            Ok(Err(kube::Error::Api(status))) => return refused(status.code, status.message, initial.is_some()),
            Ok(Err(error)) => return interrupted(connection_error(&error)),
        };
        if initial.is_none() {
            self.status.resumed(self.kind);
        }
        let mut stream = stream.boxed();
        loop {
            let limit = if initial.is_some() { self.api.deadline() } else { SILENCE };
            let event = match timeout(limit, stream.next()).await {
                // A server that does not know the parameter never sends the final bookmark.
                Err(_) if initial.is_some() => return End::CannotStream(error("the initial list did not end")),
                Err(_) => return interrupted("no event within the watch timeout"),
                Ok(None) if initial.is_some() => return interrupted("the connection was closed"),
                Ok(None) => return End::Ended,
                Ok(Some(Err(error))) => return interrupted(connection_error(&error)),
                Ok(Some(Ok(event))) => event,
            };
            self.keep_pending(&event);
            let sent = match (&mut initial, event) {
                (_, WatchEvent::Error(status)) => return refused(status.code, status.message, false),
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
        self.status.is_current(self.kind);
        let kind = self.kind;
        let change = match event {
            WatchEvent::Error(_) => return true,
            WatchEvent::Bookmark(bookmark) => {
                let version = bookmark.metadata.resource_version;
                let change = WatchedChange::Bookmark(kind, version.parse().unwrap_or(0));
                self.version = Some(version);
                change
            }
            WatchEvent::Added(raw) | WatchEvent::Modified(raw) => {
                let Some(object) = decode(kind, &raw) else { return true };
                self.advance(&object);
                WatchedChange::Changed(object)
            }
            WatchEvent::Deleted(raw) => {
                let Some(object) = decode(kind, &raw) else { return true };
                self.advance(&object);
                WatchedChange::Deleted(object.key(), object.meta().version)
            }
        };
        self.outbox.send(change)
    }

    /// Moves the resume point to an object's version, unless it could not be parsed (0).
    fn advance(&mut self, object: &Object) {
        if object.meta().version != 0 {
            self.version = Some(object.meta().version.to_string());
        }
    }
}

fn error(message: impl Into<String>) -> WatchError {
    WatchError { message: message.into(), is_refused: false }
}

fn interrupted(message: impl Into<String>) -> End {
    End::Interrupted(error(message))
}

/// The meaning of an error response to a watch, or to one that begins with a list.
fn refused(code: u16, message: String, is_streaming_list: bool) -> End {
    let is_refused = code == StatusCode::UNAUTHORIZED || code == StatusCode::FORBIDDEN;
    let error = WatchError { message, is_refused };
    if code == StatusCode::GONE {
        End::Expired
    } else if is_streaming_list && (code == StatusCode::BAD_REQUEST || code == StatusCode::UNPROCESSABLE_ENTITY) {
        // Servers without the feature call the parameter invalid.
        End::CannotStream(error)
    } else {
        End::Interrupted(error)
    }
}
