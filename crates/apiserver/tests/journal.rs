//! What is not persisted yet is not answered, and not told.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bindery_apiserver::Api;
use bindery_apiserver::api::Settings;
use bindery_apiserver::host::{Config, Server};
use bindery_apiserver::http::{Journal, Moments};
use bindery_apiserver::store::Record;
use http::Request;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::watch;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A disk that syncs when it is told to.
struct Disk {
    taken: Mutex<Vec<Record>>,
    appended: watch::Sender<u64>,
    synced: watch::Sender<u64>,
    is_broken: bool,
}

struct OnDisk(Arc<Disk>);

impl Journal for OnDisk {
    fn append(&self, records: Vec<Record>) {
        let last = records.last().map_or(0, |record| record.revision);
        self.0.taken.lock().expect("nobody panics").extend(records);
        self.0.appended.send_replace(last);
    }

    fn persisted(&self, revision: u64) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(async move {
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
        is_broken,
    });
    let api = Api::new(Settings { journal: true, ..Settings::default() }, &Moments::default().next());
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
async fn an_answer_waits_for_the_disk() {
    let (_server, client, disk) = start(false).await;
    let before = *disk.appended.borrow();
    assert!(before > 0, "what every cluster has is persisted too");
    let creating = {
        let client = client.clone();
        tokio::spawn(async move { client.request::<Value>(creation("a")).await })
    };
    let mut appended = disk.appended.subscribe();
    appended.wait_for(|revision| *revision > before).await.expect("it is written");
    assert!(!creating.is_finished());
    let revision = *appended.borrow();
    disk.synced.send_replace(revision);
    let made = creating.await.expect("it ends").expect("it is made");
    assert_eq!(made["metadata"]["resourceVersion"], revision.to_string());
    let taken = disk.taken.lock().expect("nobody panics");
    let last = taken.last().expect("something was written");
    assert_eq!((last.space, &*last.key, last.revision), ("configmaps", "default/a", revision));
    assert!(taken.is_sorted_by_key(|record| record.revision));
}

#[tokio::test]
async fn what_cannot_be_persisted_is_not_called_done() {
    let (_server, client, _disk) = start(true).await;
    let failed = client.request::<Value>(creation("a")).await.expect_err("the disk is broken");
    let kube::Error::Api(status) = failed else { panic!("{failed}") };
    assert_eq!((status.code, status.message.as_str()), (500, "Internal error occurred: the disk is full"));
}
