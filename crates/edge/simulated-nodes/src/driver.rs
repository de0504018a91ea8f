//! The simulated CSI driver: storage on simulated nodes, as far as the API tells. There is no disk behind it, and no socket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bindery_model::Quantity;
use bindery_provisioner_sdk::{Failure, FailureEffect, ProvisionContext, Storage};
use futures::future::{BoxFuture, ready};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::calls::{Calls, Patch, Refused};
use crate::offer::{self, CAPACITIES, CLASS, DRIVER, HOSTNAME, ROOM};
use crate::rooms::Rooms;
use crate::shape::SIMULATED;

const NODES: &str = "/api/v1/nodes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const VOLUMES: &str = "/api/v1/persistentvolumes";
/// How often nodes and classes are looked at, unless something was made or removed before.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long several changes are waited for, to be said together.
const TOGETHER: Duration = Duration::from_millis(50);

/// The driver. It knows who has how much by heart, and learns it from the volumes there are when it starts.
#[derive(Clone)]
pub struct Driver {
    shared: Arc<Shared>,
}

/// What was said already.
#[derive(Default)]
struct Said {
    /// That the driver is on these nodes, by their UIDs.
    nodes: BTreeSet<String>,
    /// The classes that it serves.
    classes: Vec<String>,
    /// How much room there is, by the name of the object that says so.
    rooms: BTreeMap<String, i128>,
}

struct Shared {
    rooms: Mutex<Rooms>,
    changed: Notify,
    /// How much a node has, unless it says otherwise.
    each: i128,
}

impl Driver {
    /// A driver whose nodes have so many bytes each, unless they say otherwise.
    pub fn new(each: i128) -> Driver {
        Driver { shared: Arc::new(Shared { rooms: Mutex::default(), changed: Notify::new(), each }) }
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.shared.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what there is, and goes on saying so as it changes, for ever.
    pub async fn run(self, api: Arc<bindery_runtime::Api>) {
        let calls = Calls::new(api);
        while let Err(why) = self.introduce(&calls).await {
            tracing::warn!(%why, "the simulated CSI driver cannot be introduced");
            sleep(crate::heartbeat::AGAIN).await;
        }
        let mut said = Said::default();
        loop {
            let look_at = Instant::now() + LOOK_EVERY;
            let mut outcome = self.look(&calls, &mut said).await;
            while outcome.is_ok() && Instant::now() < look_at {
                outcome = self.say_rooms(&calls, &mut said).await;
                // Something was made or removed, and more may be at the same time; or nothing was for a while.
                let _ = timeout_at(look_at, self.shared.changed.notified()).await;
                sleep(TOGETHER).await;
            }
            if let Err(why) = outcome {
                tracing::warn!(%why, "the simulated CSI driver cannot say what there is");
                sleep(crate::heartbeat::AGAIN).await;
            }
        }
    }

    /// Makes the driver and its class, where they are not there, and learns what there is on nodes.
    async fn introduce(&self, calls: &Calls) -> Result<(), Refused> {
        let volumes = calls.read(VOLUMES).await?;
        for volume in items(&volumes).filter(|volume| volume["spec"]["csi"]["driver"] == DRIVER) {
            let name = volume["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_default();
            let terms = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
            let node = terms[0]["matchExpressions"][0]["values"][0].as_str().unwrap_or_default();
            let bytes = bytes(&volume["spec"]["capacity"]["storage"]).unwrap_or_default();
            self.rooms().hold(name, node, bytes);
        }
        for (collection, object) in [("/apis/storage.k8s.io/v1/csidrivers", offer::driver()), (CLASSES, offer::class())]
        {
            unless_there(calls.make(collection, &object).await)?;
        }
        tracing::info!(driver = DRIVER, class = CLASS, "a simulated CSI driver: there is no storage behind it");
        Ok(())
    }

    /// Looks at which nodes and classes there are, and says on which nodes the driver is.
    async fn look(&self, calls: &Calls, said: &mut Said) -> Result<(), Refused> {
        let nodes = calls.read(&format!("{NODES}?labelSelector={SIMULATED}%3Dtrue")).await?;
        let name = |node: &Value| node["metadata"]["labels"][HOSTNAME].as_str().map(str::to_owned);
        let room = |node: &Value| bytes(&node["metadata"]["annotations"][ROOM]).unwrap_or(self.shared.each);
        let sizes = items(&nodes).filter_map(|node| Some((name(node)?, room(node))));
        self.rooms().set_nodes(sizes.collect());
        for node in items(&nodes) {
            let uid = node["metadata"]["uid"].as_str().unwrap_or_default();
            if !said.nodes.contains(uid) {
                unless_there(calls.make("/apis/storage.k8s.io/v1/csinodes", &offer::on_node(node)).await)?;
                said.nodes.insert(uid.to_owned());
            }
        }
        let classes = calls.read(CLASSES).await?;
        let ours = items(&classes).filter(|class| class["provisioner"] == DRIVER);
        said.classes = ours.filter_map(|class| class["metadata"]["name"].as_str()).map(str::to_owned).collect();
        Ok(())
    }

    /// Says how much room there is on each node for each class, where that has changed.
    async fn say_rooms(&self, calls: &Calls, said: &mut Said) -> Result<(), Refused> {
        let free: Vec<(String, i128)> = {
            let rooms = self.rooms();
            rooms.nodes().map(|node| (node.to_owned(), rooms.free(node))).collect()
        };
        for class in said.classes.clone() {
            for (node, free) in &free {
                let name = offer::capacity_name(&class, node);
                if said.rooms.get(&name) != Some(free) {
                    say_capacity(calls, &class, node, *free).await?;
                    said.rooms.insert(name, *free);
                }
            }
        }
        Ok(())
    }

    fn make(&self, ask: ProvisionContext<'_>) -> Result<Value, Failure> {
        let request = &ask.claim["spec"]["resources"]["requests"]["storage"];
        let bytes = bytes(request).ok_or_else(|| Failure::new("the claim asks for no amount of storage"))?;
        let places = match &ask.request.topology {
            Ok(places) => places.as_ref().map(|places| places.preferred.as_slice()).unwrap_or_default(),
            Err(failure) => return Err(failure.clone()),
        };
        let mut nodes: Vec<&str> = Vec::new();
        nodes.extend(places.iter().flatten().filter(|(key, _)| key == HOSTNAME).map(|(_, node)| node.as_str()));
        let volume = ask.request.volume.as_str();
        let taken = self.rooms().take(volume, bytes, &nodes);
        let node = taken.map_err(|full| {
            let node = full.node.as_deref().unwrap_or("any node");
            let error = format!(
                "rpc error: code = ResourceExhausted desc = not enough simulated storage: {} asked for, {} left on {node}",
                offer::amount(bytes),
                offer::amount(full.free)
            );
            let after = if ask.request.node.is_some() { FailureEffect::Reschedule } else { FailureEffect::Nothing };
            Failure::new(error).with(after)
        })?;
        self.shared.changed.notify_one();
        Ok(offer::volume(volume, &node, bytes, ask.claim, ask.class))
    }
}

impl Storage for Driver {
    fn prepare<'a>(&'a self, ask: ProvisionContext<'a>) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(ready(ask.request.topology.clone().map(|_| Value::Null)))
    }

    fn create<'a>(&'a self, ask: ProvisionContext<'a>, _: &'a Value) -> BoxFuture<'a, Result<Value, Failure>> {
        Box::pin(ready(self.make(ask)))
    }

    fn delete<'a>(&'a self, volume: &'a Value) -> BoxFuture<'a, Result<(), Failure>> {
        self.rooms().give_back(volume["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_default());
        self.shared.changed.notify_one();
        Box::pin(ready(Ok(())))
    }
}

async fn say_capacity(calls: &Calls, class: &str, node: &str, free: i128) -> Result<(), Refused> {
    let path = format!("{CAPACITIES}/{}", offer::capacity_name(class, node));
    match calls.read(&path).await {
        Ok(seen) => {
            let change = json!({"capacity": offer::amount(free), "maximumVolumeSize": offer::amount(free)});
            calls.patch(&path, &seen, Patch::Merge, change).await.map(|_| ())
        }
        Err(Refused::NotFound) => unless_there(calls.make(CAPACITIES, &offer::capacity(class, node, free)).await),
        Err(why) => Err(why),
    }
}

/// What is there already need not be made.
fn unless_there(made: Result<Value, Refused>) -> Result<(), Refused> {
    match made {
        Ok(_) | Err(Refused::Conflict) => Ok(()),
        Err(why) => Err(why),
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

fn bytes(quantity: &Value) -> Option<i128> {
    quantity.as_str()?.parse::<Quantity>().ok().map(|quantity| quantity.units())
}
