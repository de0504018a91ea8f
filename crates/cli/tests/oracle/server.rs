//! An API server as a person with kubectl sees it: create, change, delete, list, and wait until nobody writes any more.

use std::path::Path;
use std::time::{Duration, Instant};

use bindery_volumes::{Kind, ObjectKey};
use http::{Method, Request, StatusCode, header};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::time::sleep;

/// How often it is looked whether anything was written.
const LOOK: Duration = Duration::from_millis(100);

/// Whoever still writes after so long never stops.
const QUIET_WITHIN: Duration = Duration::from_secs(90);

/// Events of namespaced objects lie beside them, those of others in the default namespace, where the claims are too.
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// What is looked at to see whether anybody still writes.
#[derive(Clone, Copy)]
pub enum Watched {
    /// Everything, events too.
    Everything,
    /// Claims, volumes and pods: events may go on.
    Objects,
}

/// A client of an API server.
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
        self.call(Method::POST, &collection(key), "application/json", Some(object)).await
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

    /// All objects of a kind, in the default namespace if the kind has any.
    pub async fn objects(&self, kind: Kind) -> Vec<(ObjectKey, Value)> {
        let namespace = if matches!(kind, Kind::Claim | Kind::Pod) { "default" } else { "" };
        let key = |name: &str| ObjectKey { kind, namespace: namespace.into(), name: name.into() };
        let with_key = |object: Value| (key(object["metadata"]["name"].as_str().expect("a name")), object);
        self.list(&collection(&key(""))).await.into_iter().map(with_key).collect()
    }

    pub async fn events(&self) -> Vec<Value> {
        self.list(EVENTS).await
    }

    /// Waits until nobody has written anything for so long.
    pub async fn quiet(&self, watched: Watched, duration: Duration) {
        let started = Instant::now();
        let mut last = (String::new(), started);
        while last.1.elapsed() < duration {
            assert!(started.elapsed() < QUIET_WITHIN, "somebody still writes after {QUIET_WITHIN:?}");
            sleep(LOOK).await;
            let revision = match watched {
                Watched::Everything => self.revision().await,
                Watched::Objects => self.revisions().await,
            };
            if revision != last.0 {
                last = (revision, Instant::now());
            }
        }
    }

    /// The revision of a list is that of all that is stored, whatever the list is of.
    async fn revision(&self) -> String {
        let path = "/api/v1/persistentvolumes?limit=1";
        let answer = self.call(Method::GET, path, "application/json", None).await.expect("a list");
        answer["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned()
    }

    /// The revisions of all claims, volumes and pods.
    async fn revisions(&self) -> String {
        let mut revisions = Vec::new();
        for kind in [Kind::Volume, Kind::Claim, Kind::Pod] {
            let revision = |(_, object): (_, Value)| object["metadata"]["resourceVersion"].to_string();
            revisions.extend(self.objects(kind).await.into_iter().map(revision));
        }
        revisions.join(" ")
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

fn path(key: &ObjectKey) -> String {
    format!("{}/{}", collection(key), key.name)
}

fn collection(key: &ObjectKey) -> String {
    match key.kind {
        Kind::Claim => format!("/api/v1/namespaces/{}/persistentvolumeclaims", key.namespace),
        Kind::Volume => "/api/v1/persistentvolumes".to_owned(),
        Kind::Class => "/apis/storage.k8s.io/v1/storageclasses".to_owned(),
        Kind::Pod => format!("/api/v1/namespaces/{}/pods", key.namespace),
        Kind::Node => "/api/v1/nodes".to_owned(),
        Kind::AttributesClass => panic!("no state has any {}", key.kind.as_str()),
    }
}
