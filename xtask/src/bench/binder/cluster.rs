//! The benchmark's client of the API server: creates many objects at once, and reads the server's
//! count of writes.

use std::path::Path;

use futures::{StreamExt, TryStreamExt, stream};
use http::Method;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

/// The path of claims.
pub const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
/// The path of volumes.
pub const VOLUMES: &str = "/api/v1/persistentvolumes";
/// The path of pods.
pub const PODS: &str = "/api/v1/namespaces/default/pods";
/// The path of events.
pub const EVENTS: &str = "/api/v1/namespaces/default/events";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

/// The number of concurrent create requests.
const AT_ONCE: usize = 32;

/// A client with kube's default transport, one connection per call in flight: the baseline was
/// fastest with it.
pub async fn client(kubeconfig: &Path) -> Result<Client, String> {
    let failed = |error: kube::config::KubeconfigError| format!("{}: {error}", kubeconfig.display());
    let file = Kubeconfig::read_from(kubeconfig).map_err(failed)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(failed)?;
    config.default_retry = false;
    Client::try_from(config).map_err(|error| format!("cannot create a client: {error}"))
}

/// A request with a body.
pub fn request(method: Method, path: &str, body: &Value) -> Result<http::Request<Vec<u8>>, String> {
    let is_patch = method == Method::PATCH;
    let content = if is_patch { "application/merge-patch+json" } else { "application/json" };
    http::Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, content)
        .body(body.to_string().into_bytes())
        .map_err(|error| error.to_string())
}

/// A size for object `n`: a volume and its claim have the same, out of a hundred sizes.
fn size(n: usize) -> String {
    format!("{}Gi", 1 + n % 100)
}

/// Volume `n`.
pub fn volume(n: usize) -> Value {
    volume_named(&format!("pv-{n:06}"), "bench", &size(n))
}

/// Claim `n`, which fits volume `n` and no smaller one.
pub fn claim(n: usize) -> Value {
    claim_named(&format!("c-{n:06}"), "bench", &size(n))
}

/// Pod `n`, unscheduled, whose ephemeral volume fits volume `n` and no smaller one.
pub fn pod(n: usize) -> Value {
    let name = format!("p-{n:06}");
    let template = json!({"spec": claim_named(&name, "bench", &size(n))["spec"]});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "none"}],
            "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}],
        },
    })
}

/// All objects at a path.
pub async fn list(client: &Client, path: &str) -> Result<Vec<Value>, String> {
    let request = http::Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    let mut list: Value = client.request(request).await.map_err(|error| format!("{path}: {error}"))?;
    Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

/// A volume and a claim in a separate class: once they are bound, the binder has started.
pub fn canaries() -> (Value, Value) {
    (volume_named("pv-canary", "canary", "1Gi"), claim_named(CANARY, "canary", "1Gi"))
}

/// The canary claim's name.
pub const CANARY: &str = "c-canary";

fn volume_named(name: &str, class: &str, size: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": class, "hostPath": {"path": format!("/mnt/bench/{name}")},
        },
    })
}

fn claim_named(name: &str, class: &str, size: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": size}},
        },
    })
}

/// Creates the classes of all scenarios.
pub async fn create_classes(client: &Client) -> Result<(), String> {
    let class = |name| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "kubernetes.io/no-provisioner",
        })
    };
    create(client, CLASSES, vec![class("bench"), class("canary")]).await
}

/// Creates objects concurrently.
pub async fn create(client: &Client, path: &str, objects: Vec<Value>) -> Result<(), String> {
    let create = |object: Value| async move { send(client, Method::POST, path, &object).await };
    stream::iter(objects).map(create).buffer_unordered(AT_ONCE).try_collect().await
}

/// Creates volumes and marks them Available, as a binder does.
pub async fn create_available(client: &Client, volumes: Vec<Value>) -> Result<(), String> {
    let available = json!({"status": {"phase": "Available"}});
    let available = &available;
    let create = |volume: Value| async move {
        send(client, Method::POST, VOLUMES, &volume).await?;
        let name = volume["metadata"]["name"].as_str().unwrap_or_default();
        send(client, Method::PATCH, &format!("{VOLUMES}/{name}/status"), available).await
    };
    stream::iter(volumes).map(create).buffer_unordered(AT_ONCE).try_collect().await
}

async fn send(client: &Client, method: Method, path: &str, body: &Value) -> Result<(), String> {
    let failed = |error: kube::Error| format!("{path}: {error}");
    let response = client.send(request(method, path, body)?.map(Body::from)).await.map_err(failed)?;
    let status = response.status();
    let bytes = response.into_body().collect_bytes().await.map_err(failed)?;
    if status.is_success() { Ok(()) } else { Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&bytes))) }
}

/// The API server's count of writes to volumes and claims.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Writes {
    /// Successful writes.
    pub done: f64,
    /// Rejected writes, mostly conflicts.
    pub refused: f64,
}

/// The number of updates so far, by any client. Creations are not counted: only the benchmark
/// creates objects.
pub async fn writes(client: &Client) -> Result<Writes, String> {
    let request = http::Request::get("/metrics").body(Vec::new()).map_err(|error| error.to_string())?;
    let page = client.request_text(request).await.map_err(|error| format!("/metrics: {error}"))?;
    Ok(count(&page))
}

fn count(page: &str) -> Writes {
    let mut writes = Writes::default();
    for line in page.lines().filter_map(|line| line.strip_prefix("apiserver_request_total{")) {
        let Some((labels, value)) = line.rsplit_once("} ") else { continue };
        let is =
            |label: &str, values: &[&str]| values.iter().any(|value| labels.contains(&format!("{label}=\"{value}\"")));
        if is("verb", &["PUT", "PATCH", "APPLY"]) && is(",resource", &["persistentvolumes", "persistentvolumeclaims"]) {
            let value: f64 = value.parse().unwrap_or_default();
            *if is("code", &["200"]) { &mut writes.done } else { &mut writes.refused } += value;
        }
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_updates_are_counted() {
        let line = |verb: &str, resource: &str, code: u32, count: u32| {
            format!(
                "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"{resource}\",\
                 scope=\"resource\",subresource=\"\",verb=\"{verb}\",version=\"v1\"}} {count}\n"
            )
        };
        let page = line("PUT", "persistentvolumes", 200, 4)
            + &line("PATCH", "persistentvolumeclaims", 200, 3)
            + &line("PATCH", "persistentvolumeclaims", 409, 2)
            + &line("POST", "persistentvolumes", 201, 9)
            + &line("PATCH", "events", 200, 9);
        assert_eq!(count(&page), Writes { done: 7.0, refused: 2.0 });
    }
}
