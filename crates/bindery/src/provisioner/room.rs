//! How much room a driver has, told to schedulers: whose objects that makes, and about what.

use std::collections::BTreeSet;
use std::sync::Arc;

use bindery_cache::Cache;
use bindery_csi::capacity::{Counts, Identity, Keeper, Place, Wanted, managed_by, owner, segments};
use bindery_csi::{Driver, Introduction, Look};
use bindery_engine::Engine;
use bindery_model::{BindingMode, Class, Kind, Name};
use bindery_runtime::{Ask, Message};
use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::csi::api_with;
use super::flags;
use super::node::Own;

/// The pod that this runs in, as far as it has to be known.
pub struct Pod {
    namespace: String,
    /// Its name, and how far above it the owner of what is told is looked for.
    owner: Option<(String, u32)>,
}

/// The pod that this runs in, where it is told how much room there is.
pub fn pod(flags: &flags::CapacityFlags) -> Result<Option<Pod>, String> {
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
    Ok(Some(Pod { namespace, owner }))
}

/// Whose the objects are that tell of room.
pub async fn identity(pod: Pod, driver: &str, own: Option<&Own>, look: &dyn Look) -> Result<Identity, String> {
    let Pod { namespace, owner: above } = pod;
    let owner = match above {
        None => None,
        Some((pod, level)) => Some(owner(look, &namespace, &pod, level).await?),
    };
    let managed_by = managed_by(own.map(|own| own.name.as_str()));
    Ok(Identity { namespace, driver: driver.to_owned(), managed_by, owner })
}

/// Whoever tells how much room there is.
pub async fn keeper(
    args: &flags::Args,
    identity: Identity,
    driver: &Driver,
    changed: Arc<Notify>,
    counts: Arc<Counts>,
) -> Result<Keeper, String> {
    let flags = &args.capacity;
    let rate = Some((flags.kube_api_capacity_qps, flags.kube_api_capacity_burst));
    Ok(Keeper {
        api: Arc::new(api_with(args, rate).await?),
        driver: driver.clone(),
        identity,
        poll: flags.capacity_poll_interval,
        calls_max: flags.capacity_threads,
        changed,
        counts,
    })
}

/// About what it is told: the driver's classes and places, as the engine knows them; `None` while it does not know all.
pub fn wanted(
    args: &flags::Args,
    driver: &Introduction,
    own: Option<&Own>,
    outbox: UnboundedSender<Message>,
) -> impl Fn() -> BoxFuture<'static, Option<Wanted>> + use<> {
    let (name, at_once) = (Name::from(driver.name.as_str()), args.capacity.capacity_for_immediate_binding);
    // Where there is but one place, it need not be looked for.
    let only = match own {
        Some(own) => Some(own.place.clone()),
        None => (!driver.abilities.topology).then(Place::new),
    };
    move || {
        let (name, only) = (name.clone(), only.clone());
        ask(&outbox, move |known| {
            let places = only.map_or_else(|| places(known, &name), |only| BTreeSet::from([only]));
            Wanted { classes: classes(known, &name, at_once), places }
        })
    }
}

/// Asks the engine what it knows; `None` while it does not know all.
pub fn ask<T: Send + 'static>(
    outbox: &UnboundedSender<Message>,
    look: impl FnOnce(&Cache) -> T + Send + 'static,
) -> BoxFuture<'static, Option<T>> {
    let (question, answer) = Ask::new(move |engine: &Engine| engine.is_synced().then(|| look(engine.known())));
    let sent = outbox.send(Message::Asked(question));
    Box::pin(async move {
        sent.ok()?;
        answer.await.ok()?
    })
}

/// The driver's classes; those whose volumes are made at once only where that is asked for.
fn classes(known: &Cache, driver: &Name, at_once: bool) -> BTreeSet<String> {
    let class = |key| known.object(&key)?.get::<Class>().cloned();
    let classes = known.keys(Kind::Class).into_iter().filter_map(class);
    let ours = classes.filter(|class| class.provisioner == *driver);
    let told = ours.filter(|class| at_once || class.binding == Some(BindingMode::WaitForFirstConsumer));
    told.map(|class| class.meta.name.to_string()).collect()
}

/// The driver's places.
fn places(known: &Cache, driver: &Name) -> BTreeSet<Place> {
    let node = |name: &Name| {
        let keys = known.csi_node(name)?.driver(driver)?.topology_keys.iter().map(ToString::to_string);
        let (keys, labels) = (keys.collect::<Vec<String>>(), &known.node(name)?.labels);
        let labels = keys.iter().filter_map(|key| Some((key.clone(), labels.get(key)?.to_string()))).collect();
        Some((labels, keys))
    };
    let nodes: Vec<(Place, Vec<String>)> = known.nodes().filter_map(|found| node(found.name())).collect();
    segments(nodes.iter().map(|(labels, keys)| (labels.clone(), keys.as_slice())))
}
