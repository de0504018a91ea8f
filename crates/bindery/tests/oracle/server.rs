//! An API server as a person with kubectl sees it: create, change, delete, list, watch.

use std::path::Path;

use bindery_model::{Kind, ObjectKey};
use futures::{AsyncBufReadExt as _, Stream};
use http::{Method, Request, StatusCode, header};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// Events of namespaced objects lie beside them, those of others in the default namespace, where the claims are too.
pub const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A client of an API server.
#[derive(Clone)]
pub struct Server {
    client: Client,
}

impl Server {
    pub async fn connect(kubeconfig: &Path) -> Server {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Server { client: Client::try_from(config.expect("a configuration")).expect("a client") }
    }

    /// Creates an object. Returns it as it was saved, or the reason why not.
    pub async fn create(&self, key: &ObjectKey, object: &Value) -> Result<Value, String> {
        self.call(Method::POST, &key.collection_path(), "application/json", Some(object)).await
    }

    pub async fn get(&self, key: &ObjectKey) -> Result<Value, String> {
        self.call(Method::GET, &path(key), "application/json", None).await
    }

    pub async fn patch(&self, key: &ObjectKey, patch: &Value) -> Result<Value, String> {
        self.call(Method::PATCH, &path(key), "application/merge-patch+json", Some(patch)).await
    }

    pub async fn patch_status(&self, key: &ObjectKey, patch: &Value) -> Result<Value, String> {
        let status = format!("{}/status", path(key));
        self.call(Method::PATCH, &status, "application/merge-patch+json", Some(patch)).await
    }

    /// Deletes an object, at once if it is a pod.
    pub async fn delete(&self, key: &ObjectKey) -> Result<Value, String> {
        let grace = if key.kind == Kind::Pod { "?gracePeriodSeconds=0" } else { "" };
        self.call(Method::DELETE, &format!("{}{grace}", path(key)), "application/json", None).await
    }

    /// All objects of a kind.
    pub async fn objects(&self, kind: Kind) -> Vec<(ObjectKey, Value)> {
        let of_kind = some(kind);
        let key = |name: &str| ObjectKey { name: name.into(), ..of_kind.clone() };
        let with_key = |object: Value| (key(object["metadata"]["name"].as_str().expect("a name")), object);
        self.list(&of_kind.collection_path()).await.into_iter().map(with_key).collect()
    }

    pub async fn events(&self) -> Vec<Value> {
        self.list(EVENTS).await
    }

    /// What a watch of a collection says from now on: one line for each change.
    pub async fn watch(&self, path: &str) -> impl Stream<Item = std::io::Result<String>> + use<> {
        let list = self.call(Method::GET, &format!("{path}?limit=1"), "application/json", None).await.expect("a list");
        let revision = list["metadata"]["resourceVersion"].as_str().expect("a revision");
        let request = Request::get(format!("{path}?watch=true&resourceVersion={revision}"));
        let request = request.body(Vec::new()).expect("a request");
        let answer = self.client.request_stream(request).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        answer.lines()
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let answer = self.call(Method::GET, path, "application/json", None).await.expect("a list");
        answer["items"].as_array().unwrap_or_else(|| panic!("{path} has no items: {answer}")).clone()
    }

    /// The answer, or the reason why the server refuses. That there is an answer at all is taken for granted.
    async fn call(&self, method: Method, path: &str, media: &str, body: Option<&Value>) -> Result<Value, String> {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, media);
        let request = request.body(Body::from(body)).expect("a request");
        let response = self.client.send(request).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let status = response.status();
        let bytes = response.into_body().collect_bytes().await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_ne!(status, StatusCode::UNAUTHORIZED, "{path}: {answer}");
        if status.is_success() { Ok(answer) } else { Err(answer["reason"].as_str().unwrap_or_default().to_owned()) }
    }
}

/// The path of all objects of a kind, in the default namespace if the kind has any.
pub fn all_of(kind: Kind) -> String {
    some(kind).collection_path()
}

/// The key of an object without a name.
fn some(kind: Kind) -> ObjectKey {
    let namespace = if matches!(kind, Kind::Claim | Kind::Pod) { "default" } else { "" };
    ObjectKey { kind, namespace: namespace.into(), name: "".into() }
}

fn path(key: &ObjectKey) -> String {
    format!("{}/{}", key.collection_path(), key.name)
}
