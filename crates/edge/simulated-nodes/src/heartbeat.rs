//! What a kubelet does for its node: creates the Node, reports it Ready, and renews its lease.

use std::sync::Arc;
use std::time::Duration;

use bindery_model::Name;
use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use crate::addresses::PodRange;
use crate::client::{ApiClient, CallError, Patch, now};
use crate::node;

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// How often a kubelet renews its lease.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// How many renewals there are between two status updates: five minutes, as for a kubelet.
const STATUS_EVERY: u32 = 30;
/// The delay before a retry.
pub const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A simulated node whose kubelet is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// The node's name.
    pub name: Name,
    /// The node's UID.
    pub uid: Name,
    /// The node's IP address.
    pub host: Option<String>,
    /// The range of its pods' addresses.
    pub range: Option<PodRange>,
}

impl NodeInfo {
    fn of(node: &Value) -> NodeInfo {
        let addresses = node["status"]["addresses"].as_array();
        let own = addresses.into_iter().flatten().find(|one| one["type"] == "InternalIP");
        NodeInfo {
            name: node["metadata"]["name"].as_str().unwrap_or_default().into(),
            uid: node["metadata"]["uid"].as_str().unwrap_or_default().into(),
            host: own.and_then(|one| one["address"].as_str()).map(str::to_owned),
            range: node["spec"]["podCIDR"].as_str().and_then(PodRange::parse),
        }
    }
}

/// Creates the nodes that do not exist yet, concurrently.
pub async fn create_nodes(client: &Arc<ApiClient>, count: u32) {
    let created = futures::stream::iter(1..=count).map(|number| create_node(client, number)).buffer_unordered(64);
    let created = created.filter(|is_new| std::future::ready(*is_new)).count().await;
    tracing::info!(requested = count, created, "simulated nodes created; no containers will run on them");
}

/// Creates a node unless it exists. Returns whether it was created.
async fn create_node(client: &ApiClient, number: u32) -> bool {
    loop {
        match client.create(NODES, &node::node(number, &now())).await {
            Ok(_) => return true,
            Err(CallError::Conflict) => return false,
            Err(error) => tracing::warn!(number, %error, "cannot create simulated node"),
        }
        sleep(RETRY_DELAY).await;
    }
}

/// Reports a node Ready, and removes the not-ready taint. `None` if the node does not exist.
pub async fn mark_ready(client: &ApiClient, name: &Name) -> Option<NodeInfo> {
    loop {
        match report_ready(client, name).await {
            Ok(node) => return Some(NodeInfo::of(&node)),
            Err(CallError::NotFound) => return None,
            // Written concurrently: try again.
            Err(CallError::Conflict) => {}
            Err(error) => {
                tracing::warn!(node = %name, %error, "cannot report simulated node ready");
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Updates a node's conditions, and removes the not-ready taint, which kube-controller-manager
/// removes in a real cluster.
async fn report_ready(client: &ApiClient, name: &Name) -> Result<Value, CallError> {
    let path = format!("{NODES}/{name}");
    let node = client.read(&path).await?;
    let change = json!({"status": {"conditions": node::conditions(&node, &now())}});
    let node = client.patch(&format!("{path}/status"), &node, Patch::Strategic, change).await?;
    match node::taints_when_ready(&node) {
        None => Ok(node),
        Some(taints) => client.patch(&path, &node, Patch::Merge, json!({"spec": {"taints": taints}})).await,
    }
}

/// Renews a node's lease and updates its status, forever. `offset` spreads the renewals of many
/// nodes.
pub async fn run_heartbeat(client: Arc<ApiClient>, node: NodeInfo, offset: Duration) {
    let mut lease = Lease { client: &client, node: &node, seen: None };
    lease.renew().await;
    let start = Instant::now() + offset;
    for round in 1_u32.. {
        sleep_until(start + RENEW_EVERY * round).await;
        lease.renew().await;
        if round % STATUS_EVERY == 0
            && let Err(error) = report_ready(&client, &node.name).await
        {
            tracing::debug!(node = %node.name, %error, "cannot report simulated node ready");
        }
    }
}

/// The offset of a node's renewals within the renewal interval.
pub fn offset(name: &Name) -> Duration {
    use std::hash::BuildHasher as _;
    let hash = rustc_hash::FxBuildHasher.hash_one(name);
    Duration::from_millis(hash % u64::try_from(RENEW_EVERY.as_millis()).unwrap_or(1))
}

struct Lease<'a> {
    client: &'a ApiClient,
    node: &'a NodeInfo,
    /// The lease as last read or written, if known.
    seen: Option<Value>,
}

impl Lease<'_> {
    /// Renews or creates the lease. A failure is retried at the next renewal.
    async fn renew(&mut self) {
        match self.try_renew().await {
            Ok(lease) => self.seen = Some(lease),
            Err(error) => {
                self.seen = None;
                tracing::debug!(node = %self.node.name, %error, "cannot renew lease of simulated node");
            }
        }
    }

    async fn try_renew(&mut self) -> Result<Value, CallError> {
        let path = format!("{LEASES}/{}", self.node.name);
        let mut change = node::lease(&self.node.name, &self.node.uid, Timestamp::now());
        let seen = match self.seen.take() {
            Some(seen) => Ok(seen),
            None => self.client.read(&path).await,
        };
        match seen {
            Ok(seen) => self.client.patch(&path, &seen, Patch::Merge, change).await,
            Err(CallError::NotFound) => {
                change["apiVersion"] = "coordination.k8s.io/v1".into();
                change["kind"] = "Lease".into();
                change["metadata"]["name"] = self.node.name.as_str().into();
                self.client.create(LEASES, &change).await
            }
            Err(error) => Err(error),
        }
    }
}
