//! Watches: how they list, and what they report when they are refused.

use std::sync::Arc;

use bindery_model::Kind;
use bindery_runtime::{ChangeReceiver, WatchStatus, WatchedChange, change_queue, watch};
use serde_json::{Value, json};

use crate::server::{Requests, server};

const STREAMED: &str = "sendInitialEvents=true";
const PAGE: &str = "limit=500";

fn start() -> (Requests, ChangeReceiver, WatchStatus) {
    let (api, requests) = server();
    let ((sender, changes), status) = (change_queue(), WatchStatus::default());
    tokio::spawn(watch(Arc::new(api), Kind::Volume, sender, status.clone()));
    (requests, changes, status)
}

fn status(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "reason": ""})
}

fn page(version: &str) -> Value {
    json!({"kind": "PersistentVolumeList", "metadata": {"resourceVersion": version}, "items": []})
}

fn expired() -> Value {
    json!({"type": "ERROR", "object": status(410, "too old resource version")})
}

async fn listed(changes: &mut ChangeReceiver) -> u64 {
    let change = changes.next().await;
    let WatchedChange::Listed(Kind::Volume, version, _) = change else { panic!("not a list: {change:?}") };
    version
}

#[tokio::test]
async fn streaming_is_used_again_after_it_failed_once() {
    let (mut requests, mut changes, _) = start();
    requests.next(STREAMED).await.answer(500, &[status(500, "etcd is busy")]);
    requests.next(PAGE).await.answer(200, &[page("5")]);
    assert_eq!(listed(&mut changes).await, 5);
    requests.next("resourceVersion=5").await.answer(200, &[expired()]);
    let bookmark = json!({"type": "BOOKMARK", "object": {
        "kind": "PersistentVolume", "apiVersion": "v1",
        "metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}},
    }});
    requests.next(STREAMED).await.answer(200, &[bookmark]);
    assert_eq!(listed(&mut changes).await, 9);
}

#[tokio::test]
async fn server_that_cannot_stream_is_listed_in_pages() {
    let (mut requests, mut changes, _) = start();
    requests.next(STREAMED).await.answer(422, &[status(422, "sendInitialEvents is forbidden")]);
    requests.next(PAGE).await.answer(200, &[page("5")]);
    assert_eq!(listed(&mut changes).await, 5);
    requests.next("resourceVersion=5").await.answer(200, &[expired()]);
    requests.next(PAGE).await.answer(200, &[page("6")]);
    assert_eq!(listed(&mut changes).await, 6);
}

#[tokio::test]
async fn refused_watch_is_a_problem_until_it_is_allowed() {
    let (mut requests, mut changes, watches) = start();
    let refused = || [status(403, "persistentvolumes is forbidden")];
    requests.next(STREAMED).await.answer(403, &refused());
    requests.next(PAGE).await.answer(403, &refused());
    let again = requests.next(PAGE).await;
    assert_eq!(watches.problems(), ["the watch of PersistentVolume is refused: persistentvolumes is forbidden"]);
    again.answer(200, &[page("5")]);
    assert_eq!(listed(&mut changes).await, 5);
    // The list is allowed, but not the watch.
    requests.next("resourceVersion=5").await.answer(403, &refused());
    let again = requests.next("resourceVersion=5").await;
    assert_eq!(watches.problems().len(), 1);
    let bookmark = json!({"type": "BOOKMARK", "object": {
        "kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"resourceVersion": "7"},
    }});
    again.answer(200, &[bookmark]);
    assert!(matches!(changes.next().await, WatchedChange::Bookmark(Kind::Volume, 7)));
    assert_eq!(watches.problems(), Vec::<String>::new());
}
