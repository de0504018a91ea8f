//! Watches the pages. After any interruption they are listed again: they are few.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};

use super::RETRY;
use super::pages::KIND;
use crate::api::{Api, GetError};
use crate::connection_error::connection_error;
use crate::watch_status::{WatchError, WatchStatus};

/// The watch timeout in seconds, after which the server ends the watch.
const LIFETIME: u64 = 290;

/// What was seen of the pages.
pub(super) enum Seen {
    /// All of them, at a version.
    Listed(u64, Vec<Value>),
    /// One was created or changed.
    Page(Value),
    /// One was deleted at a version.
    Deleted(String, u64),
}

/// Watches pages forever. `query` is the path of the collection with a label selector.
pub(super) async fn watch(api: Arc<Api>, query: String, seen: Sender<Seen>, status: WatchStatus) {
    status.started(KIND);
    loop {
        match connect(&api, &query, &seen, &status).await {
            _ if seen.is_closed() => return,
            Ok(()) => {}
            Err(error) => {
                let message = error.message.clone();
                if status.failed(KIND, error) {
                    tracing::warn!(error = message, "watch of provisioning records interrupted, retrying");
                }
            }
        }
        sleep(RETRY).await;
    }
}

fn interrupted(error: impl Into<String>) -> WatchError {
    WatchError { message: error.into(), is_refused: false }
}

/// Lists the pages, and reports changes until the watch ends.
async fn connect(api: &Api, query: &str, seen: &Sender<Seen>, status: &WatchStatus) -> Result<(), WatchError> {
    let list = api.get(query).await.map_err(|error| match error {
        GetError::Rejected(401 | 403, message) => WatchError { message, is_refused: true },
        error @ (GetError::NotFound(_) | GetError::Rejected(..) | GetError::Lost(_)) => interrupted(error.to_string()),
    })?;
    let (version, pages) = list_of(list);
    let parameters = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={LIFETIME}&resourceVersion={version}");
    let closed = |_| interrupted("the engine has stopped");
    seen.send(Seen::Listed(version, pages)).await.map_err(closed)?;
    status.is_current(KIND);
    let request = http::Request::get(format!("{query}&{parameters}")).body(Vec::new());
    let request = request.map_err(|error| interrupted(error.to_string()))?;
    let connecting = timeout(api.deadline(), api.client().request_events::<Value>(request)).await;
    let stream = connecting.map_err(|_| interrupted("no response"))?;
    let mut stream = stream.map_err(|error| interrupted(connection_error(&error)))?.boxed();
    loop {
        let event = timeout(Duration::from_secs(LIFETIME + 20), stream.next()).await;
        let event = match event.map_err(|_| interrupted("no event within the watch timeout"))? {
            None => return Ok(()),
            Some(Err(error)) => return Err(interrupted(connection_error(&error))),
            Some(Ok(event)) => event,
        };
        let seen_now = match event {
            WatchEvent::Added(page) | WatchEvent::Modified(page) => Some(Seen::Page(page)),
            WatchEvent::Deleted(page) => {
                let name = page["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                Some(Seen::Deleted(name, version_of(&page)))
            }
            WatchEvent::Bookmark(_) => None,
            WatchEvent::Error(status) => return Err(interrupted(status.message)),
        };
        status.is_current(KIND);
        if let Some(seen_now) = seen_now {
            seen.send(seen_now).await.map_err(closed)?;
        }
    }
}

/// The version and the items of a list.
pub(super) fn list_of(mut list: Value) -> (u64, Vec<Value>) {
    let version = version_of(&list);
    (version, list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok()).unwrap_or(0)
}
