//! A client that addresses the API server by path.

use std::path::Path;

use http::{Method, Request, header};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// A client of an API server.
#[derive(Clone)]
pub struct Server(Client);

impl Server {
    pub async fn connect(kubeconfig: &Path) -> Server {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Server(Client::try_from(config.expect("a configuration")).expect("a client"))
    }

    /// Creates an object. A rejection is `Err` with the server's response.
    pub async fn create(&self, collection: &str, object: &Value) -> Result<Value, Value> {
        self.call(Method::POST, collection, Some(object)).await
    }

    pub async fn get(&self, path: &str) -> Result<Value, Value> {
        self.call(Method::GET, path, None).await
    }

    pub async fn patch(&self, path: &str, patch: &Value) -> Result<Value, Value> {
        self.call(Method::PATCH, path, Some(patch)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Value, Value> {
        self.call(Method::DELETE, path, None).await
    }

    pub async fn list(&self, collection: &str) -> Vec<Value> {
        let mut list = self.get(collection).await.expect("a list");
        list["items"].as_array_mut().map(std::mem::take).expect("items")
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Value> {
        let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, media);
        let request = request.body(Body::from(body)).expect("a request");
        let response = self.0.send(request).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let done = response.status().is_success();
        let bytes = response.into_body().collect_bytes().await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let answer = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
        if done { Ok(answer) } else { Err(answer) }
    }
}
