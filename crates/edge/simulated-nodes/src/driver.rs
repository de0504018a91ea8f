//! The simulated CSI driver. It registers itself and provisions PersistentVolumes, but has no
//! storage and no socket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindery_model::Quantity;
use bindery_provisioner_sdk::{Failure, FailureEffect, ProvisionContext, Storage};
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::capacity::NodeCapacity;
use crate::client::{ApiClient, CallError, Patch};
use crate::node::SIMULATED;
use crate::objects::{self, CAPACITIES, CLASS, DRIVER, HOSTNAME, STORAGE_ANNOTATION};

const NODES: &str = "/api/v1/nodes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const VOLUMES: &str = "/api/v1/persistentvolumes";
/// How often to list nodes and classes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// How long to wait for more changes before capacity is published.
const BATCH_DELAY: Duration = Duration::from_millis(50);

/// The driver. Allocations are kept in memory, and restored from the existing volumes at startup.
#[derive(Clone)]
pub struct Driver {
    shared: Arc<Shared>,
}

/// What was published already.
#[derive(Default)]
struct Published {
    /// The UIDs of nodes with a CSINode.
    nodes: BTreeSet<String>,
    /// The driver's classes.
    classes: Vec<String>,
    /// The published capacities, by object name.
    capacity: BTreeMap<String, i128>,
}

struct Shared {
    capacity: Mutex<NodeCapacity>,
    changed: Notify,
    /// The storage of a node without the annotation.
    default_bytes: i128,
}

impl Driver {
    /// A driver whose nodes have this much storage, unless their annotation says otherwise.
    pub fn new(default_bytes: i128) -> Driver {
        Driver { shared: Arc::new(Shared { capacity: Mutex::default(), changed: Notify::new(), default_bytes }) }
    }

    fn capacity(&self) -> MutexGuard<'_, NodeCapacity> {
        self.shared.capacity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the driver, and publishes its capacity forever.
    pub async fn run(self, api: Arc<bindery_runtime::Api>) {
        let client = ApiClient::new(api);
        while let Err(error) = self.register(&client).await {
            tracing::warn!(%error, "cannot register the simulated CSI driver");
            sleep(crate::heartbeat::RETRY_DELAY).await;
        }
        let mut published = Published::default();
        loop {
            let refresh_at = Instant::now() + REFRESH_INTERVAL;
            let mut outcome = self.refresh(&client, &mut published).await;
            while outcome.is_ok() && Instant::now() < refresh_at {
                outcome = self.publish_capacity(&client, &mut published).await;
                // Wait for a change, and a moment longer for others.
                let _ = timeout_at(refresh_at, self.shared.changed.notified()).await;
                sleep(BATCH_DELAY).await;
            }
            if let Err(error) = outcome {
                tracing::warn!(%error, "cannot publish the capacity of the simulated CSI driver");
                sleep(crate::heartbeat::RETRY_DELAY).await;
            }
        }
    }

    /// Restores the allocations from existing volumes, and creates the CSIDriver and the class
    /// unless they exist.
    async fn register(&self, client: &ApiClient) -> Result<(), CallError> {
        let volumes = client.read(VOLUMES).await?;
        for volume in items(&volumes).filter(|volume| volume["spec"]["csi"]["driver"] == DRIVER) {
            let name = volume["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_default();
            let terms = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
            let node = terms[0]["matchExpressions"][0]["values"][0].as_str().unwrap_or_default();
            let bytes = bytes(&volume["spec"]["capacity"]["storage"]).unwrap_or_default();
            self.capacity().record(name, node, bytes);
        }
        for (collection, object) in
            [("/apis/storage.k8s.io/v1/csidrivers", objects::driver()), (CLASSES, objects::class())]
        {
            ignore_existing(client.create(collection, &object).await)?;
        }
        tracing::info!(driver = DRIVER, class = CLASS, "simulated CSI driver registered; it stores no data");
        Ok(())
    }

    /// Lists nodes and classes, and creates missing CSINodes.
    async fn refresh(&self, client: &ApiClient, published: &mut Published) -> Result<(), CallError> {
        let nodes = client.read(&format!("{NODES}?labelSelector={SIMULATED}%3Dtrue")).await?;
        let name = |node: &Value| node["metadata"]["labels"][HOSTNAME].as_str().map(str::to_owned);
        let storage = |node: &Value| {
            bytes(&node["metadata"]["annotations"][STORAGE_ANNOTATION]).unwrap_or(self.shared.default_bytes)
        };
        let sizes = items(&nodes).filter_map(|node| Some((name(node)?, storage(node))));
        self.capacity().set_nodes(sizes.collect());
        for node in items(&nodes) {
            let uid = node["metadata"]["uid"].as_str().unwrap_or_default();
            if !published.nodes.contains(uid) {
                ignore_existing(client.create("/apis/storage.k8s.io/v1/csinodes", &objects::csi_node(node)).await)?;
                published.nodes.insert(uid.to_owned());
            }
        }
        let classes = client.read(CLASSES).await?;
        let ours = items(&classes).filter(|class| class["provisioner"] == DRIVER);
        published.classes = ours.filter_map(|class| class["metadata"]["name"].as_str()).map(str::to_owned).collect();
        Ok(())
    }

    /// Publishes the capacity of each node for each class, if it has changed.
    async fn publish_capacity(&self, client: &ApiClient, published: &mut Published) -> Result<(), CallError> {
        let free: Vec<(String, i128)> = {
            let capacity = self.capacity();
            capacity.nodes().map(|node| (node.to_owned(), capacity.free(node))).collect()
        };
        for class in published.classes.clone() {
            for (node, free) in &free {
                let name = objects::capacity_name(&class, node);
                if published.capacity.get(&name) != Some(free) {
                    write_capacity(client, &class, node, *free).await?;
                    published.capacity.insert(name, *free);
                }
            }
        }
        Ok(())
    }

    fn provision(&self, ask: ProvisionContext<'_>) -> Result<Value, Failure> {
        let request = &ask.claim["spec"]["resources"]["requests"]["storage"];
        let bytes = bytes(request).ok_or_else(|| Failure::new("the claim requests no storage"))?;
        let topology = match &ask.request.topology {
            Ok(topology) => topology.as_ref().map(|topology| topology.preferred.as_slice()).unwrap_or_default(),
            Err(failure) => return Err(failure.clone()),
        };
        let mut nodes: Vec<&str> = Vec::new();
        nodes.extend(topology.iter().flatten().filter(|(key, _)| key == HOSTNAME).map(|(_, node)| node.as_str()));
        let volume = ask.request.volume.as_str();
        let allocated = self.capacity().allocate(volume, bytes, &nodes);
        let node = allocated.map_err(|insufficient| {
            let node = insufficient.node.as_deref().unwrap_or("any node");
            let error = format!(
                "rpc error: code = ResourceExhausted desc = not enough simulated storage: {} requested, {} left on {node}",
                objects::quantity(bytes),
                objects::quantity(insufficient.free)
            );
            let after = if ask.request.node.is_some() { FailureEffect::Reschedule } else { FailureEffect::Nothing };
            Failure::new(error).with(after)
        })?;
        self.shared.changed.notify_one();
        Ok(objects::volume(volume, &node, bytes, ask.claim, ask.class))
    }
}

impl Storage for Driver {
    fn prepare<'a>(&'a self, ask: ProvisionContext<'a>) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(ready(ask.request.topology.clone().map(|_| Value::Null)))
    }

    fn create<'a>(&'a self, ask: ProvisionContext<'a>, _: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(ready(self.provision(ask)))
    }

    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>> {
        self.capacity().release(volume["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_default());
        self.shared.changed.notify_one();
        Box::pin(ready(Ok(())))
    }
}

async fn write_capacity(client: &ApiClient, class: &str, node: &str, free: i128) -> Result<(), CallError> {
    let path = format!("{CAPACITIES}/{}", objects::capacity_name(class, node));
    match client.read(&path).await {
        Ok(seen) => {
            let change = json!({"capacity": objects::quantity(free), "maximumVolumeSize": objects::quantity(free)});
            client.patch(&path, &seen, Patch::Merge, change).await.map(|_| ())
        }
        Err(CallError::NotFound) => {
            ignore_existing(client.create(CAPACITIES, &objects::capacity(class, node, free)).await)
        }
        Err(error) => Err(error),
    }
}

/// Treats an object that exists already as created.
fn ignore_existing(created: Result<Value, CallError>) -> Result<(), CallError> {
    match created {
        Ok(_) | Err(CallError::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

fn bytes(quantity: &Value) -> Option<i128> {
    quantity.as_str()?.parse::<Quantity>().ok().map(|quantity| quantity.units())
}
