//! `bindery provisioner csi`: a sidecar of a CSI driver, in place of csi-provisioner.

mod capacity;
mod endpoints;
mod feature_gates;
mod flags;
mod leader_election;
mod metrics;
mod node_deployment;

use std::path::PathBuf;
use std::sync::Arc;

use bindery_csi::capacity::CapacityPublisher;
use bindery_csi::{
    ApiObjects, Csi, Driver, DriverInfo, ObjectClient, Setup, TouchedClaims, remove_stale_snapshot_finalizers,
};
use bindery_engine::{Config as EngineConfig, Engine};
use bindery_model::migration::Plugin;
use bindery_provisioner_sdk::{Config, Provisioner, ProvisioningWorker, TopologyConfig};
use bindery_runtime::{
    Api, CALL_DEADLINE, EngineHost, Lease, Message, Observer, RecordTask, Records, RunOperation, check_permissions,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedSender;

use crate::cluster::{Cluster, ClusterFlags, parse_url};
use crate::endpoints::Shared;
use crate::leadership::run_as_leader;
use crate::metrics::Recorder;
use crate::permissions;
use endpoints::LeaseHealth;
use feature_gates::FeatureGates;
pub use flags::Args;
use leader_election::own_namespace;
use metrics::CsiMetrics;
use node_deployment::LocalNode;

/// Kubernetes shows the content of this file as the reason why a container terminated.
const TERMINATION_LOG: &str = "/dev/termination-log";

/// Runs until SIGTERM or SIGINT, or until the driver or the lease is lost.
pub async fn run(args: Args) -> Result<(), String> {
    // Fail on invalid flags at once, and not after the driver becomes available.
    let gates = FeatureGates::parse(&args.feature_gates)?;
    args.check()?;
    let node_name = node_deployment::node_name(&args.node)?;
    let pod = capacity::own_pod(&args.capacity)?;
    let cluster = cluster(&args).await?;
    let connect = |rate| Ok::<_, String>(Api::new(cluster.client()?, CALL_DEADLINE, rate));
    let rate = (args.kube_api_qps > 0.0).then_some((args.kube_api_qps, args.kube_api_burst));
    let api = Arc::new(connect(rate)?);
    let listener = match &args.listen_address()? {
        Some(address) => Some(address.bind().await?),
        None => None,
    };
    cluster.clone().log_version(api.client().clone());
    let recorder = Recorder::default();
    let metrics = CsiMetrics::new(recorder.clone());
    let driver = Driver::connect(&args.csi_address, args.timeout, Arc::new(metrics.clone())).await?;
    let mut introduction = driver.identify().await?;
    introduction.capabilities.topology &= gates.topology;
    let DriverInfo { name, version, capabilities } = &introduction;
    tracing::info!(driver = name, version, ?capabilities, "connected to the CSI driver");
    let node = node_deployment::local_node(node_name, &driver).await?;
    let setup = setup(&args, &gates, &introduction, node.as_ref(), &api).await;
    let config = provisioner_config(&args, &introduction, node.as_ref(), &setup.identity);
    let look: Arc<dyn ObjectClient> = Arc::new(ApiObjects(api.clone()));
    let (records, record_task) = records(api.clone(), &introduction.name, node.as_ref());
    let csi = Arc::new(Csi::new(setup, driver.clone(), look.clone()).with_records(records.clone()));
    let publisher = match pod {
        None => None,
        Some(pod) => {
            let identity = capacity::identity(pod, &introduction.name, node.as_ref(), &*look).await?;
            let flags = &args.capacity;
            let api = connect(Some((flags.kube_api_capacity_qps, flags.kube_api_capacity_burst)))?;
            Some(capacity::publisher(&args, api, identity, &driver, csi.changes(), metrics.capacities()))
        }
    };
    let taking = node.as_ref().and_then(|node| node.taking(&args.node, csi.clone(), look.clone()));
    let touched = Arc::<TouchedClaims>::default();
    if taking.is_some() {
        metrics.report_claims(touched.clone());
    }
    let worker: Arc<dyn RunOperation> =
        Arc::new(ProvisioningWorker::new(api.clone(), csi).with_records(records.clone()));
    let recorded = records.clone();
    let observer: Arc<dyn Observer> = Arc::new(metrics.clone());
    let engine = engine(&args, config.clone());
    let lease = args.election.leader_election.then(|| args.election.lease(&introduction.name));
    let mut needed = permissions::needed(&engine, lease.as_ref());
    needed.extend(permissions::of_records(&own_namespace()));
    let records = Some((records, record_task));
    let mut host = EngineHost::start_with_records(&api, engine, &observer, |_| worker, records);
    host.spawn("the permission check", check_permissions(connect(None)?, needed, recorder.permissions().clone()));
    if let Some(listener) = listener {
        serve(&args, listener, &introduction.name, recorder, metrics, &mut host);
    }
    let outbox = host.outbox.clone();
    let background = async {
        tokio::select! {
            () = sweep_snapshots(&args, &introduction, look, recorded) => {}
            () = publish_capacity(&args, &introduction, node.as_ref(), publisher, outbox.clone()) => {}
            () = node_deployment::assign_claims(taking, config, touched, outbox.clone()) => {}
        }
    };
    let lease = match lease {
        Some(config) => Some(Lease::new(cluster.client()?, config, observer)),
        None => None,
    };
    tokio::select! {
        ended = run_as_leader(lease, host, background) => ended,
        () = driver.lost() => {
            let reason = "the connection to the CSI driver is lost";
            // As csi-provisioner does. The file exists only in a container.
            let _ = std::fs::write(TERMINATION_LOG, reason);
            Err(reason.into())
        }
    }
}

/// Where it is recorded what is being provisioned: in the namespace of the provisioner, for each
/// node if there is one provisioner on each.
fn records(api: Arc<Api>, driver: &str, node: Option<&LocalNode>) -> (Records, RecordTask) {
    let name = node.map_or_else(|| driver.to_owned(), |node| format!("{driver}/{}", node.name));
    Records::new(api, &own_namespace(), &name)
}

/// Removes finalizers that were left on snapshots, forever, if that is enabled.
async fn sweep_snapshots(args: &Args, driver: &DriverInfo, look: Arc<dyn ObjectClient>, records: Records) {
    if args.snapshot_orphan_sweep_interval.is_zero() || !driver.capabilities.create_delete_snapshot {
        std::future::pending::<()>().await;
    }
    loop {
        remove_stale_snapshot_finalizers(&*look, &records).await;
        tokio::time::sleep(args.snapshot_orphan_sweep_interval).await;
    }
}

/// Publishes the driver's capacity, forever, if that is enabled.
async fn publish_capacity(
    args: &Args,
    driver: &DriverInfo,
    node: Option<&LocalNode>,
    publisher: Option<CapacityPublisher>,
    outbox: UnboundedSender<Message>,
) {
    match publisher {
        None => std::future::pending().await,
        Some(publisher) => publisher.run(capacity::wanted(args, driver, node, outbox)).await,
    }
}

/// The cluster, found as csi-provisioner finds it: KUBECONFIG takes precedence over --kubeconfig.
async fn cluster(args: &Args) -> Result<Cluster, String> {
    let variable = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()).map(PathBuf::from);
    let kubeconfig = variable.or_else(|| args.cluster.kubeconfig.clone());
    let has_kubeconfig = kubeconfig.is_some();
    let flags = ClusterFlags { kubeconfig, context: args.cluster.context.clone() };
    match args.master.as_str() {
        "" => flags.load().await,
        // A URL is enough for a server that needs no credentials.
        url if !has_kubeconfig => Ok(Cluster::at(parse_url("--master", url)?)),
        url => flags.load().await?.with_url("--master", url),
    }
}

/// How the driver is used.
async fn setup(args: &Args, gates: &FeatureGates, driver: &DriverInfo, node: Option<&LocalNode>, api: &Api) -> Setup {
    let attributes_classes = match gates.attributes_classes {
        Some(enabled) => enabled,
        None => serves_attributes_classes(api).await,
    };
    Setup {
        driver: driver.name.clone(),
        identity: identity(&driver.name, node),
        capabilities: driver.capabilities,
        default_fs_type: args.default_fstype.clone(),
        extra_metadata: args.extra_create_metadata,
        read_only: args.controller_publish_readonly,
        keep_volume_mode: args.prevent_volume_mode_conversion,
        attributes_classes,
        cross_namespace: gates.cross_namespace,
    }
}

/// Whether the API server serves VolumeAttributesClasses. Assumes so if discovery fails.
async fn serves_attributes_classes(api: &Api) -> bool {
    match api.get("/apis/storage.k8s.io/v1").await {
        Err(error) => {
            tracing::debug!(%error, "API discovery failed, assuming VolumeAttributesClass is served");
            true
        }
        Ok(group) => {
            let resources = group["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
            resources.iter().any(|resource| resource["name"] == "volumeattributesclasses")
        }
    }
}

/// Identifies this instance on the volumes that it provisions, in csi-provisioner's format.
fn identity(driver: &str, node: Option<&LocalNode>) -> String {
    let (now, node) = (jiff::Timestamp::now(), node.map(|node| format!("-{}", node.name)).unwrap_or_default());
    format!("{}-{}-{driver}{node}", now.as_millisecond(), now.subsec_nanosecond() / 1_000 % 10_000)
}

/// The configuration of the rules. With `--node-deployment`, topology is always strict.
fn provisioner_config(args: &Args, driver: &DriverInfo, node: Option<&LocalNode>, identity: &str) -> Config {
    let strict = args.strict_topology || node.is_some();
    let topology = TopologyConfig { strict, immediate: args.immediate_topology };
    Config {
        // Classes and claims that name the in-tree plugin which the driver replaces.
        aliases: Plugin::of_driver(&driver.name).into_iter().map(|plugin| plugin.name().into()).collect(),
        // Leaked once per process.
        component: String::leak(format!("{}_{identity}", driver.name)),
        supports_block: true,
        attachable: driver.capabilities.publish_unpublish_volume,
        supports_cloning: driver.capabilities.clone_volume,
        prefix: args.volume_name_prefix.as_str().into(),
        uid_length: args.uid_length(),
        topology: driver.capabilities.topology.then_some(topology),
        node: node.map(LocalNode::own_node),
        ..Config::new(driver.name.as_str())
    }
}

fn engine(args: &Args, config: Config) -> Engine {
    let engine = EngineConfig {
        operations_max: args.worker_threads,
        storage_retry: args.retry_interval_start,
        storage_retry_max: args.retry_interval_max,
        ..EngineConfig::default()
    };
    Engine::new(engine, vec![Box::new(Provisioner::new(config))])
}

/// Serves health and metrics in the background.
fn serve(
    args: &Args,
    listener: TcpListener,
    driver: &str,
    recorder: Recorder,
    metrics: CsiMetrics,
    host: &mut EngineHost,
) {
    let is_elected = args.election.leader_election;
    let lease = is_elected.then(|| args.election.lease(driver).name);
    let duration = args.election.leader_election_lease_duration;
    let health = is_elected.then(|| LeaseHealth { recorder: recorder.clone(), duration });
    let shared = Shared::new(host, recorder, lease).with_metrics(Arc::new(move |registry| metrics.register(registry)));
    host.spawn("the HTTP server", endpoints::serve(listener, shared, args.metrics_path.clone(), health));
}
