//! Watching a kind: a list, then what changes, resumed from where it broke off; a new list only when the server has forgotten.

use std::sync::Arc;
use std::time::Duration;

use bindery_engine::Input;
use bindery_volumes::{Kind, Object};
use futures::StreamExt;
use http::StatusCode;
use kube::api::{ListParams, WatchParams};
use kube::core::WatchEvent;
use kube::core::request::Request as Call;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{sleep, timeout};

use crate::api::Api;
use crate::brain::Message;
use crate::paths;

/// How many objects are listed at a time: enough to be quick, few enough that a page of large ones is not a burden.
const PAGE: u32 = 500;
/// How long to wait before trying again what failed, doubled each time up to the most.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How long a watch lives at most, in seconds: then the server ends it.
const LIFETIME: u32 = 290;
/// A watch that has told nothing for longer than it may live is one whose end was lost with its connection.
const SILENCE: Duration = Duration::from_secs(LIFETIME as u64 + 20);

/// An object as the server wrote it. Decoded once, into what rules read; the rest is never kept.
type Raw = Box<RawValue>;

#[derive(Deserialize)]
struct Page {
    metadata: PageMeta,
    #[serde(default)]
    items: Vec<Raw>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    #[serde(default)]
    r#continue: String,
}

/// Why a watch ended.
enum End {
    /// It broke off, and is resumed.
    Broken(String),
    /// The server has forgotten where we were: everything is listed again.
    Forgotten,
    /// Nobody listens any more.
    Deaf,
}

/// Watches a kind for ever, and tells all of it. Reading never waits for whoever listens.
pub async fn watch(api: Arc<Api>, kind: Kind, tell: UnboundedSender<Message>) {
    let mut wait = WAIT_MIN;
    loop {
        match list(&api, kind).await {
            Ok((mut version, objects)) => {
                tracing::debug!(kind = kind.as_str(), version, count = objects.len(), "listed");
                let listed = Input::Listed { kind, version: version.parse().unwrap_or(0), objects };
                if tell.send(Message::Happened(listed)).is_err() {
                    return;
                }
                let listed = version.clone();
                if follow(&api, kind, &mut version, &tell).await.is_none() {
                    return;
                }
                if version != listed {
                    wait = WAIT_MIN;
                    continue;
                }
                // A server that forgets at once what it has listed is not to be asked for everything again and again.
                sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
            Err(error) => {
                tracing::warn!(kind = kind.as_str(), error, "cannot list");
                sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
        }
    }
}

/// Lists all objects of a kind, and the version that the list is of.
pub async fn list(api: &Api, kind: Kind) -> Result<(String, Vec<Object>), String> {
    let mut objects = Vec::new();
    let mut params = ListParams { limit: Some(PAGE), ..ListParams::default() };
    loop {
        let request = Call::new(paths::all(kind)).list(&params).map_err(|error| error.to_string())?;
        let reply = api.call(request).await.map_err(|lost| lost.0)?;
        if !reply.status.is_success() {
            return Err(reply.message());
        }
        let page: Page = serde_json::from_slice(&reply.body).map_err(|error| error.to_string())?;
        objects.extend(page.items.iter().filter_map(|raw| decode(kind, raw)));
        if page.metadata.r#continue.is_empty() {
            return Ok((page.metadata.resource_version, objects));
        }
        params.continue_token = Some(page.metadata.r#continue);
    }
}

/// Follows what changes after a version, over as many connections as it takes. `None` when nobody listens any more; else the
/// server has forgotten the version.
async fn follow(api: &Api, kind: Kind, version: &mut String, tell: &UnboundedSender<Message>) -> Option<()> {
    let mut wait = WAIT_MIN;
    loop {
        let before = version.clone();
        match connect(api, kind, version, tell).await {
            End::Deaf => return None,
            End::Forgotten => {
                tracing::debug!(kind = kind.as_str(), version, "the server has forgotten where the watch was");
                return Some(());
            }
            End::Broken(why) => {
                tracing::debug!(kind = kind.as_str(), version, why, "the watch broke off, and is resumed");
                // A watch that told something was a good one.
                wait = if *version == before { (wait * 2).min(WAIT_MAX) } else { WAIT_MIN };
                if *version == before {
                    sleep(wait).await;
                }
            }
        }
    }
}

/// One connection: tells what it delivers, and keeps the version up to which it is complete.
async fn connect(api: &Api, kind: Kind, version: &mut String, tell: &UnboundedSender<Message>) -> End {
    let params = WatchParams { bookmarks: true, timeout: Some(LIFETIME), ..WatchParams::default() };
    let request = match Call::new(paths::all(kind)).watch(&params, version) {
        Ok(request) => request,
        Err(error) => return End::Broken(error.to_string()),
    };
    let stream = match timeout(api.deadline(), api.client().request_events::<Raw>(request)).await {
        Err(_) => return End::Broken("it was not answered".into()),
        Ok(Ok(stream)) => stream,
        Ok(Err(kube::Error::Api(status))) if status.code == StatusCode::GONE.as_u16() => return End::Forgotten,
        Ok(Err(error)) => return End::Broken(error.to_string()),
    };
    let mut stream = stream.boxed();
    loop {
        let Ok(next) = timeout(SILENCE, stream.next()).await else { return End::Broken("it fell silent".into()) };
        let input = match next {
            None => return End::Broken("it ended".into()),
            Some(Err(error)) => return End::Broken(error.to_string()),
            Some(Ok(WatchEvent::Error(status))) if status.code == StatusCode::GONE.as_u16() => return End::Forgotten,
            Some(Ok(WatchEvent::Error(status))) => return End::Broken(status.message),
            Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                *version = bookmark.metadata.resource_version;
                Input::Bookmark { kind, version: version.parse().unwrap_or(0) }
            }
            Some(Ok(WatchEvent::Added(raw) | WatchEvent::Modified(raw))) => match decode(kind, &raw) {
                Some(object) => {
                    advance(version, &object);
                    Input::Watched(object)
                }
                None => continue,
            },
            Some(Ok(WatchEvent::Deleted(raw))) => match decode(kind, &raw) {
                Some(object) => {
                    advance(version, &object);
                    Input::Gone { key: object.key(), version: object.meta().version }
                }
                None => continue,
            },
        };
        if tell.send(Message::Happened(input)).is_err() {
            return End::Deaf;
        }
    }
}

/// Notes that the watch is complete up to an object's version. One that cannot be read (0) says nothing.
fn advance(version: &mut String, object: &Object) {
    if object.meta().version != 0 {
        *version = object.meta().version.to_string();
    }
}

/// Decodes an object. One without a name is left out, and said so; it stops nobody else.
fn decode(kind: Kind, raw: &RawValue) -> Option<Object> {
    Object::from_json(kind, raw.get().as_bytes())
        .inspect_err(|flaw| tracing::warn!(kind = kind.as_str(), %flaw, "an object cannot be read, and is left out"))
        .ok()
}
