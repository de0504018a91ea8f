//! `bindery apiserver snapshot`: a server starts from a copy that was made while others wrote.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::server::{Server, folder};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn client(kubeconfig: &std::path::Path, url: &str) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a config");
    config.cluster_url = url.parse().expect("a URL");
    Client::try_from(config).expect("a client")
}

async fn write(client: &Client, request: http::request::Builder, body: &Value) {
    let request = request.body(body.to_string().into_bytes()).expect("a request");
    client.request::<Value>(request).await.expect("it is written");
}

/// Counts up two objects in turn, `a` before `b`, until told to stop.
async fn count_up(client: Client, counted: Arc<AtomicU64>, is_over: Arc<AtomicBool>) {
    for name in ["a", "b"] {
        let object = json!({"metadata": {"name": name}, "data": {"count": "0"}});
        write(&client, Request::post(MAPS).header("content-type", "application/json"), &object).await;
    }
    for number in 1.. {
        for name in ["a", "b"] {
            let patch = json!({"data": {"count": number.to_string()}});
            let request = Request::patch(format!("{MAPS}/{name}"));
            write(&client, request.header("content-type", "application/merge-patch+json"), &patch).await;
        }
        counted.store(number, Ordering::SeqCst);
        if is_over.load(Ordering::SeqCst) {
            return;
        }
    }
}

fn snapshot(kubeconfig: &std::path::Path, output: &std::path::Path) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bindery"))
        .args(["apiserver", "snapshot", "--kubeconfig"])
        .arg(kubeconfig)
        .arg("--output")
        .arg(output)
        .output()
        .expect("bindery runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_from_a_snapshot_that_was_made_during_writes() {
    let folder = folder();
    let data = folder.join("data");
    let server = Server::start_with(&["--data-dir", &data.to_string_lossy()]);
    let (counted, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = client(&server.kubeconfig(), &server.url).await;
    let writer = tokio::spawn(count_up(writer, Arc::clone(&counted), Arc::clone(&is_over)));
    while counted.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let copy = folder.join("copy");
    let before = counted.load(Ordering::SeqCst);
    let (kubeconfig, output) = (server.kubeconfig(), copy.clone());
    let (is_written, text) =
        tokio::task::spawn_blocking(move || snapshot(&kubeconfig, &output)).await.expect("no panic");
    let after = counted.load(Ordering::SeqCst);
    assert!(is_written, "{text}");
    assert!(text.contains("objects at revision"), "{text}");
    is_over.store(true, Ordering::SeqCst);
    writer.await.expect("the writer does not panic");
    // The old kubeconfig is valid for the copy, which has the same keys.
    let restored = Server::start_with(&["--data-dir", &copy.to_string_lossy()]);
    let restored_client = client(&server.kubeconfig(), &restored.url).await;
    let list: Value =
        restored_client.request(Request::get(MAPS).body(Vec::new()).expect("a request")).await.expect("a list");
    let items = list["items"].as_array().expect("items").iter();
    let counts: BTreeMap<&str, u64> = items
        .map(|item| {
            let count = item["data"]["count"].as_str().and_then(|count| count.parse().ok());
            (item["metadata"]["name"].as_str().expect("a name"), count.expect("a number"))
        })
        .collect();
    let (a, b) = (counts["a"], counts["b"]);
    assert!(a == b || a == b + 1, "one revision of all objects: {counts:?}");
    assert!((before..=after + 1).contains(&a), "between {before} and {after}: {counts:?}");
    let (is_written, text) = snapshot(&server.kubeconfig(), &copy);
    assert!(!is_written && text.contains("is not empty"), "{text}");
    drop((server, restored));
    std::fs::remove_dir_all(folder).expect("it can be removed");
}
