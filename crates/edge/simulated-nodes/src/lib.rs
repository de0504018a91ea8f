//! Simulated nodes and kubelets for `bindery up --nodes`.
//!
//! A simulated node is only a Node object that is reported Ready, and its pods are reported Running
//! without any container being started. A simulated CSI driver provisions PersistentVolumes without
//! any storage. Everything else is real: scheduling, binding, provisioning and deletion work as in
//! a cluster. A node is simulated if it has the label [`SIMULATED`]. Other
//! nodes and their pods are never touched.
//!
//! - `node`: the Node object and its lease.
//! - `kubelet`: what the simulated kubelet does next about a pod. Synchronous, without a client.
//! - `pod_status`: the status of a running pod; `addresses`: pod IP addresses.
//! - `heartbeat`, `runner`: the resulting API calls.
//! - `driver`: the simulated CSI driver, which serves the default class; `capacity`: the storage of
//!   each node; `objects`: the objects that the driver creates.
//!
//! This crate makes no decisions about volumes: it only sees whether a claim is bound, as a kubelet
//! does.

mod addresses;
mod capacity;
mod client;
mod driver;
mod heartbeat;
mod kubelet;
mod node;
mod objects;
mod pod_status;
mod runner;

use std::sync::Arc;

use bindery_runtime::Api;

pub use driver::Driver;
pub use node::{NODES_MAX, SIMULATED};
pub use objects::{CLASS, DRIVER};

/// Creates the nodes `node-1` to `node-<count>` unless they exist, and simulates the kubelet of
/// every simulated node, forever.
pub async fn run(api: Arc<Api>, count: u32) {
    let client = Arc::new(client::ApiClient::new(api));
    heartbeat::create_nodes(&client, count).await;
    runner::KubeletRunner::new(client).await.run().await;
}
