//! Watching a kind: everything that stands, then what changes, resumed from where it broke off; everything anew only when the
//! server has forgotten.
//!
//! What stands comes as the beginning of the watch itself (a streaming list), one object at a time, so that no page of large
//! objects is ever in memory; from a server that has no streaming lists it is listed in pages.

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
use crate::list::{Raw, Unlisted, decode, is_optional, list};

/// How long to wait before trying again what failed, doubled each time up to the most.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How long to wait before a server is asked again for a kind that it does not serve.
const NOT_SERVED: Duration = Duration::from_secs(300);
/// How long a watch lives at most, in seconds: then the server ends it.
const LIFETIME: u32 = 290;
/// A watch that has told nothing for longer than it may live is one whose end was lost with its connection.
const SILENCE: Duration = Duration::from_secs(LIFETIME as u64 + 20);
/// The bookmark that ends what stood when the watch began.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Why a watch ended.
enum End {
    /// It broke off, and is resumed.
    Broken(String),
    /// The server has forgotten where we were: everything is read again.
    Forgotten,
    /// NoObserver listens any more.
    Deaf,
}

/// Watches a kind for ever, and tells all of it. Reading never waits for whoever listens.
pub async fn watch(api: Arc<Api>, kind: Kind, tell: UnboundedSender<Message>) {
    let mut watch = Watch { api, kind, tell, version: None, streams: true };
    let mut wait = WAIT_MIN;
    loop {
        if watch.version.is_none() && !watch.streams {
            match watch.list().await {
                Ok(()) => {}
                Err(Unlisted::NotServed) if is_optional(kind) => {
                    tracing::info!(kind = kind.as_str(), "the server does not serve this kind: there are none");
                    if !watch.tell_none() {
                        return;
                    }
                    sleep(NOT_SERVED).await;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(kind = kind.as_str(), %error, "cannot list");
                    sleep(wait).await;
                    wait = (wait * 2).min(WAIT_MAX);
                    continue;
                }
            }
        }
        let before = watch.version.clone();
        match watch.connect().await {
            End::Deaf => return,
            // A streaming list is had as a whole or not at all. Where there is none, or it fails, pages are had one by one.
            End::Broken(why) if watch.version.is_none() => {
                tracing::debug!(kind = kind.as_str(), why, "no streaming list: it is listed in pages");
                watch.streams = false;
                continue;
            }
            End::Forgotten => {
                tracing::debug!(
                    kind = kind.as_str(),
                    version = watch.version,
                    "the server has forgotten where the watch was"
                );
                // A server that forgets what it is just telling is not asked to tell it so again.
                watch.streams &= watch.version.take().is_some();
            }
            End::Broken(why) => {
                tracing::debug!(
                    kind = kind.as_str(),
                    version = watch.version,
                    why,
                    "the watch broke off, and is resumed"
                );
            }
        }
        // A watch that told something was a good one. A server that tells nothing, or forgets at once what it has told, is
        // not to be asked again and again.
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
    tell: UnboundedSender<Message>,
    /// Up to where what was told is complete. None before anything was.
    version: Option<String>,
    /// Whether the server begins a watch with what stands, for all that is known. A try that failed ends it for good.
    streams: bool,
}

impl Watch {
    async fn list(&mut self) -> Result<(), Unlisted> {
        let (version, objects) = list(&self.api, self.kind).await?;
        self.listed(version, objects);
        Ok(())
    }

    /// Tells that there is no object of the kind. False when nobody listens any more.
    fn tell_none(&self) -> bool {
        let none = Input::Listed { kind: self.kind, version: 0, objects: Vec::new() };
        self.tell.send(Message::Happened(none)).is_ok()
    }

    fn listed(&mut self, version: String, objects: Vec<Object>) -> bool {
        let kind = self.kind;
        tracing::debug!(kind = kind.as_str(), version, count = objects.len(), "listed");
        let listed = Input::Listed { kind, version: version.parse().unwrap_or(0), objects };
        self.version = Some(version);
        self.tell.send(Message::Happened(listed)).is_ok()
    }

    /// One connection: tells what it delivers, and keeps the version up to which it is complete.
    async fn connect(&mut self) -> End {
        // What stands, as long as it is being told.
        let mut standing = self.version.is_none().then(BTreeMap::<ObjectKey, Object>::new);
        let params = WatchParams {
            bookmarks: true,
            timeout: Some(LIFETIME),
            send_initial_events: standing.is_some(),
            ..WatchParams::default()
        };
        let request = match Call::new(self.kind.path()).watch(&params, self.version.as_deref().unwrap_or_default()) {
            Ok(request) => request,
            Err(error) => return End::Broken(error.to_string()),
        };
        let stream = match timeout(self.api.deadline(), self.api.client().request_events::<Raw>(request)).await {
            Err(_) => return End::Broken("it was not answered".into()),
            Ok(Ok(stream)) => stream,
            Ok(Err(kube::Error::Api(status))) if status.code == StatusCode::GONE => return End::Forgotten,
            Ok(Err(error)) => return End::Broken(error.to_string()),
        };
        let mut stream = stream.boxed();
        loop {
            let patience = if standing.is_some() { self.api.deadline() } else { SILENCE };
            let event = match timeout(patience, stream.next()).await {
                // Who does not know the parameter never says where the list ends.
                Err(_) if standing.is_some() => return End::Broken("what stands does not end".into()),
                Err(_) => return End::Broken("it fell silent".into()),
                Ok(None) => return End::Broken("it ended".into()),
                Ok(Some(Err(error))) => return End::Broken(error.to_string()),
                Ok(Some(Ok(event))) => event,
            };
            let told = match (&mut standing, event) {
                (_, WatchEvent::Error(status)) if status.code == StatusCode::GONE => return End::Forgotten,
                (_, WatchEvent::Error(status)) => return End::Broken(status.message),
                (Some(objects), WatchEvent::Bookmark(bookmark)) => {
                    if !bookmark.metadata.annotations.contains_key(INITIAL_EVENTS_END) {
                        continue;
                    }
                    let objects = std::mem::take(objects).into_values().collect();
                    standing = None;
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
            if !told {
                return End::Deaf;
            }
        }
    }

    /// Tells of a change. False when nobody listens any more.
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
                Input::Gone { key: object.key(), version: object.meta().version }
            }
        };
        self.tell.send(Message::Happened(input)).is_ok()
    }

    /// Notes that what was told is complete up to an object's version. One that cannot be read (0) says nothing.
    fn advance(&mut self, object: &Object) {
        if object.meta().version != 0 {
            self.version = Some(object.meta().version.to_string());
        }
    }
}
