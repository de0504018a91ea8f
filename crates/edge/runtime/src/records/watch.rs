//! Watches the pages. After any interruption they are listed again: they are few.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::time::{sleep, timeout};

use super::RETRY;
use crate::api::Api;

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
pub(super) async fn watch(api: Arc<Api>, query: String, seen: Sender<Seen>) {
    let mut last_error = String::new();
    loop {
        let error = match connect(&api, &query, &seen).await {
            Ok(()) if seen.is_closed() => return,
            Ok(()) => String::new(),
            Err(error) => error,
        };
        if !error.is_empty() && error != last_error {
            tracing::warn!(error, "watch of provisioning records interrupted, retrying");
        }
        last_error = error;
        sleep(RETRY).await;
    }
}

/// Lists the pages, and reports changes until the watch ends.
async fn connect(api: &Api, query: &str, seen: &Sender<Seen>) -> Result<(), String> {
    let list = api.get(query).await.map_err(|error| error.to_string())?;
    let (version, pages) = list_of(list);
    let from = format!("{query}&watch=1&timeoutSeconds={LIFETIME}&resourceVersion={version}");
    let closed = |_| String::new();
    seen.send(Seen::Listed(version, pages)).await.map_err(closed)?;
    let request = http::Request::get(from).body(Vec::new()).map_err(|error| error.to_string())?;
    let connecting = api.client().request_events::<Value>(request);
    let stream = timeout(api.deadline(), connecting).await.map_err(|_| "no response")?;
    let mut stream = stream.map_err(|error| error.to_string())?.boxed();
    loop {
        let event = timeout(Duration::from_secs(LIFETIME + 20), stream.next()).await;
        let seen_now = match event.map_err(|_| "no event within the watch timeout")? {
            None => return Ok(()),
            Some(Err(error)) => return Err(error.to_string()),
            Some(Ok(WatchEvent::Added(page) | WatchEvent::Modified(page))) => Seen::Page(page),
            Some(Ok(WatchEvent::Deleted(page))) => {
                Seen::Deleted(page["metadata"]["name"].as_str().unwrap_or_default().to_owned(), version_of(&page))
            }
            Some(Ok(WatchEvent::Bookmark(_))) => continue,
            Some(Ok(WatchEvent::Error(status))) => return Err(status.message),
        };
        seen.send(seen_now).await.map_err(closed)?;
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
