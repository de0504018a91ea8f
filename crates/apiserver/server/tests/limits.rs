//! Every limit of the server is reached: what is beyond it is rejected, and the rest is served.

mod common;

use std::sync::Arc;
use std::time::Duration;

use bindery_apiserver::Api;
use bindery_apiserver::api::Settings;
use bindery_apiserver::host::{Config, Server};
use bindery_apiserver::http::{ContextSource, Limits};
use http::Request;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use common::{HeldJournal, MAPS, client, tls};

async fn start(limits: Limits) -> Server {
    Server::start(Config { limits, ..Config::in_memory() }).await.expect("a server")
}

/// The status code, the Retry-After header, and the body.
async fn get(client: &kube::Client, path: &str) -> (u16, Option<String>, String) {
    let request = Request::get(path).body(Body::empty()).expect("a request");
    let answer = client.send(request).await.expect("an answer");
    let retry = answer.headers().get("retry-after").map(|value| value.to_str().expect("ASCII").to_owned());
    let status = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.expect("a body");
    (status, retry, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn requests_in_flight_are_limited() {
    let journal = Arc::new(HeldJournal::default());
    let api = Api::new(Settings { journal: true, ..Settings::default() }, &ContextSource::default().next());
    let limits = Limits { requests: 2, ..Limits::default() };
    let config = Config { limits, ..Config::in_memory() };
    let server = Server::start_with(config, api, Some(journal.clone())).await.expect("a server");
    let client = client(&server).await;
    let write = |name: &str| {
        let object = json!({"metadata": {"name": name}}).to_string().into_bytes();
        let request = Request::post(MAPS).header("content-type", "application/json").body(object);
        let client = client.clone();
        tokio::spawn(async move { client.request::<Value>(request.expect("a request")).await })
    };
    // Both are answered only when they are persisted.
    let before = journal.revision();
    let writes = [write("a"), write("b")];
    journal.appended_after(before, 2).await;
    let (code, retry, body) = get(&client, MAPS).await;
    assert_eq!((code, retry.as_deref()), (429, Some("1")), "{body}");
    assert!(body.contains("TooManyRequests"), "{body}");
    assert_eq!(get(&client, "/readyz").await.0, 200, "probes are exempt");
    journal.release();
    for write in writes {
        write.await.expect("no panic").expect("it is created");
    }
    assert_eq!(get(&client, MAPS).await.0, 200);
    server.stop().await;
}

#[tokio::test]
async fn watches_are_limited_separately() {
    let server = start(Limits { requests: 1, watches: 2, ..Limits::default() }).await;
    let client = client(&server).await;
    let open = async || {
        let request = Request::get(format!("{MAPS}?watch=true")).body(Body::empty()).expect("a request");
        client.send(request).await.expect("an answer")
    };
    let (first, second, third) = (open().await, open().await, open().await);
    assert_eq!([first.status(), second.status(), third.status()].map(|status| status.as_u16()), [200, 200, 429]);
    assert_eq!(third.headers().get("retry-after").map(http::HeaderValue::as_bytes), Some(&b"1"[..]));
    assert_eq!(get(&client, MAPS).await.0, 200, "watches do not count as requests");
    let page = get(&client, "/metrics").await.2;
    assert!(page.contains("\napiserver_longrunning_requests 2\n"), "{page}");
    // A watch that its client has closed makes room for another.
    drop(first);
    while get(&client, "/metrics").await.2.contains("\napiserver_longrunning_requests 2\n") {}
    assert_eq!(open().await.status(), 200);
    server.stop().await;
}

#[tokio::test]
async fn connections_are_limited() {
    let server = start(Limits { connections: 1, ..Limits::default() }).await;
    let first = tls(&server, b"http/1.1").await.expect("a connection");
    let mut second = TcpStream::connect(server.address()).await.expect("it is accepted by the system");
    let mut byte = [0];
    let read = second.read(&mut byte).await;
    assert!(matches!(read, Ok(0) | Err(_)), "it is closed: {read:?}");
    drop(first);
    // The server learns asynchronously that the first connection has ended.
    while tls(&server, b"http/1.1").await.is_err() {}
    server.stop().await;
}

#[tokio::test]
async fn idle_connections_and_slow_headers_are_closed() {
    let server = start(Limits { idle: Duration::from_millis(300), ..Limits::default() }).await;
    for protocol in [&b"http/1.1"[..], b"h2"] {
        let mut stream = tls(&server, protocol).await.expect("a connection");
        let mut rest = Vec::new();
        // Closed without a request.
        let _ = stream.read_to_end(&mut rest).await;
    }
    let mut stream = tls(&server, b"http/1.1").await.expect("a connection");
    stream.write_all(b"GET /version HTTP/1.1\r\nhost: a\r\nx-slow: ").await.expect("it is sent");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    let answer = String::from_utf8_lossy(&rest);
    assert!(!answer.contains("200 OK"), "{answer}");
    // A watch without events is not idle: it ends when it has requested to end.
    let client = client(&server).await;
    let (code, _, body) = get(&client, &format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion=1")).await;
    assert_eq!((code, body.as_str()), (200, ""));
    server.stop().await;
}

#[tokio::test]
async fn headers_are_limited() {
    let server = start(Limits::default()).await;
    let mut stream = tls(&server, b"http/1.1").await.expect("a connection");
    let request = format!("GET /version HTTP/1.1\r\nhost: a\r\nx-large: {}\r\n\r\n", "x".repeat(2 << 20));
    // The server may close the connection before everything is sent.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(get(&client(&server).await, "/version").await.0, 200);
    server.stop().await;
}

#[tokio::test]
async fn metrics_need_credentials_and_count_requests() {
    let server = start(Limits::default()).await;
    let client = client(&server).await;
    get(&client, MAPS).await;
    get(&client, "/api/v1/namespaces/default/configmaps/none").await;
    get(&client, "/apis/any%22thing/v1/x").await;
    let (code, _, page) = get(&client, "/metrics").await;
    assert_eq!(code, 200);
    for line in [
        r#"apiserver_request_total{code="200",component="apiserver",group="",resource="configmaps",subresource="",verb="LIST",version="v1"} 1"#,
        r#"apiserver_request_total{code="404",component="apiserver",group="",resource="configmaps",subresource="",verb="GET",version="v1"} 1"#,
        "apiserver_current_inflight_requests 1",
        r#"apiserver_storage_objects{resource="namespaces"} 4"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    assert!(!page.contains("thing"), "labels are from fixed sets: {page}");
    let mut stream = tls(&server, b"http/1.1").await.expect("a connection");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.expect("it is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 401"), "{}", String::from_utf8_lossy(&answer));
    server.stop().await;
}

#[tokio::test]
async fn the_audit_log_has_every_response_and_a_maximum_size() {
    let dir = std::env::temp_dir().join(format!("bindery-audit-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("audit.log");
    let config = Config { audit_log: Some(file.clone()), audit_log_bytes: 10_000, ..Config::in_memory() };
    let server = Server::start(config).await.expect("a server");
    let client = client(&server).await;
    assert_eq!(get(&client, &format!("{MAPS}/a?pretty=false")).await.0, 404);
    let line = std::fs::read_to_string(&file).expect("it exists");
    let event: Value = serde_json::from_str(line.lines().next().expect("a line")).expect("JSON");
    for (field, expected) in [
        ("/kind", json!("Event")),
        ("/apiVersion", json!("audit.k8s.io/v1")),
        ("/level", json!("Metadata")),
        ("/stage", json!("ResponseComplete")),
        ("/verb", json!("get")),
        ("/requestURI", json!(format!("{MAPS}/a?pretty=false"))),
        ("/user/username", json!("bindery-admin")),
        ("/sourceIPs/0", json!("127.0.0.1")),
        ("/objectRef", json!({"apiVersion": "v1", "resource": "configmaps", "namespace": "default", "name": "a"})),
        ("/responseStatus/code", json!(404)),
    ] {
        assert_eq!(event.pointer(field), Some(&expected), "{field} in {event}");
    }
    for _ in 0..100 {
        get(&client, MAPS).await;
    }
    let size = |file: &std::path::Path| std::fs::metadata(file).expect("it exists").len();
    assert!(size(&file) <= 10_000 && size(&dir.join("audit.log.1")) <= 10_000);
    assert_eq!(std::fs::read_dir(&dir).expect("a directory").count(), 2);
    server.stop().await;
    std::fs::remove_dir_all(dir).expect("it can be removed");
}
