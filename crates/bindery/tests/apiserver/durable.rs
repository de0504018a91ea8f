//! `--data-dir`: what was answered is there after a `kill -9`, whenever it comes.

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

use crate::server::{Server, folder, refused};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const KILLS: u64 = 20;
const WRITERS: u64 = 12;
const NAMES_EACH: u64 = 8;
/// The server is killed when this many writes have been answered, and many more are under way.
const ANSWERED_BEFORE_KILL: u64 = 150;

fn start(data: &Path) -> Server {
    Server::start_with(&["--data-dir", &data.to_string_lossy()])
}

/// A client with the keys of the first start. Only the port is another after a restart.
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

/// What is told of an object: its UID, and what was last written to it.
type Told = Option<(String, String)>;

fn told(object: &Value) -> Told {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some((text(&object["metadata"]["uid"]), text(&object["data"]["said"])))
}

/// What an object may be found to be.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    /// This was answered.
    Just(Told),
    /// The answer to the last write was lost: it was this, and may be what was written, with whatever UID.
    Either(Told, Option<String>),
}

impl Expected {
    fn allows(&self, found: &Told) -> bool {
        match self {
            Expected::Just(told) => told == found,
            Expected::Either(before, after) => {
                let written = found.as_ref().map(|(_, said)| said);
                before == found || after.as_ref() == written
            }
        }
    }
}

/// One who writes objects of its own, and remembers what it was told.
struct Writer {
    number: u64,
    written: u64,
    expected: BTreeMap<String, Expected>,
}

/// The connection broke: whether the last write was done, nobody knows.
struct Lost;

impl Writer {
    /// Writes until the server is gone. All it is told counts as revealed, and every write that is answered as answered.
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

    /// One write that is done, and one that is refused. Answers the latest revision that was seen.
    async fn write(&mut self, client: &Client, name: &str) -> Result<u64, Lost> {
        let said = format!("{}", self.written);
        let path = format!("{MAPS}/{name}");
        let before = match self.expected.get(name) {
            Some(Expected::Just(before)) => before.clone(),
            Some(Expected::Either(..)) => unreachable!("whoever is in doubt writes no more"),
            None => None,
        };
        let object = json!({"metadata": {"name": name}, "data": {"said": &said}});
        let refused = json!({"metadata": {"name": name, "resourceVersion": "1"}, "data": {"said": "refused"}});
        let (verb, after) = match (&before, self.written % 5) {
            (None, _) => (request(Method::POST, MAPS, "application/json", &object), Some(said)),
            (Some(_), 0) => (request(Method::DELETE, &path, "application/json", &Value::Null), None),
            (Some(_), _) => (request(Method::PATCH, &path, "application/merge-patch+json", &object), Some(said)),
        };
        self.expected.insert(name.to_owned(), Expected::Either(before, after.clone()));
        let answer = client.request::<Value>(verb).await.map_err(|error| lost(&error))?;
        let now = if after.is_some() { told(&answer) } else { None };
        self.expected.insert(name.to_owned(), Expected::Just(now));
        let patch = request(Method::PATCH, &path, "application/merge-patch+json", &refused);
        match client.request::<Value>(patch).await {
            Ok(done) => panic!("not refused: {done}"),
            Err(kube::Error::Api(status)) => assert!([404, 409].contains(&status.code), "{status:?}"),
            Err(_) => return Err(Lost),
        }
        Ok(revision_of(&answer))
    }
}

/// A write is answered, or its answer is lost.
fn lost(error: &kube::Error) -> Lost {
    assert!(!matches!(error, kube::Error::Api(_)), "a write was refused: {error}");
    Lost
}

/// Watches and lists as long as there is a server: what either is told, no crash may undo.
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

/// Finds what every writer was told, and nothing else. From here on, what was found is what there is.
async fn check(client: &Client, writers: &mut [Writer], revealed: u64) {
    let list: Value = client.request(request(Method::GET, MAPS, "", &Value::Null)).await.expect("a list");
    let revision = revision_of(&list);
    assert!(revision >= revealed, "revision {revealed} was seen, and now it is {revision}");
    let items = list["items"].as_array().expect("items").iter();
    let mut found: BTreeMap<&str, &Value> =
        items.map(|item| (item["metadata"]["name"].as_str().expect("a name"), item)).collect();
    for writer in writers {
        for (name, expected) in &mut writer.expected {
            let found = found.remove(name.as_str()).and_then(told);
            assert!(expected.allows(&found), "{name}: {expected:?} is expected, and {found:?} is found");
            *expected = Expected::Just(found);
        }
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), Vec::<&&str>::new(), "nobody wrote these");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_that_was_answered_survives_twenty_kills() {
    let folder = folder();
    let data = folder.join("data");
    let mut server = start(&data);
    let kubeconfig = std::fs::read_to_string(server.kubeconfig()).expect("it is there");
    let revealed = Arc::new(AtomicU64::new(0));
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|number| Writer { number, written: number, expected: BTreeMap::new() }).collect();
    for _ in 0..KILLS {
        let (answered, mut news) = watch::channel(0);
        let answered = Arc::new(answered);
        let reader = tokio::spawn(read(client(&kubeconfig, &server.url).await, Arc::clone(&revealed)));
        let mut writing = Vec::new();
        for writer in std::mem::take(&mut writers) {
            let client = client(&kubeconfig, &server.url).await;
            writing.push(tokio::spawn(writer.run(client, Arc::clone(&answered), Arc::clone(&revealed))));
        }
        drop(answered);
        // An error here means that all writers have ended, which is found out below.
        let _ = news.wait_for(|answered| *answered >= ANSWERED_BEFORE_KILL).await;
        server.process.kill().expect("it can be killed");
        server.process.wait().expect("it ends");
        for writing in writing {
            writers.push(writing.await.expect("a writer ends in peace"));
        }
        reader.await.expect("the reader ends in peace");
        assert!(*news.borrow() >= ANSWERED_BEFORE_KILL, "the server ended by itself");
        server = start(&data);
        check(&client(&kubeconfig, &server.url).await, &mut writers, revealed.load(Ordering::Relaxed)).await;
    }
    drop(server);
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn a_folder_in_use_is_refused_with_the_process_that_uses_it() {
    let folder = folder();
    let data = folder.join("data");
    let server = start(&data);
    let kubeconfig = folder.join("kubeconfig");
    let args = ["--listen", "127.0.0.1:0", "--data-dir", &data.to_string_lossy(), "--write-kubeconfig"];
    let said = refused(&[&args[..], &[&*kubeconfig.to_string_lossy()]].concat());
    let expected = format!("{} is in use by another server (process {})", data.display(), server.process.id());
    assert!(said.contains(&expected), "{said}");
    assert!(!kubeconfig.exists());
    drop(server);
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn the_folder_of_somebody_else_is_left_alone() {
    let folder = folder();
    std::fs::write(folder.join("store.redb"), "mine").expect("a file can be written");
    let said = refused(&["--listen", "127.0.0.1:0", "--data-dir", &folder.to_string_lossy()]);
    assert!(said.contains(&*folder.join("store.redb").to_string_lossy()), "{said}");
    assert_eq!(std::fs::read(folder.join("store.redb")).expect("it is there"), b"mine");
    assert!(!folder.join("ca.key").exists());
    std::fs::remove_dir_all(folder).expect("it can be removed");
}
