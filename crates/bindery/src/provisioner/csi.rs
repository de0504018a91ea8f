//! `bindery provisioner csi`: beside a CSI driver, in place of csi-provisioner.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedSender;

use super::counted::Counted;
use super::endpoint::{self, Election};
use super::gates::Gates;
use super::node::{self, Own};
use super::{flags, room};
use crate::metrics::Taken;
use crate::{connect, leading, serve};
use bindery_csi::capacity::CapacityPublisher;
use bindery_csi::{ApiObjects, Csi, Driver, DriverInfo, ObjectClient, Setup, remove_stale_snapshot_finalizers};
use bindery_engine::{Config as EngineConfig, Engine};
use bindery_model::migration::Plugin;
use bindery_provisioner_sdk::{Config, Provisioner, ProvisioningWorker, TopologyConfig};
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, Message, Observer, RunOperation};

/// Runs until it is told to stop, or until the driver or the lease is lost.
pub async fn run(args: flags::Args) -> Result<(), String> {
    // What is wrong with this side is said at once: a driver may be long in coming.
    let gates = Gates::read(&args.feature_gates)?;
    args.check()?;
    let node_name = node::name(&args.node)?;
    let pod = room::pod(&args.capacity)?;
    let api = Arc::new(api(&args).await?);
    let listener = match args.address() {
        Some(address) => Some(endpoint::listen(address).await?),
        None => None,
    };
    let taken = Taken::default();
    let counted = Counted::new(taken.clone());
    let driver = Driver::connect(&args.csi_address, args.timeout, Arc::new(counted.clone())).await?;
    let mut introduced = driver.identify().await?;
    introduced.capabilities.topology &= gates.topology;
    tracing::info!(driver = introduced.name, version = introduced.version, capabilities = ?introduced.capabilities, "serves");
    let own = node::own(node_name, &driver).await?;
    let setup = setup(&args, &gates, &introduced, own.as_ref(), &api).await;
    let config = config(&args, &introduced, own.as_ref(), &setup.identity);
    let engine = engine(&args, config.clone());
    // Where upstream looks into its caches we read live: that does not count against the rate, and workers limit it.
    let live = Arc::new(api_with(&args, None).await?);
    let look: Arc<dyn ObjectClient> = Arc::new(ApiObjects(live.clone()));
    let csi = Arc::new(Csi::new(setup, driver.clone(), look.clone()));
    let room = match pod {
        None => None,
        Some(pod) => {
            let identity = room::identity(pod, &introduced.name, own.as_ref(), &*look).await?;
            Some(room::keeper(&args, identity, &driver, csi.changed(), counted.capacities()).await?)
        }
    };
    let taking = own.as_ref().and_then(|own| own.taking(&args.node, csi.clone(), look.clone()));
    let keeper: Arc<dyn RunOperation> = Arc::new(ProvisioningWorker::new(live, csi));
    let observer: Arc<dyn Observer> = Arc::new(counted.clone());
    let mut hosted = EngineHost::start_with(&api, engine, &observer, |_| keeper);
    if let Some(listener) = listener {
        serve(&args, listener, &introduced.name, taken, counted, &mut hosted);
    }
    let outbox = hosted.outbox.clone();
    let duties = async {
        tokio::select! {
            () = sweeping(&args, &introduced, look) => {}
            () = telling(&args, &introduced, own.as_ref(), room, outbox.clone()) => {}
            () = node::taking(taking, config, outbox.clone()) => {}
        }
    };
    let lost = async {
        driver.lost().await;
        "the connection to the CSI driver is lost"
    };
    let lease = args.election.leader_election.then(|| args.election.lease(&introduced.name));
    tokio::select! {
        ended = leading::lead(lease, api, observer, hosted, duties) => ended,
        lost = lost => {
            // As upstream does, so that who looks at the pod sees why.
            let _ = std::fs::write("/dev/termination-log", lost);
            Err(lost.into())
        }
    }
}

/// Sees to it that no snapshot is left guarded, for ever.
async fn sweeping(args: &flags::Args, driver: &DriverInfo, look: Arc<dyn ObjectClient>) {
    if args.snapshot_orphan_sweep_interval.is_zero() || !driver.capabilities.create_delete_snapshot {
        std::future::pending::<()>().await;
    }
    loop {
        remove_stale_snapshot_finalizers(&*look).await;
        tokio::time::sleep(args.snapshot_orphan_sweep_interval).await;
    }
}

/// Sees to it that it is told how much room there is, for ever, if that is asked for.
async fn telling(
    args: &flags::Args,
    driver: &DriverInfo,
    own: Option<&Own>,
    room: Option<CapacityPublisher>,
    outbox: UnboundedSender<Message>,
) {
    match room {
        None => std::future::pending().await,
        Some(keeper) => keeper.run(room::wanted(args, driver, own, outbox)).await,
    }
}

/// The API server.
async fn api(args: &flags::Args) -> Result<Api, String> {
    let rate = (args.kube_api_qps > 0.0).then_some((args.kube_api_qps, args.kube_api_burst));
    api_with(args, rate).await
}

/// The API server, with so many calls a second.
pub(super) async fn api_with(args: &flags::Args, rate: Option<(f64, f64)>) -> Result<Api, String> {
    // Who sets the variable means it, whatever a manifest says.
    let variable = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()).map(PathBuf::from);
    let file = variable.or_else(|| args.kubeconfig.clone());
    let master: Option<http::Uri> = match args.master.as_str() {
        "" => None,
        master => Some(master.parse().map_err(|error| format!("--master={master}: {error}"))?),
    };
    let config = match (master, file) {
        (None, file) => connect::config(file.as_deref()).await?,
        // An address is enough where nobody has to say who he is.
        (Some(master), None) => kube::Config::new(master),
        (Some(master), Some(file)) => {
            let mut config = connect::config(Some(&file)).await?;
            config.cluster_url = master;
            config
        }
    };
    Ok(Api::new(bindery_runtime::client(config)?, CALL_DEADLINE, rate))
}

/// How the driver is to be used.
async fn setup(args: &flags::Args, gates: &Gates, driver: &DriverInfo, own: Option<&Own>, api: &Api) -> Setup {
    let attributes_classes = match gates.attributes_classes {
        Some(wanted) => wanted,
        None => has_attributes_classes(api).await,
    };
    Setup {
        driver: driver.name.clone(),
        identity: identity(&driver.name, own),
        capabilities: driver.capabilities,
        default_fs_type: args.default_fstype.clone(),
        extra_metadata: args.extra_create_metadata,
        read_only: args.controller_publish_readonly,
        keep_volume_mode: args.prevent_volume_mode_conversion,
        attributes_classes,
        cross_namespace: gates.cross_namespace,
    }
}

/// Whether the server knows attributes classes. Where that cannot be told, it is taken to.
async fn has_attributes_classes(api: &Api) -> bool {
    match api.get("/apis/storage.k8s.io/v1").await {
        Err(error) => {
            tracing::debug!(%error, "it cannot be told whether there are attributes classes");
            true
        }
        Ok(known) => {
            let kinds = known["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
            kinds.iter().any(|kind| kind["name"] == "volumeattributesclasses")
        }
    }
}

/// Which provisioner it is, of all that ever were: noted on the volumes that it makes.
fn identity(driver: &str, own: Option<&Own>) -> String {
    let (now, node) = (jiff::Timestamp::now(), own.map(|own| format!("-{}", own.name)).unwrap_or_default());
    format!("{}-{}-{driver}{node}", now.as_millisecond(), now.subsec_nanosecond() / 1_000 % 10_000)
}

/// How the rules are set up. A provisioner of one node asks for volumes there alone.
fn config(args: &flags::Args, driver: &DriverInfo, own: Option<&Own>, identity: &str) -> Config {
    let strict = args.strict_topology || own.is_some();
    let topology = TopologyConfig { strict, immediate: args.immediate_topology };
    Config {
        // Classes and claims of the plugin that the driver has taken over from.
        also: Plugin::of_driver(&driver.name).into_iter().map(|plugin| plugin.name().into()).collect(),
        // There is one a process, for as long as it runs.
        component: String::leak(format!("{}_{identity}", driver.name)),
        makes_blocks: true,
        attaches: driver.capabilities.publish_unpublish_volume,
        clones: driver.capabilities.clone_volume,
        prefix: args.volume_name_prefix.as_str().into(),
        uid_length: args.uid_length(),
        topology: driver.capabilities.topology.then_some(topology),
        node: own.map(Own::node),
        ..Config::new(driver.name.as_str())
    }
}

fn engine(args: &flags::Args, config: Config) -> Engine {
    let engine = EngineConfig {
        operations_max: args.worker_threads,
        storage_retry: args.retry_interval_start,
        storage_retry_max: args.retry_interval_max,
        ..EngineConfig::default()
    };
    Engine::new(engine, vec![Box::new(Provisioner::new(config))])
}

/// Serves health and metrics.
fn serve(
    args: &flags::Args,
    listener: TcpListener,
    driver: &str,
    taken: Taken,
    counted: Counted,
    hosted: &mut EngineHost,
) {
    let elects = args.election.leader_election;
    let lease = elects.then(|| args.election.lease(driver).name);
    let duration = args.election.leader_election_lease_duration;
    let election = elects.then(|| Election { taken: taken.clone(), duration });
    let shared = serve::Shared::new(hosted.outbox.clone(), taken, hosted.events.clone(), lease)
        .telling(Arc::new(move |registry| counted.register(registry)));
    hosted.run("the HTTP server", endpoint::serve(listener, shared, args.metrics_path.clone(), election));
}
