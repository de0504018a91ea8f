//! The fake kubelet on an embedded API server: with finalizers, with pods of one name, and with labels that come and go.

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
const A_CALL: Duration = Duration::from_secs(60);

/// A server, and simulated nodes on it.
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

    /// The answer, or the code of the refusal.
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

    /// Makes a pod on a node.
    async fn make(&self, name: &str, node: &str, finalizers: Value) {
        let pod = json!({
            "metadata": {"name": name, "finalizers": finalizers},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none"}]},
        });
        self.call(Method::POST, PODS, pod).await.expect("a pod can be made");
    }

    async fn delete(&self, name: &str) {
        self.call(Method::DELETE, &format!("{PODS}/{name}"), Value::Null).await.expect("a pod can be deleted");
    }

    async fn patch(&self, path: &str, change: Value) {
        self.call(Method::PATCH, path, change).await.expect("an object can be changed");
    }

    /// Waits until a pod is as it should be.
    async fn until(&self, name: &str, is_so: impl Fn(&Result<Value, u16>) -> bool) -> Result<Value, u16> {
        for _ in 0..15_000 {
            let pod = self.pod(name).await;
            if is_so(&pod) {
                return pod;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("pod {name} does not come to it: {:?}", self.pod(name).await)
    }

    async fn until_running(&self, name: &str) -> Value {
        let runs = |pod: &Result<Value, u16>| pod.as_ref().is_ok_and(|pod| pod["status"]["phase"] == "Running");
        self.until(name, runs).await.expect("it is there")
    }

    async fn until_gone(&self, name: &str) {
        let _ = self.until(name, |pod| *pod == Err(404)).await;
    }

    /// Waits until all that was done so far has been seen and, if need be, acted upon: a pod that comes later runs.
    async fn settle(&self, name: &str, node: &str) {
        self.make(name, node, Value::Null).await;
        self.until_running(name).await;
    }
}

fn nodes(client: &Client) -> JoinHandle<()> {
    tokio::spawn(bindery_simulated_nodes::run(Arc::new(Api::new(client.clone(), A_CALL, None)), 2))
}

#[tokio::test]
async fn a_pod_that_a_finalizer_holds_is_let_go_of_once() {
    let world = World::start().await;
    world.make("held", "node-1", json!(["example.com/mine"])).await;
    world.until_running("held").await;
    world.delete("held").await;
    let is_let_go =
        |pod: &Result<Value, u16>| pod.as_ref().is_ok_and(|pod| pod["metadata"]["deletionGracePeriodSeconds"] == 0);
    let held = world.until("held", is_let_go).await.expect("it is there");
    // Another one that is deleted later goes: by then this one would have been let go of again.
    world.settle("later", "node-1").await;
    world.delete("later").await;
    world.until_gone("later").await;
    assert_eq!(world.pod("held").await, Ok(held), "nobody wrote to it any more");
    world.patch(&format!("{PODS}/held"), json!({"metadata": {"finalizers": null}})).await;
    world.until_gone("held").await;
    world.stop().await;
}

#[tokio::test]
async fn a_pod_of_the_same_name_is_another() {
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
async fn a_node_is_simulated_for_as_long_as_it_says_so() {
    let world = World::start().await;
    world.settle("a", "node-1").await;
    let label = |value: Value| json!({"metadata": {"labels": {SIMULATED: value}}});
    world.patch(&format!("{NODES}/node-1"), label(Value::Null)).await;
    // Nodes, pods and claims are watched apart: this one shows that the watch of nodes has come so far.
    world
        .call(Method::POST, NODES, json!({"metadata": {"name": "mine", "labels": {SIMULATED: "true"}}}))
        .await
        .expect("a node can be made");
    world.settle("b", "mine").await;
    world.make("c", "node-1", Value::Null).await;
    world.settle("d", "node-2").await;
    assert_eq!(world.pod("c").await.map(|pod| pod["status"]["phase"].clone()), Ok(json!("Pending")));
    world.patch(&format!("{NODES}/node-1"), label("true".into())).await;
    world.until_running("c").await;
    world.stop().await;
}

#[tokio::test]
async fn one_that_begins_anew_finds_all_in_order() {
    let mut world = World::start().await;
    world.settle("before", "node-1").await;
    let before = world.until_running("before").await;
    world.make("deleted", "node-1", Value::Null).await;
    world.until_running("deleted").await;
    world.nodes.abort();
    let _ = (&mut world.nodes).await;
    world.delete("deleted").await;
    world.make("meanwhile", "node-1", Value::Null).await;
    world.nodes = nodes(&world.client);
    let meanwhile = world.until_running("meanwhile").await;
    world.until_gone("deleted").await;
    assert_eq!(world.pod("before").await, Ok(before.clone()), "nobody wrote to it");
    assert_ne!(meanwhile["status"]["podIP"], before["status"]["podIP"]);
    world.stop().await;
}
