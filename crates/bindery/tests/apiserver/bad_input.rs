//! Invalid requests: each gets the status and message of a real API server, and the server keeps
//! running.

use http::{Method, Request, StatusCode};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::server::Server;

const VOLUMES: &str = "/api/v1/persistentvolumes";

struct Requester {
    client: Client,
    // Dropped last.
    _server: Server,
}

/// The parts of a request besides method and path.
#[derive(Default)]
struct Sent<'a> {
    content_type: Option<&'a str>,
    accept: Option<&'a str>,
    header: Option<(&'a str, &'a [u8])>,
    body: Vec<u8>,
}

impl Requester {
    async fn start() -> Requester {
        let server = Server::start();
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let mut config = config.expect("a config");
        // A 504 is the expected response, so it must not be retried.
        config.default_retry = false;
        Requester { client: Client::try_from(config).expect("a client"), _server: server }
    }

    async fn send(&self, method: Method, path: &str, sent: Sent<'_>) -> (StatusCode, Value) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in [("content-type", sent.content_type), ("accept", sent.accept)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if let Some((name, value)) = sent.header {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(sent.body)).expect("a request");
        let answer = self.client.send(request).await.expect("an answer");
        let status = answer.status();
        let body = answer.into_body().collect_bytes().await.expect("a body");
        let text = || json!(String::from_utf8_lossy(&body));
        (status, serde_json::from_slice(&body).unwrap_or_else(|_| text()))
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.send(Method::GET, path, Sent::default()).await
    }

    async fn post(&self, body: impl Into<Vec<u8>>) -> (StatusCode, Value) {
        let sent = Sent { content_type: Some("application/json"), body: body.into(), ..Sent::default() };
        self.send(Method::POST, VOLUMES, sent).await
    }
}

#[track_caller]
fn assert_status((code, body): (StatusCode, Value), expected: u16, reason: &str, message: &str) {
    assert_eq!(code.as_u16(), expected, "{body}");
    assert_eq!(body["kind"], "Status", "{body}");
    assert_eq!(body["code"], expected, "{body}");
    assert_eq!(body["reason"].as_str().unwrap_or_default(), reason, "{body}");
    assert_eq!(body["message"], message);
}

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let instance = Requester::start().await;
    let unrecognized = "the object provided is unrecognized (must be of type PersistentVolume): ";
    assert_status(
        instance.post("x").await,
        400,
        "BadRequest",
        &format!(
            "{unrecognized}couldn't get version/kind; json parse error: invalid character 'x' looking for beginning of value (78)"
        ),
    );
    assert_status(
        instance.post("").await,
        400,
        "BadRequest",
        &format!("{unrecognized}couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"),
    );
    let (code, _) = instance.post(r#"{"kind":"Pod","apiVersion":"v1"}"#).await;
    assert_eq!(code, 400, "the kind does not match the path");
    for deep in ["[", r#"{"a":"#] {
        let (code, body) = instance.post(deep.repeat(100_000)).await;
        assert_eq!(code, 400, "nested too deeply");
        assert!(body["message"].as_str().unwrap_or_default().contains("exceeded max depth"), "{body}");
    }
    let (code, list) = instance.get(VOLUMES).await;
    assert_eq!((code.as_u16(), &list["items"]), (200, &json!([])));
}

#[tokio::test]
async fn oversized_bodies_are_rejected() {
    let instance = Requester::start().await;
    let large = vec![b' '; (3 << 20) + 1];
    assert_status(
        instance.post(large).await,
        413,
        "RequestEntityTooLarge",
        "Request entity too large: limit is 3145728",
    );
    let (code, _) = instance.post(vec![b' '; 3 << 20]).await;
    assert_eq!(code, 400, "a body at the limit is read");
}

#[tokio::test]
async fn unsupported_content_types_are_rejected() {
    let instance = Requester::start().await;
    let unknown = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml";
    for content_type in ["text/plain", "application/vnd.kubernetes.protobuf"] {
        let sent = Sent { content_type: Some(content_type), body: b"x".to_vec(), ..Sent::default() };
        assert_status(instance.send(Method::POST, VOLUMES, sent).await, 415, "UnsupportedMediaType", unknown);
    }
    let sent = Sent { content_type: Some("application/json"), body: b"{}".to_vec(), ..Sent::default() };
    let patched = instance.send(Method::PATCH, "/api/v1/persistentvolumes/x", sent).await;
    assert_status(patched, 415, "UnsupportedMediaType", "415: Unsupported Media Type");
    for accept in ["application/vnd.kubernetes.protobuf", "text/html"] {
        let sent = Sent { accept: Some(accept), ..Sent::default() };
        let (code, body) = instance.send(Method::GET, VOLUMES, sent).await;
        assert_eq!((code.as_u16(), &body["reason"]), (406, &json!("NotAcceptable")));
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_rejected() {
    let instance = Requester::start().await;
    let not_found = "the server could not find the requested resource";
    for path in [
        "/api/v1/nothings",
        "/api/v2/pods",
        "/apis/storage.k8s.io/v1/nothings",
        "/apis/storage.k8s.io/v9",
        "/api/v1/pods/without-namespace",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/persistentvolumes/x/nothing",
    ] {
        assert_status(instance.get(path).await, 404, "NotFound", not_found);
    }
    for path in ["/nothing", "/apis/unknown.io/v1", "/apis/unknown.io/v1/things", "/readyz/nothing"] {
        let (code, body) = instance.get(path).await;
        assert_eq!((code.as_u16(), body), (404, json!("404 page not found\n")), "{path}");
    }
    let not_allowed = "the server does not allow this method on the requested resource";
    for (method, path) in [
        (Method::PUT, VOLUMES),
        (Method::POST, "/api/v1/persistentvolumes/x"),
        (Method::DELETE, "/api/v1/namespaces"),
        (Method::POST, "/api/v1/pods"),
        (Method::POST, "/version"),
        (Method::OPTIONS, VOLUMES),
    ] {
        assert_status(instance.send(method, path, Sent::default()).await, 405, "MethodNotAllowed", not_allowed);
    }
}

#[tokio::test]
async fn invalid_queries_are_rejected() {
    let instance = Requester::start().await;
    for (query, message) in [
        ("limit=x", r#"strconv.ParseInt: parsing "x": invalid syntax"#),
        ("labelSelector=a%20in", "unable to parse requirement: found '' expected: '('"),
        ("fieldSelector=a%3Db", r#""a" is not a known field selector: only "metadata.name", "metadata.namespace""#),
        (
            "resourceVersion=x",
            r#"invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax"#,
        ),
    ] {
        assert_status(instance.get(&format!("{VOLUMES}?{query}")).await, 400, "BadRequest", message);
    }
    let selector = "a".repeat(60_000);
    let (code, _) = instance.get(&format!("{VOLUMES}?labelSelector={selector}")).await;
    assert_eq!(code, 400, "the label is too long");
    let (code, _) = instance.get(&format!("{VOLUMES}?continue=nonsense")).await;
    assert_eq!(code, 400);
    let (code, body) = instance.get(&format!("{VOLUMES}?watch=1&sendInitialEvents=true")).await;
    assert_eq!((code.as_u16(), &body["reason"]), (422, &json!("Invalid")));
    let (code, body) = instance.get(&format!("{VOLUMES}?resourceVersion=999999")).await;
    assert_eq!((code.as_u16(), &body["reason"]), (504, &json!("Timeout")), "a future revision");
}

#[tokio::test]
async fn watches_from_future_and_invalid_revisions() {
    let instance = Requester::start().await;
    let (code, body) = instance.get(&format!("{VOLUMES}?watch=1&resourceVersion=999999&timeoutSeconds=1")).await;
    assert_eq!((code.as_u16(), body), (200, json!("")), "it waits for the future revision");
    let message = r#"resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax"#;
    assert_status(instance.get(&format!("{VOLUMES}?watch=1&resourceVersion=x")).await, 500, "", message);
}

#[tokio::test]
async fn unauthenticated_requests_are_rejected() {
    let server = Server::start();
    let kubeconfig = std::fs::read_to_string(server.kubeconfig()).expect("a kubeconfig");
    let without = |fields: &[&str]| {
        let kept = kubeconfig.lines().filter(|line| !fields.iter().any(|field| line.trim().starts_with(field)));
        kept.map(|line| format!("{line}\n")).collect::<String>()
    };
    let key_of = ["client-certificate-data", "client-key-data"];
    let anonymous = without(&[&key_of[..], &["token"]].concat()).replace("  user:\n", "  user: {}\n");
    let with_token = without(&key_of);
    let wrong_token = with_token.replace("token: ", "token: 0");
    let with_certificate = without(&["token"]);
    for (kubeconfig, expected) in [(anonymous, 401), (wrong_token, 401), (with_token, 200), (with_certificate, 200)] {
        let parsed = Kubeconfig::from_yaml(&kubeconfig).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await.expect("a config");
        let client = Client::try_from(config).expect("a client");
        for path in [VOLUMES, "/version", "/healthz", "/nothing"] {
            let request = Request::get(path).body(Body::empty()).expect("a request");
            let answer = client.send(request).await.expect("an answer").status().as_u16();
            let expected = if expected == 200 && path == "/nothing" { 404 } else { expected };
            assert_eq!(answer, expected, "{path} with\n{kubeconfig}");
        }
    }
}

#[tokio::test]
async fn a_json_patch_cannot_exhaust_memory() {
    let instance = Requester::start().await;
    let mut operations = vec![r#"{"op":"add","path":"/x","value":{"0":"0123456789"}}"#.to_owned()];
    operations.extend((1..=30).map(|number| format!(r#"{{"op":"copy","from":"/x","path":"/x/{number}"}}"#)));
    let body = format!("[{}]", operations.join(",")).into_bytes();
    let sent = Sent { content_type: Some("application/json-patch+json"), body, ..Sent::default() };
    let message = "the server rejected our request due to an error in our request";
    let patched = instance.send(Method::PATCH, "/api/v1/namespaces/default", sent).await;
    assert_status(patched, 422, "Invalid", message);
}

#[tokio::test]
async fn selectors_that_are_not_ascii_are_bad_requests() {
    let instance = Requester::start().await;
    for query in ["labelSelector=%C3%A9", "labelSelector=a%3D%C3%A9", "fieldSelector=%C3%A9", "labelSelector=%C2%A0"] {
        for path in [VOLUMES, "/api/v1/pods"] {
            let (code, body) = instance.get(&format!("{path}?{query}")).await;
            assert_eq!((code.as_u16(), &body["reason"]), (400, &json!("BadRequest")), "{path}?{query}");
            let (code, _) = instance.get(&format!("{path}?watch=1&timeoutSeconds=1&{query}")).await;
            assert_eq!(code, 400, "{path}?watch=1&{query}");
        }
    }
}

#[tokio::test]
async fn impersonation_is_never_ignored() {
    let instance = Requester::start().await;
    for (name, value, expected) in [
        ("impersonate-user", &b"jane"[..], 403),
        ("impersonate-user", "jürgen".as_bytes(), 403),
        ("impersonate-user", b"\xff", 403),
        ("impersonate-user", b"", 400),
        ("impersonate-group", b"system:masters", 400),
        ("impersonate-group", "jürgen".as_bytes(), 400),
        ("impersonate-uid", b"1", 400),
        ("impersonate-extra-scopes", b"all", 400),
    ] {
        let sent = || Sent { header: Some((name, value)), ..Sent::default() };
        for path in [VOLUMES, "/version", "/api"] {
            let (code, body) = instance.send(Method::GET, path, sent()).await;
            assert_eq!(code.as_u16(), expected, "{name}: {body}");
        }
        let created =
            Sent { content_type: Some("application/json"), body: br#"{"metadata":{"name":"x"}}"#.to_vec(), ..sent() };
        let (code, _) = instance.send(Method::POST, "/api/v1/namespaces", created).await;
        assert_eq!(code.as_u16(), expected, "{name}");
    }
    let (code, _) = instance.get("/api/v1/namespaces/x").await;
    assert_eq!(code, 404, "no rejected request has an effect");
}
