//! What a kubelet does for its node: it makes the node, says that it is ready, and renews its lease.

use std::sync::Arc;
use std::time::Duration;

use bindery_model::Name;
use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use crate::addresses::Range;
use crate::calls::{Calls, Patch, Refused, now};
use crate::shape;

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// How often a lease is renewed, as by a kubelet.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// FailureEffect how many renewals the node's conditions are said again. A kubelet does it every five minutes too.
const SAY_EVERY: u32 = 30;
/// How long to wait before trying again what failed.
pub const AGAIN: Duration = Duration::from_secs(1);

/// A simulated node whose kubelet is played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// Its name.
    pub name: Name,
    /// Which node of that name it is.
    pub uid: Name,
    /// Its address, if it has one.
    pub host: Option<String>,
    /// The addresses that its pods get, if it has any for them.
    pub range: Option<Range>,
}

impl Met {
    fn of(node: &Value) -> Met {
        let addresses = node["status"]["addresses"].as_array();
        let own = addresses.into_iter().flatten().find(|one| one["type"] == "InternalIP");
        Met {
            name: node["metadata"]["name"].as_str().unwrap_or_default().into(),
            uid: node["metadata"]["uid"].as_str().unwrap_or_default().into(),
            host: own.and_then(|one| one["address"].as_str()).map(str::to_owned),
            range: node["spec"]["podCIDR"].as_str().and_then(Range::parse),
        }
    }
}

/// Makes the nodes that are not there, many at a time.
pub async fn make_nodes(calls: &Arc<Calls>, count: u32) {
    let made = futures::stream::iter(1..=count).map(|number| make_node(calls, number)).buffer_unordered(64);
    let made = made.filter(|is_new| std::future::ready(*is_new)).count().await;
    tracing::info!(
        asked = count,
        made,
        "simulated nodes: no machine stands behind them, and a fake kubelet plays theirs"
    );
}

/// Makes a node if there is none of its name. Says whether it did.
async fn make_node(calls: &Calls, number: u32) -> bool {
    loop {
        match calls.make(NODES, &shape::node(number, &now())).await {
            Ok(_) => return true,
            Err(Refused::Conflict) => return false,
            Err(why) => tracing::warn!(number, %why, "a simulated node cannot be made"),
        }
        sleep(AGAIN).await;
    }
}

/// Meets a node: says that it is ready, and takes off the taint that kept pods away until then. None if it is gone.
pub async fn meet(calls: &Calls, name: &Name) -> Option<Met> {
    loop {
        match say_ready(calls, name).await {
            Ok(node) => return Some(Met::of(&node)),
            Err(Refused::NotFound) => return None,
            // Somebody else wrote to it at the same time.
            Err(Refused::Conflict) => {}
            Err(why) => {
                tracing::warn!(node = %name, %why, "the fake kubelet cannot say that its node is ready");
                sleep(AGAIN).await;
            }
        }
    }
}

/// Says what a node's conditions are. Where it bears the taint of a node that is not ready, that goes: on a cluster
/// kube-controller-manager takes it off.
async fn say_ready(calls: &Calls, name: &Name) -> Result<Value, Refused> {
    let path = format!("{NODES}/{name}");
    let node = calls.read(&path).await?;
    let change = json!({"status": {"conditions": shape::conditions(&node, &now())}});
    let node = calls.patch(&format!("{path}/status"), &node, Patch::Strategic, change).await?;
    match shape::taints_when_ready(&node) {
        None => Ok(node),
        Some(taints) => calls.patch(&path, &node, Patch::Merge, json!({"spec": {"taints": taints}})).await,
    }
}

/// Keeps a node alive, for as long as it is there: renews its lease, and says now and then that it is ready. `offset` is when
/// in each ten seconds, so that not all nodes come at once.
pub async fn beat(calls: Arc<Calls>, met: Met, offset: Duration) {
    let mut lease = Lease { calls: &calls, met: &met, seen: None };
    lease.renew().await;
    let start = Instant::now() + offset;
    for round in 1_u32.. {
        sleep_until(start + RENEW_EVERY * round).await;
        lease.renew().await;
        if round % SAY_EVERY == 0
            && let Err(why) = say_ready(&calls, &met.name).await
        {
            tracing::debug!(node = %met.name, %why, "the fake kubelet did not say that its node is ready");
        }
    }
}

/// When in each ten seconds a node's lease is renewed.
pub fn offset(name: &Name) -> Duration {
    use std::hash::BuildHasher as _;
    let hash = rustc_hash::FxBuildHasher.hash_one(name);
    Duration::from_millis(hash % u64::try_from(RENEW_EVERY.as_millis()).unwrap_or(1))
}

/// A node's lease.
struct Lease<'a> {
    calls: &'a Calls,
    met: &'a Met,
    /// The lease as it was last seen; none if that is not known.
    seen: Option<Value>,
}

impl Lease<'_> {
    /// Renews the lease, or makes it. What fails is tried again when it is next due.
    async fn renew(&mut self) {
        match self.try_renew().await {
            Ok(lease) => self.seen = Some(lease),
            Err(why) => {
                self.seen = None;
                tracing::debug!(node = %self.met.name, %why, "the lease of a simulated node was not renewed");
            }
        }
    }

    async fn try_renew(&mut self) -> Result<Value, Refused> {
        let path = format!("{LEASES}/{}", self.met.name);
        let mut change = shape::lease(&self.met.name, &self.met.uid, Timestamp::now());
        let seen = match self.seen.take() {
            Some(seen) => Ok(seen),
            None => self.calls.read(&path).await,
        };
        match seen {
            Ok(seen) => self.calls.patch(&path, &seen, Patch::Merge, change).await,
            Err(Refused::NotFound) => {
                change["apiVersion"] = "coordination.k8s.io/v1".into();
                change["kind"] = "Lease".into();
                change["metadata"]["name"] = self.met.name.as_str().into();
                self.calls.make(LEASES, &change).await
            }
            Err(why) => Err(why),
        }
    }
}
