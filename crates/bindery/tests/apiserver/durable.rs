//! `--data-dir`: every acknowledged write survives `kill -9` at any time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::{Method, Request};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::server::{Server, folder, start_error};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const KILLS: u64 = 20;
const WRITERS: u64 = 12;
const NAMES_EACH: u64 = 8;
/// The server is killed after this many acknowledged writes, with many more in flight.
const ANSWERED_BEFORE_KILL: u64 = 150;

fn start(data: &Path) -> Server {
    Server::start_with(&["--data-dir", &data.to_string_lossy()])
}

/// A client with the credentials of the first start. Only the port differs after a restart.
async fn client(kubeconfig: &str, url: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a config");
    config.cluster_url = url.parse().expect("an address");
    Client::try_from(config).expect("a client")
}

fn request(method: Method, path: &str, content_type: &str, body: &Value) -> Request<Vec<u8>> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    request.body(body).expect("a request")
}

fn revision_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// The observed state of an object: its UID and the last written value.
type Observed = Option<(String, String)>;

fn observed(object: &Value) -> Observed {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some((text(&object["metadata"]["uid"]), text(&object["data"]["value"])))
}

/// What is known about an object.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    /// This was acknowledged.
    Just(Observed),
    /// The response to the last write was lost: the object has the old or the new state.
    Either(Observed, Option<String>),
}

impl Expected {
    fn allows(&self, found: &Observed) -> bool {
        match self {
            Expected::Just(observed) => observed == found,
            Expected::Either(before, after) => {
                let written = found.as_ref().map(|(_, value)| value);
                before == found || after.as_ref() == written
            }
        }
    }
}

/// Writes its own objects, and remembers every response.
struct Writer {
    number: u64,
    written: u64,
    expected: BTreeMap<String, Expected>,
}

/// The connection broke: the outcome of the last write is unknown.
struct Lost;

impl Writer {
    /// Writes until the server is killed, counting observed revisions and acknowledged writes.
    async fn run(mut self, client: Client, answered: Arc<watch::Sender<u64>>, revealed: Arc<AtomicU64>) -> Writer {
        loop {
            let name = format!("w{}-{}", self.number, self.written % NAMES_EACH);
            self.written += 1;
            match self.write(&client, &name).await {
                Err(Lost) => return self,
                Ok(revision) => {
                    revealed.fetch_max(revision, Ordering::Relaxed);
                    answered.send_modify(|answered| *answered += 1);
                }
            }
        }
    }

    /// Sends a valid and a conflicting write. Returns the latest observed revision.
    async fn write(&mut self, client: &Client, name: &str) -> Result<u64, Lost> {
        let value = format!("{}", self.written);
        let path = format!("{MAPS}/{name}");
        let before = match self.expected.get(name) {
            Some(Expected::Just(before)) => before.clone(),
            Some(Expected::Either(..)) => unreachable!("a writer stops after a lost response"),
            None => None,
        };
        let object = json!({"metadata": {"name": name}, "data": {"value": &value}});
        let rejected = json!({"metadata": {"name": name, "resourceVersion": "1"}, "data": {"value": "rejected"}});
        let (verb, after) = match (&before, self.written % 5) {
            (None, _) => (request(Method::POST, MAPS, "application/json", &object), Some(value)),
            (Some(_), 0) => (request(Method::DELETE, &path, "application/json", &Value::Null), None),
            (Some(_), _) => (request(Method::PATCH, &path, "application/merge-patch+json", &object), Some(value)),
        };
        self.expected.insert(name.to_owned(), Expected::Either(before, after.clone()));
        let answer = client.request::<Value>(verb).await.map_err(|error| lost(&error))?;
        let now = if after.is_some() { observed(&answer) } else { None };
        self.expected.insert(name.to_owned(), Expected::Just(now));
        let patch = request(Method::PATCH, &path, "application/merge-patch+json", &rejected);
        match client.request::<Value>(patch).await {
            Ok(done) => panic!("not rejected: {done}"),
            Err(kube::Error::Api(status)) => assert!([404, 409].contains(&status.code), "{status:?}"),
            Err(_) => return Err(Lost),
        }
        Ok(revision_of(&answer))
    }
}

/// The response to a write was lost; any other error fails the test.
fn lost(error: &kube::Error) -> Lost {
    assert!(!matches!(error, kube::Error::Api(_)), "a write was rejected: {error}");
    Lost
}

/// Watches and lists until the server is killed: no crash may undo what either observes.
async fn read(client: Client, revealed: Arc<AtomicU64>) {
    let from = match client.request::<Value>(request(Method::GET, MAPS, "", &Value::Null)).await {
        Ok(list) => revision_of(&list),
        Err(_) => return,
    };
    let path = format!("{MAPS}?watch=true&resourceVersion={from}");
    let Ok(events) = client.request_stream(request(Method::GET, &path, "", &Value::Null)).await else { return };
    let mut lines = events.lines();
    while let Some(Ok(line)) = lines.next().await {
        let event: Value = serde_json::from_str(&line).expect("an event");
        assert_ne!(event["type"], "ERROR", "{event}");
        revealed.fetch_max(revision_of(&event["object"]), Ordering::Relaxed);
        let Ok(list) = client.request::<Value>(request(Method::GET, MAPS, "", &Value::Null)).await else { return };
        revealed.fetch_max(revision_of(&list), Ordering::Relaxed);
    }
}

/// Checks that exactly the acknowledged objects exist, and adopts their state.
async fn check(client: &Client, writers: &mut [Writer], revealed: u64) {
    let list: Value = client.request(request(Method::GET, MAPS, "", &Value::Null)).await.expect("a list");
    let revision = revision_of(&list);
    assert!(revision >= revealed, "revision {revealed} was seen, and now it is {revision}");
    let items = list["items"].as_array().expect("items").iter();
    let mut found: BTreeMap<&str, &Value> =
        items.map(|item| (item["metadata"]["name"].as_str().expect("a name"), item)).collect();
    for writer in writers {
        for (name, expected) in &mut writer.expected {
            let found = found.remove(name.as_str()).and_then(observed);
            assert!(expected.allows(&found), "{name}: {expected:?} is expected, and {found:?} is found");
            *expected = Expected::Just(found);
        }
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), Vec::<&&str>::new(), "unexpected objects");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_write_survives_twenty_kills() {
    let folder = folder();
    let data = folder.join("data");
    let mut server = start(&data);
    let kubeconfig = std::fs::read_to_string(server.kubeconfig()).expect("it exists");
    let revealed = Arc::new(AtomicU64::new(0));
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|number| Writer { number, written: number, expected: BTreeMap::new() }).collect();
    for _ in 0..KILLS {
        let (answered, mut acknowledged) = watch::channel(0);
        let answered = Arc::new(answered);
        let reader = tokio::spawn(read(client(&kubeconfig, &server.url).await, Arc::clone(&revealed)));
        let mut writing = Vec::new();
        for writer in std::mem::take(&mut writers) {
            let client = client(&kubeconfig, &server.url).await;
            writing.push(tokio::spawn(writer.run(client, Arc::clone(&answered), Arc::clone(&revealed))));
        }
        drop(answered);
        // An error means that all writers have ended, which is checked below.
        let _ = acknowledged.wait_for(|answered| *answered >= ANSWERED_BEFORE_KILL).await;
        server.process.kill().expect("it can be killed");
        server.process.wait().expect("it ends");
        for writing in writing {
            writers.push(writing.await.expect("a writer does not panic"));
        }
        reader.await.expect("the reader does not panic");
        assert!(*acknowledged.borrow() >= ANSWERED_BEFORE_KILL, "the server ended on its own");
        server = start(&data);
        check(&client(&kubeconfig, &server.url).await, &mut writers, revealed.load(Ordering::Relaxed)).await;
    }
    drop(server);
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn a_data_dir_in_use_is_rejected_naming_the_process() {
    let folder = folder();
    let data = folder.join("data");
    let server = start(&data);
    let kubeconfig = folder.join("kubeconfig");
    let args = ["--listen", "127.0.0.1:0", "--data-dir", &data.to_string_lossy(), "--write-kubeconfig"];
    let message = start_error(&[&args[..], &[&*kubeconfig.to_string_lossy()]].concat());
    let expected = format!("{} is in use by another server (process {})", data.display(), server.process.id());
    assert!(message.contains(&expected), "{message}");
    assert!(!kubeconfig.exists());
    drop(server);
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn a_foreign_data_dir_is_left_untouched() {
    let folder = folder();
    std::fs::write(folder.join("store.redb"), "mine").expect("a file can be written");
    let message = start_error(&["--listen", "127.0.0.1:0", "--data-dir", &folder.to_string_lossy()]);
    assert!(message.contains(&*folder.join("store.redb").to_string_lossy()), "{message}");
    assert_eq!(std::fs::read(folder.join("store.redb")).expect("it exists"), b"mine");
    assert!(!folder.join("ca.key").exists());
    std::fs::remove_dir_all(folder).expect("it can be removed");
}
