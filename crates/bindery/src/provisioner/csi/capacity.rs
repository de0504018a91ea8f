//! Publishing the driver's storage capacity as CSIStorageCapacity objects: their owner, and the
//! classes and topology segments they cover.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_cache::Cache;
use bindery_csi::capacity::{
    CapacityChanges, CapacityPublisher, Counts, Identity, RetryDelays, Segment, Targets, managed_by, owner, segments,
};
use bindery_csi::{Driver, DriverInfo, ObjectClient};
use bindery_engine::Engine;
use bindery_model::{BindingMode, Class, Kind, Name};
use bindery_runtime::{Api, EngineQuery, Message};
use futures::future::BoxFuture;
use tokio::sync::mpsc::UnboundedSender;

use super::flags::{Args, CapacityFlags};
use super::node_deployment::LocalNode;

/// The pod that this process runs in.
pub struct OwnPod {
    namespace: String,
    /// The pod's name, and the level of its owner that owns the CSIStorageCapacity objects.
    owner: Option<(String, u32)>,
}

/// The pod that this process runs in, with `--enable-capacity`.
pub fn own_pod(flags: &CapacityFlags) -> Result<Option<OwnPod>, String> {
    if !flags.enable_capacity {
        return Ok(None);
    }
    let variable = |variable: &str, what: &str| {
        let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
        value.ok_or_else(|| format!("the environment variable {variable} must be set with --enable-capacity{what}"))
    };
    let namespace = variable("NAMESPACE", "")?;
    let owner = match u32::try_from(flags.capacity_ownerref_level) {
        Err(_) => None,
        Ok(level) => Some((variable("POD_NAME", ", or --capacity-ownerref-level=-1")?, level)),
    };
    Ok(Some(OwnPod { namespace, owner }))
}

/// The namespace, labels and owner of CSIStorageCapacity objects.
pub async fn identity(
    pod: OwnPod,
    driver: &str,
    node: Option<&LocalNode>,
    look: &dyn ObjectClient,
) -> Result<Identity, String> {
    let OwnPod { namespace, owner: above } = pod;
    let owner = match above {
        None => None,
        Some((pod, level)) => Some(owner(look, &namespace, &pod, level).await?),
    };
    let managed_by = managed_by(node.map(|node| node.name.as_str()));
    Ok(Identity { namespace, driver: driver.to_owned(), managed_by, owner })
}

/// The task that publishes capacity.
pub fn publisher(
    args: &Args,
    api: Api,
    identity: Identity,
    driver: &Driver,
    changes: Arc<CapacityChanges>,
    counts: Arc<Counts>,
) -> CapacityPublisher {
    let flags = &args.capacity;
    CapacityPublisher {
        api: Arc::new(api),
        driver: driver.clone(),
        identity,
        poll: flags.capacity_poll_interval,
        calls_max: flags.capacity_threads,
        retry: RetryDelays { first: args.retry_interval_start, max: args.retry_interval_max },
        changes,
        counts,
    }
}

/// The driver's classes and topology segments, from the engine's cache; `None` until the initial
/// lists are complete.
pub fn wanted(
    args: &Args,
    driver: &DriverInfo,
    node: Option<&LocalNode>,
    outbox: UnboundedSender<Message>,
) -> impl Fn() -> BoxFuture<'static, Option<Targets>> + use<> {
    let (name, immediate) = (Name::from(driver.name.as_str()), args.capacity.capacity_for_immediate_binding);
    // The only segment, if the driver has just one.
    let only = match node {
        Some(node) => Some(node.topology.clone()),
        None => (!driver.capabilities.topology).then(Segment::new),
    };
    move || {
        let (name, only) = (name.clone(), only.clone());
        query(&outbox, move |known| {
            let places = only.map_or_else(|| topology_segments(known, &name), |only| BTreeSet::from([only]));
            Targets { classes: classes(known, &name, immediate), segments: places }
        })
    }
}

/// Reads from the engine's cache; `None` until the initial lists are complete.
pub fn query<T: Send + 'static>(
    outbox: &UnboundedSender<Message>,
    read: impl FnOnce(&Cache) -> T + Send + 'static,
) -> BoxFuture<'static, Option<T>> {
    let (question, answer) = EngineQuery::new(move |engine: &Engine| engine.is_synced().then(|| read(engine.known())));
    let sent = outbox.send(Message::Query(question));
    Box::pin(async move {
        sent.ok()?;
        answer.await.ok()?
    })
}

/// The driver's classes, with or without those with Immediate binding.
fn classes(known: &Cache, driver: &Name, immediate: bool) -> BTreeSet<String> {
    let class = |key| known.object(&key)?.get::<Class>().cloned();
    let classes = known.keys(Kind::Class).into_iter().filter_map(class);
    let of_driver = classes.filter(|class| class.provisioner == *driver);
    let published = of_driver.filter(|class| immediate || class.binding == Some(BindingMode::WaitForFirstConsumer));
    published.map(|class| class.meta.name.to_string()).collect()
}

/// The topology segments of the driver's nodes.
fn topology_segments(known: &Cache, driver: &Name) -> BTreeSet<Segment> {
    let node = |name: &Name| {
        let keys = known.csi_node(name)?.driver(driver)?.topology_keys.iter().map(ToString::to_string);
        let (keys, labels) = (keys.collect::<Vec<String>>(), &known.node(name)?.labels);
        let labels = keys.iter().filter_map(|key| Some((key.clone(), labels.get(key)?.to_string()))).collect();
        Some((labels, keys))
    };
    let nodes: Vec<(Segment, Vec<String>)> = known.nodes().filter_map(|found| node(found.name())).collect();
    segments(nodes.iter().map(|(labels, keys)| (labels.clone(), keys.as_slice())))
}
