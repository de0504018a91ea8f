//! The simulated kubelet against the embedded API server: finalizers, recreated pods, and changing
//! labels.

use std::sync::Arc;
use std::time::Duration;

use bindery_apiserver::host::{Config, Server};
use bindery_runtime::Api;
use bindery_simulated_nodes::SIMULATED;
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config as ClientConfig};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// An API server with simulated nodes.
struct World {
    server: Server,
    client: Client,
    nodes: JoinHandle<()>,
}

impl World {
    async fn start() -> World {
        let server = Server::start(Config::in_memory()).await.expect("a server");
        let kubeconfig = Kubeconfig::from_yaml(server.kubeconfig()).expect("a kubeconfig");
        let config = ClientConfig::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = bindery_runtime::client(config.expect("a configuration")).expect("a client");
        let nodes = nodes(&client);
        World { server, client, nodes }
    }

    async fn stop(self) {
        self.nodes.abort();
        self.server.stop().await;
    }

    /// The response, or the status code of an error.
    async fn call(&self, method: Method, path: &str, body: Value) -> Result<Value, u16> {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", content).body(body);
        match self.client.request(request.expect("a request")).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => Err(status.code),
            Err(error) => panic!("{path}: {error}"),
        }
    }

    async fn pod(&self, name: &str) -> Result<Value, u16> {
        self.call(Method::GET, &format!("{PODS}/{name}"), Value::Null).await
    }

    /// Creates a pod on a node.
    async fn create(&self, name: &str, node: &str, finalizers: Value) {
        let pod = json!({
            "metadata": {"name": name, "finalizers": finalizers},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none"}]},
        });
        self.call(Method::POST, PODS, pod).await.expect("the pod is created");
    }

    async fn delete(&self, name: &str) {
        self.call(Method::DELETE, &format!("{PODS}/{name}"), Value::Null).await.expect("the pod is deleted");
    }

    async fn patch(&self, path: &str, change: Value) {
        self.call(Method::PATCH, path, change).await.expect("the object is patched");
    }

    /// Waits until a pod has the expected state.
    async fn until(&self, name: &str, is_so: impl Fn(&Result<Value, u16>) -> bool) -> Result<Value, u16> {
        for _ in 0..15_000 {
            let pod = self.pod(name).await;
            if is_so(&pod) {
                return pod;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("timed out waiting for pod {name}: {:?}", self.pod(name).await)
    }

    async fn until_running(&self, name: &str) -> Value {
        let runs = |pod: &Result<Value, u16>| pod.as_ref().is_ok_and(|pod| pod["status"]["phase"] == "Running");
        self.until(name, runs).await.expect("the pod exists")
    }

    async fn until_gone(&self, name: &str) {
        let _ = self.until(name, |pod| *pod == Err(404)).await;
    }

    /// Waits until everything done so far was handled: a pod created later is running.
    async fn settle(&self, name: &str, node: &str) {
        self.create(name, node, Value::Null).await;
        self.until_running(name).await;
    }
}

fn nodes(client: &Client) -> JoinHandle<()> {
    tokio::spawn(bindery_simulated_nodes::run(Arc::new(Api::new(client.clone(), CALL_TIMEOUT, None)), 2))
}

#[tokio::test]
async fn deletion_of_a_pod_with_a_finalizer_is_completed_once() {
    let world = World::start().await;
    world.create("held", "node-1", json!(["example.com/mine"])).await;
    world.until_running("held").await;
    world.delete("held").await;
    let is_completed =
        |pod: &Result<Value, u16>| pod.as_ref().is_ok_and(|pod| pod["metadata"]["deletionGracePeriodSeconds"] == 0);
    let held = world.until("held", is_completed).await.expect("the pod exists");
    // By the time a pod that is deleted later is gone, a second deletion of the first would have
    // happened.
    world.settle("later", "node-1").await;
    world.delete("later").await;
    world.until_gone("later").await;
    assert_eq!(world.pod("held").await, Ok(held), "it was not written again");
    world.patch(&format!("{PODS}/held"), json!({"metadata": {"finalizers": null}})).await;
    world.until_gone("held").await;
    world.stop().await;
}

#[tokio::test]
async fn recreated_pod_with_the_same_name_is_started_again() {
    let world = World::start().await;
    world.settle("app", "node-1").await;
    let first = world.until_running("app").await;
    world.delete("app").await;
    world.until_gone("app").await;
    world.settle("app", "node-2").await;
    let second = world.until_running("app").await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_eq!([&first, &second].map(|pod| &pod["status"]["hostIP"]), ["172.16.0.1", "172.16.0.2"]);
    assert_eq!([&first, &second].map(|pod| &pod["status"]["podIP"]), ["10.128.0.2", "10.128.1.2"]);
    world.stop().await;
}

#[tokio::test]
async fn node_is_simulated_only_while_it_has_the_label() {
    let world = World::start().await;
    world.settle("a", "node-1").await;
    let label = |value: Value| json!({"metadata": {"labels": {SIMULATED: value}}});
    world.patch(&format!("{NODES}/node-1"), label(Value::Null)).await;
    // Kinds are watched separately: a pod on this node runs once the watch of nodes has caught up.
    world
        .call(Method::POST, NODES, json!({"metadata": {"name": "mine", "labels": {SIMULATED: "true"}}}))
        .await
        .expect("the node is created");
    world.settle("b", "mine").await;
    world.create("c", "node-1", Value::Null).await;
    world.settle("d", "node-2").await;
    assert_eq!(world.pod("c").await.map(|pod| pod["status"]["phase"].clone()), Ok(json!("Pending")));
    world.patch(&format!("{NODES}/node-1"), label("true".into())).await;
    world.until_running("c").await;
    world.stop().await;
}

#[tokio::test]
async fn state_is_restored_after_a_restart() {
    let mut world = World::start().await;
    world.settle("before", "node-1").await;
    let before = world.until_running("before").await;
    world.create("deleted", "node-1", Value::Null).await;
    world.until_running("deleted").await;
    world.nodes.abort();
    let _ = (&mut world.nodes).await;
    world.delete("deleted").await;
    world.create("meanwhile", "node-1", Value::Null).await;
    world.nodes = nodes(&world.client);
    let meanwhile = world.until_running("meanwhile").await;
    world.until_gone("deleted").await;
    assert_eq!(world.pod("before").await, Ok(before.clone()), "it was not written again");
    assert_ne!(meanwhile["status"]["podIP"], before["status"]["podIP"]);
    world.stop().await;
}
