//! Changes that are not persisted yet are neither acknowledged nor shown.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bindery_apiserver::Api;
use bindery_apiserver::api::Settings;
use bindery_apiserver::host::{Config, Server};
use bindery_apiserver::http::{ContextSource, Journal};
use bindery_apiserver::store::JournalRecord;
use http::Request;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::watch;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A journal that syncs when the test says so.
struct Disk {
    taken: Mutex<Vec<JournalRecord>>,
    appended: watch::Sender<u64>,
    synced: watch::Sender<u64>,
    /// How often `persisted` was called.
    waits: watch::Sender<u32>,
    is_broken: bool,
}

struct OnDisk(Arc<Disk>);

impl Journal for OnDisk {
    fn append(&self, records: Vec<JournalRecord>) {
        let last = records.last().map_or(0, |record| record.revision);
        self.0.taken.lock().expect("no thread panics").extend(records);
        self.0.appended.send_replace(last);
    }

    fn persisted(&self, revision: u64) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async move {
            self.0.waits.send_modify(|waits| *waits += 1);
            if self.0.is_broken {
                return Err("the disk is full".to_owned());
            }
            let mut synced = self.0.synced.subscribe();
            synced.wait_for(|synced| *synced >= revision).await.map(drop).map_err(|error| error.to_string())
        })
    }

    fn close(&self) {}
}

async fn start(is_broken: bool) -> (Server, Client, Arc<Disk>) {
    let disk = Arc::new(Disk {
        taken: Mutex::default(),
        appended: watch::Sender::new(0),
        synced: watch::Sender::new(0),
        waits: watch::Sender::new(0),
        is_broken,
    });
    let api = Api::new(Settings { journal: true, ..Settings::default() }, &ContextSource::default().next());
    let server = Server::start_with(Config::in_memory(), api, Some(Arc::new(OnDisk(Arc::clone(&disk))))).await;
    let server = server.expect("a server");
    let kubeconfig = Kubeconfig::from_yaml(server.kubeconfig()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("a config")).expect("a client");
    (server, client, disk)
}

fn creation(name: &str) -> Request<Vec<u8>> {
    let object = json!({"metadata": {"name": name}});
    let request = Request::post(MAPS).header("content-type", "application/json");
    request.body(object.to_string().into_bytes()).expect("a request")
}

#[tokio::test]
async fn a_response_waits_for_the_journal() {
    let (_server, client, disk) = start(false).await;
    let before = *disk.appended.borrow();
    assert!(before > 0, "the system namespaces are persisted, too");
    let creating = {
        let client = client.clone();
        tokio::spawn(async move { client.request::<Value>(creation("a")).await })
    };
    let mut appended = disk.appended.subscribe();
    appended.wait_for(|revision| *revision > before).await.expect("it is written");
    assert!(!creating.is_finished());
    let revision = *appended.borrow();
    disk.synced.send_replace(revision);
    let created = creating.await.expect("the task finishes").expect("it is created");
    assert_eq!(created["metadata"]["resourceVersion"], revision.to_string());
    let taken = disk.taken.lock().expect("no thread panics");
    let last = taken.last().expect("something was written");
    assert_eq!((last.bucket, &*last.key, last.revision), ("configmaps", "default/a", revision));
    assert!(taken.is_sorted_by_key(|record| record.revision));
}

#[tokio::test]
async fn a_write_that_cannot_be_persisted_fails() {
    let (_server, client, _disk) = start(true).await;
    let failed = client.request::<Value>(creation("a")).await.expect_err("the disk is broken");
    let kube::Error::Api(status) = failed else { panic!("{failed}") };
    assert_eq!((status.code, status.message.as_str()), (500, "Internal error occurred: the disk is full"));
}

fn get(path: &str) -> Request<Vec<u8>> {
    Request::get(path).body(Vec::new()).expect("a request")
}

/// Sends a request, which must not be answered before the journal is synced. Returns a summary of
/// the response.
async fn answered_after_sync(client: &Client, disk: &Disk, request: Request<Vec<u8>>) -> String {
    let mut waits = disk.waits.subscribe();
    waits.mark_unchanged();
    let client = client.clone();
    let mut asking = tokio::spawn(async move { client.request_text(request).await });
    tokio::select! {
        waits = waits.changed() => waits.expect("the disk is there"),
        answer = &mut asking => panic!("answered before the sync: {answer:?}"),
    }
    let revision = *disk.appended.borrow();
    disk.synced.send_replace(revision);
    match asking.await.expect("the task finishes") {
        Ok(text) => format!("{} maps", text.matches(r#""uid":"#).count()),
        Err(kube::Error::Api(status)) => status.reason.clone(),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn changes_that_are_not_persisted_are_not_shown() {
    let one = format!("{MAPS}/a");
    let watched = format!("{MAPS}?watch=true&timeoutSeconds=1");
    for (request, expected) in [
        (get(&one), "1 maps"),
        (get(MAPS), "1 maps"),
        (get(&watched), "1 maps"),
        (get(&format!("{MAPS}/b")), "NotFound"),
        (creation("a"), "AlreadyExists"),
    ] {
        let (_server, client, disk) = start(false).await;
        let mut appended = disk.appended.subscribe();
        let before = *appended.borrow_and_update();
        disk.synced.send_replace(before);
        let creating = {
            let client = client.clone();
            tokio::spawn(async move { client.request::<Value>(creation("a")).await })
        };
        appended.changed().await.expect("it is written");
        // Skip the wait of the create itself.
        disk.waits.subscribe().wait_for(|waits| *waits > 0).await.expect("the disk is there");
        let uri = request.uri().clone();
        assert_eq!(answered_after_sync(&client, &disk, request).await, expected, "{uri}");
        creating.await.expect("the task finishes").expect("it is created");
    }
}

#[tokio::test]
async fn a_journal_failure_is_reported_by_the_server() {
    let (server, _client, _disk) = start(true).await;
    assert_eq!(server.failed().await, "the disk is full");
}
