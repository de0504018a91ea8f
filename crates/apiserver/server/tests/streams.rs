//! Watches and long lists over HTTP.

use bindery_apiserver::api::Settings;
use bindery_apiserver::host::{Config, Server};
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn start(settings: Settings) -> (Server, Client) {
    let server = Server::start(Config { settings, ..Config::in_memory() }).await.expect("a server");
    let kubeconfig = Kubeconfig::from_yaml(server.kubeconfig()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("a config")).expect("a client");
    (server, client)
}

async fn get(client: &Client, path: &str) -> Value {
    client.request(Request::get(path).body(Vec::new()).expect("a request")).await.expect("an answer")
}

async fn make(client: &Client, name: &str, filling: usize) {
    let object = json!({"metadata": {"name": name, "labels": {"name": name}}, "data": {"a": "x".repeat(filling)}});
    let request = Request::post(MAPS).header("content-type", "application/json").body(object.to_string().into_bytes());
    client.request::<Value>(request.expect("a request")).await.expect("it is created");
}

async fn change(client: &Client, name: &str, filling: usize, number: usize) {
    let patch = json!({"data": {"a": "x".repeat(filling), "number": number.to_string()}});
    let request = Request::patch(format!("{MAPS}/{name}")).header("content-type", "application/merge-patch+json");
    let request = request.body(patch.to_string().into_bytes()).expect("a request");
    client.request::<Value>(request).await.expect("it is changed");
}

/// The events of a watch.
async fn watch(client: &Client, query: &str) -> impl futures::Stream<Item = Value> + Unpin {
    let request = Request::get(format!("{MAPS}?watch=true&{query}")).body(Vec::new()).expect("a request");
    let lines = client.request_stream(request).await.expect("a stream").lines();
    let lines = lines.map(|line| line.map(|line| serde_json::from_str(&line).expect("each line is an event")));
    Box::pin(lines.into_stream().take_while(|line| std::future::ready(line.is_ok())).map(|line| line.expect("it is")))
}

fn summary(event: &Value) -> String {
    format!(
        "{} {}",
        event["type"].as_str().unwrap_or_default(),
        event["object"]["metadata"]["name"].as_str().unwrap_or_default()
    )
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_bookmark_and_continues() {
    let (_server, client) = start(Settings::default()).await;
    make(&client, "a", 1).await;
    make(&client, "b", 1).await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = watch(&client, query).await;
    let mut next = async || events.next().await.expect("the watch continues");
    assert_eq!(summary(&next().await), "ADDED a");
    assert_eq!(summary(&next().await), "ADDED b");
    let bookmark = next().await;
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["kind"], "ConfigMap");
    assert_eq!(bookmark["object"]["metadata"]["annotations"], json!({"k8s.io/initial-events-end": "true"}));
    let list = get(&client, MAPS).await;
    assert_eq!(bookmark["object"]["metadata"]["resourceVersion"], list["metadata"]["resourceVersion"]);
    change(&client, "b", 1, 1).await;
    assert_eq!(summary(&next().await), "MODIFIED b");
}

#[tokio::test]
async fn a_watch_ends_at_its_timeout_after_a_last_bookmark() {
    let (_server, client) = start(Settings::default()).await;
    let events: Vec<Value> =
        watch(&client, "timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=1").await.collect().await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["type"], "BOOKMARK");
    let events: Vec<Value> = watch(&client, "timeoutSeconds=1&resourceVersion=1").await.collect().await;
    assert_eq!(events, Vec::<Value>::new(), "bookmarks were not requested");
}

#[tokio::test]
async fn a_single_object_can_be_watched_by_the_legacy_path() {
    let (_server, client) = start(Settings::default()).await;
    make(&client, "a", 1).await;
    make(&client, "b", 1).await;
    let path = "/api/v1/watch/namespaces/default/configmaps/b?timeoutSeconds=1";
    let text = client.request_text(Request::get(path).body(Vec::new()).expect("a request")).await.expect("a stream");
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    assert_eq!(events.iter().map(summary).collect::<Vec<_>>(), ["ADDED b"]);
}

#[tokio::test]
async fn tables_define_their_columns_once() {
    let (_server, client) = start(Settings::default()).await;
    make(&client, "a", 1).await;
    make(&client, "b", 1).await;
    let request = Request::get(format!("{MAPS}?watch=true&timeoutSeconds=1"))
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new());
    let text = client.request_text(request.expect("a request")).await.expect("a stream");
    let tables: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event")["object"].clone()).collect();
    assert_eq!(tables.len(), 2);
    assert_eq!(tables[0]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(tables[1]["columnDefinitions"], Value::Null);
    assert_eq!(tables[1]["rows"][0]["cells"][0], "b");
    assert_eq!(tables[1]["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_no_other_and_gets_a_410() {
    // Much less than the changes below.
    let settings = Settings { history_bytes: 1 << 20, ..Settings::default() };
    let (_server, client) = start(settings).await;
    make(&client, "busy", 1).await;
    let mut stuck = watch(&client, "timeoutSeconds=600").await;
    assert_eq!(summary(&stuck.next().await.expect("the object as it is")), "ADDED busy");
    // More than the buffers of both sockets.
    let (changes, filling) = (400, 100_000);
    for number in 0..changes {
        change(&client, "busy", filling, number).await;
    }
    let rest: Vec<Value> = stuck.collect().await;
    let (last, before) = rest.split_last().expect("there is at least one event");
    assert!(before.iter().all(|event| summary(event) == "MODIFIED busy"));
    assert!(before.len() < changes, "some changes were dropped");
    assert_eq!(last["type"], "ERROR");
    assert_eq!((&last["object"]["code"], &last["object"]["reason"]), (&json!(410), &json!("Expired")));
}

#[tokio::test]
async fn a_watch_from_an_expired_revision_gets_a_410() {
    let settings = Settings { history_changes: 3, ..Settings::default() };
    let (_server, client) = start(settings).await;
    make(&client, "a", 1).await;
    let early = get(&client, MAPS).await["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned();
    for number in 0..5 {
        change(&client, "a", 1, number).await;
    }
    let events: Vec<Value> =
        watch(&client, &format!("resourceVersion={early}&timeoutSeconds=60")).await.collect().await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["type"], &events[0]["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test]
async fn a_list_of_many_chunks_is_complete() {
    let (_server, client) = start(Settings::default()).await;
    for number in 0..300 {
        make(&client, &format!("map-{number:03}"), 2_000).await;
    }
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().expect("items").iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let expected: Vec<String> = (0..300).map(|number| format!("map-{number:03}")).collect();
    let list = get(&client, MAPS).await;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert_eq!(names(&list), expected);
    assert_eq!(list["items"][7].get("kind"), None, "items do not repeat the kind");
    let mut found = Vec::new();
    let mut token = String::new();
    loop {
        let page = get(&client, &format!("{MAPS}?limit=90&continue={token}")).await;
        found.extend(names(&page));
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(found, expected);
}
