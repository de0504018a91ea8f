//! The history of a cluster: every revision of its volumes and claims, recorded by watches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;

/// A recorded kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Volume,
    Claim,
}

impl Kind {
    fn path(self) -> &'static str {
        match self {
            Kind::Volume => "/api/v1/persistentvolumes",
            Kind::Claim => "/api/v1/persistentvolumeclaims",
        }
    }
}

/// The fields of a volume or claim that the promises depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub name: String,
    pub uid: String,
    pub version: u64,
    pub phase: String,
    /// A volume's capacity or a claim's request, in GiB.
    pub gib: u64,
    /// The UID in a volume's claimRef.
    pub claim: String,
    /// A claim's volumeName.
    pub volume: String,
}

impl Seen {
    fn of(object: &Value) -> Seen {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let size = text("/spec/capacity/storage") + &text("/spec/resources/requests/storage");
        Seen {
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            version: text("/metadata/resourceVersion").parse().expect("a revision is a number"),
            phase: text("/status/phase"),
            gib: size.trim_end_matches("Gi").parse().expect("sizes are in Gi"),
            claim: text("/spec/claimRef/uid"),
            volume: text("/spec/volumeName"),
        }
    }
}

/// One revision of one object.
#[derive(Debug, Clone)]
pub struct Revision {
    pub kind: Kind,
    pub is_deleted: bool,
    pub seen: Seen,
}

#[derive(Default)]
struct Book {
    revisions: Vec<Revision>,
    now: BTreeMap<(Kind, String), Seen>,
    /// How often a watch expired before its revisions were read.
    gaps: usize,
}

impl Book {
    fn enter(&mut self, kind: Kind, is_deleted: bool, seen: Seen) {
        let key = (kind, seen.name.clone());
        match is_deleted {
            true => self.now.remove(&key),
            false => self.now.insert(key, seen.clone()),
        };
        self.revisions.push(Revision { kind, is_deleted, seen });
    }

    /// Enters the objects listed after a gap; objects that are not listed have been deleted.
    fn enter_list(&mut self, kind: Kind, version: u64, objects: Vec<Seen>) {
        let is_listed = |name: &str| objects.iter().any(|object| object.name == name);
        let is_deleted = |(of, name): &(Kind, String)| *of == kind && !is_listed(name);
        let gone: Vec<Seen> =
            self.now.iter().filter(|(key, _)| is_deleted(key)).map(|(_, seen)| seen.clone()).collect();
        for seen in gone {
            self.enter(kind, true, Seen { version, ..seen });
        }
        for seen in objects {
            if self.now.get(&(kind, seen.name.clone())) != Some(&seen) {
                self.enter(kind, false, seen);
            }
        }
    }
}

/// Records until it is dropped.
pub struct History {
    book: Arc<Mutex<Book>>,
    _recorders: JoinSet<()>,
}

#[derive(Deserialize)]
struct List {
    metadata: ListMeta,
    items: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
}

impl History {
    /// Starts recording. Start before the first object is created to record the complete history.
    pub fn record(client: &Client) -> History {
        let book = Arc::new(Mutex::new(Book::default()));
        let mut recorders = JoinSet::new();
        for kind in [Kind::Volume, Kind::Claim] {
            recorders.spawn(record(client.clone(), kind, Arc::clone(&book)));
        }
        History { book, _recorders: recorders }
    }

    /// The number of revisions.
    pub fn len(&self) -> usize {
        self.book.lock().expect("not poisoned").revisions.len()
    }

    /// The number of gaps.
    pub fn gaps(&self) -> usize {
        self.book.lock().expect("not poisoned").gaps
    }

    /// Every revision, in order.
    pub fn revisions(&self) -> Vec<Revision> {
        let mut revisions = self.book.lock().expect("not poisoned").revisions.clone();
        revisions.sort_by_key(|revision| revision.seen.version);
        revisions
    }

    /// The newest revision of every existing object of a kind.
    pub fn now(&self, kind: Kind) -> Vec<Seen> {
        let book = self.book.lock().expect("not poisoned");
        book.now.iter().filter(|((of, _), _)| *of == kind).map(|(_, seen)| seen.clone()).collect()
    }

    /// The number of volumes or claims in a phase.
    pub fn count(&self, kind: Kind, phase: &str) -> usize {
        let book = self.book.lock().expect("not poisoned");
        book.now.iter().filter(|((of, _), seen)| *of == kind && seen.phase == phase).count()
    }
}

/// Lists a kind, with the revision of the list.
pub async fn list(client: &Client, kind: Kind) -> Result<(String, Vec<Seen>), kube::Error> {
    let request = http::Request::get(kind.path()).body(Vec::new()).expect("a request");
    let list: List = client.request(request).await?;
    Ok((list.metadata.resource_version, list.items.iter().map(Seen::of).collect()))
}

async fn record(client: Client, kind: Kind, book: Arc<Mutex<Book>>) {
    let (mut version, mut lists) = (None, 0);
    loop {
        let from = match version.take() {
            Some(from) => from,
            None => match list(&client, kind).await {
                Ok((at, objects)) => {
                    let mut book = book.lock().expect("not poisoned");
                    book.enter_list(kind, at.parse().expect("a revision"), objects);
                    book.gaps += usize::from(lists > 0);
                    lists += 1;
                    at
                }
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        version = follow(&client, kind, from, &book).await;
        if version.is_some() {
            // Pause before reconnecting, in case the server is down.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Records one watch. Returns the last revision, or `None` if the watch has expired.
async fn follow(client: &Client, kind: Kind, from: String, book: &Mutex<Book>) -> Option<String> {
    let path = format!("{}?watch=1&allowWatchBookmarks=true&resourceVersion={from}", kind.path());
    let request = http::Request::get(path).body(Vec::new()).expect("a request");
    let mut events = match client.request_events::<Value>(request).await {
        Ok(events) => events.boxed(),
        Err(kube::Error::Api(status)) if status.code == 410 => return None,
        Err(_) => return Some(from),
    };
    let mut at = from;
    while let Some(event) = events.next().await {
        let (is_deleted, object) = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (false, object),
            Ok(WatchEvent::Deleted(object)) => (true, object),
            Ok(WatchEvent::Bookmark(bookmark)) => {
                at = bookmark.metadata.resource_version;
                continue;
            }
            Ok(WatchEvent::Error(status)) if status.code == 410 => return None,
            Ok(WatchEvent::Error(_)) | Err(_) => return Some(at),
        };
        let seen = Seen::of(&object);
        at = seen.version.to_string();
        book.lock().expect("not poisoned").enter(kind, is_deleted, seen);
    }
    Some(at)
}
