//! Observes claims becoming Bound, with a watch on claims and one on volumes; nothing is polled.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::cluster::{CANARY, CLAIMS, VOLUMES};
use super::process::cpu_seconds;

/// The observed part of an object.
#[derive(Clone, Deserialize)]
struct Lean {
    metadata: Meta,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    name: String,
    resource_version: String,
}

#[derive(Clone, Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
}

#[derive(Deserialize)]
struct List {
    metadata: ListMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
}

/// An observed change.
struct Seen {
    at: Instant,
    /// The claim that is now Bound; of other changes only the time matters.
    bound: Option<String>,
}

/// Observes changes from its creation on.
pub struct Witness {
    seen: UnboundedReceiver<Seen>,
}

/// The observations of a run.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// The number of claims that became Bound, without the canary.
    pub bound: usize,
    /// The first change of an object.
    pub first: Instant,
    /// When the last claim became Bound.
    pub last: Instant,
    /// The process's processor time at that moment.
    pub cpu: f64,
}

impl Witness {
    /// Starts the watches.
    pub async fn start(client: &Client) -> Result<Self, String> {
        let (send, seen) = unbounded_channel();
        for path in [CLAIMS, VOLUMES] {
            let version = version(client, path).await?;
            tokio::spawn(watch(client.clone(), path, version, send.clone()));
        }
        Ok(Self { seen })
    }

    /// Waits until the canary is Bound, which shows that the binder has started.
    pub async fn canary(&mut self, at_most: Duration) -> Result<(), String> {
        let bound = async {
            while let Some(seen) = self.seen.recv().await {
                if seen.bound.as_deref() == Some(CANARY) {
                    return;
                }
            }
        };
        timeout(at_most, bound).await.map_err(|_| format!("the canary claim is not bound after {at_most:?}"))
    }

    /// Waits until this many claims are Bound, or until none has become Bound for `patience`.
    pub async fn wait(mut self, claims: usize, patience: Duration, pid: u32, progress: impl Fn(usize)) -> Sight {
        let start = Instant::now();
        let mut sight = Sight { bound: 0, first: start, last: start, cpu: 0.0 };
        let mut bound = HashSet::new();
        let mut is_first = true;
        let mut give_up_at = tokio::time::Instant::now() + patience;
        while bound.len() < claims {
            let Ok(Some(seen)) = tokio::time::timeout_at(give_up_at, self.seen.recv()).await else { break };
            if std::mem::take(&mut is_first) {
                sight.first = seen.at;
            }
            if let Some(claim) = seen.bound.filter(|claim| claim != CANARY)
                && bound.insert(claim)
            {
                give_up_at = tokio::time::Instant::now() + patience;
                (sight.last, sight.cpu) = (seen.at, cpu_seconds(pid));
                progress(bound.len());
            }
        }
        sight.bound = bound.len();
        sight
    }
}

async fn version(client: &Client, path: &str) -> Result<String, String> {
    let request = http::Request::get(format!("{path}?limit=1")).body(Vec::new()).map_err(|error| error.to_string())?;
    let list: List = client.request(request).await.map_err(|error| format!("{path}: {error}"))?;
    Ok(list.metadata.resource_version)
}

/// Watches until the process ends. The API server closes the watch of a slow client; it is resumed.
async fn watch(client: Client, path: &'static str, mut version: String, sender: UnboundedSender<Seen>) {
    while !sender.is_closed() {
        let url = format!("{path}?watch=1&resourceVersion={version}");
        let Ok(request) = http::Request::get(url).body(Vec::new()) else { return };
        match client.request_events::<Lean>(request).await {
            Ok(stream) => follow(stream.boxed(), path, &mut version, &sender).await,
            Err(error) => {
                eprintln!("bench: cannot watch {path}: {error}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn follow(
    mut stream: impl futures::Stream<Item = kube::Result<WatchEvent<Lean>>> + Unpin,
    path: &str,
    version: &mut String,
    sender: &UnboundedSender<Seen>,
) {
    while let Some(Ok(event)) = stream.next().await {
        let (object, is_change) = match event {
            WatchEvent::Modified(object) => (object, true),
            WatchEvent::Added(object) | WatchEvent::Deleted(object) => (object, false),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(_) => return,
        };
        *version = object.metadata.resource_version;
        if is_change {
            let bound = (path == CLAIMS && object.status.phase == "Bound").then_some(object.metadata.name);
            if sender.send(Seen { at: Instant::now(), bound }).is_err() {
                return;
            }
        }
    }
}
