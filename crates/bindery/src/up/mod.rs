//! `bindery up`: the embedded API server and every controller in one process, with simulated nodes
//! if requested.

mod demo;
mod demo_output;

use std::sync::Arc;

use bindery_apiserver::host::Server;
use bindery_binder::Config as BinderConfig;
use bindery_engine::{Config as EngineConfig, Engine};
use bindery_model::Quantity;
use bindery_provisioner_sdk::{Config, InTreeWorker, Provisioner, ProvisioningWorker, TopologyConfig};
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, Observer, Records, RunOperation, shutdown_signal};
use bindery_scheduler::Scheduler;
use bindery_simulated_nodes::{DRIVER, Driver, NODES_MAX};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::apiserver;
use crate::controller::registry::{self, Settings};
use crate::metrics::Recorder;
use crate::number;

/// Flags of `bindery up`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: apiserver::Args,

    /// Number of simulated nodes: node-1, node-2, and so on. Those that exist are kept.
    ///
    /// Simulates their kubelets, too: a pod assigned to a simulated node is reported Running once
    /// its claims are bound. No container is started.
    #[arg(long, value_name = "COUNT", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(..=i64::from(NODES_MAX)))]
    nodes: u32,

    /// Storage capacity of each simulated node, for volumes of the class `simulated`.
    ///
    /// A simulated CSI driver provisions them; no data is stored. The node annotation
    /// bindery/simulated-storage overrides the capacity of one node.
    #[arg(long, value_name = "QUANTITY", default_value = "100Gi", allow_negative_numbers = true, value_parser = number::storage, requires = "nodes")]
    node_storage: Quantity,

    /// Show how claims are bound, step by step with the deciding rules, and exit. Takes seconds,
    /// and stores nothing.
    #[arg(long, conflicts_with_all = ["write_kubeconfig", "data_dir", "nodes"])]
    pub demo: bool,
}

/// Runs until SIGTERM or SIGINT, or until the demo is over.
pub async fn run(args: Args) -> Result<(), String> {
    if args.demo {
        return demo::run().await;
    }
    let stop = shutdown_signal();
    let server = args.server.start().await?;
    let client = client(&server).await?;
    let driver = (args.nodes > 0).then(|| Driver::new(args.node_storage.units()));
    let mut host = start_controllers(&client, Arc::new(Recorder::default()), args.nodes, driver)?;
    let ended = tokio::select! {
        stopped = stop => stopped,
        failed = host.task_failure() => Err(failed),
        reason = server.failed() => return Err(apiserver::storage_failed(&reason)),
    };
    drop(host);
    server.stop().await;
    ended
}

/// A client of the embedded server.
async fn client(server: &Server) -> Result<Client, String> {
    let invalid = |error: kube::config::KubeconfigError| format!("the embedded server's kubeconfig: {error}");
    let kubeconfig = Kubeconfig::from_yaml(server.kubeconfig()).map_err(invalid)?;
    let options = KubeConfigOptions::default();
    bindery_runtime::client(kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(invalid)?)
}

/// Starts every controller and the scheduler, simulated nodes, and a simulated CSI driver if one is
/// given. There is no leader election, because the embedded server has no other controllers.
fn start_controllers(
    client: &Client,
    observer: Arc<dyn Observer>,
    nodes: u32,
    driver: Option<Driver>,
) -> Result<EngineHost, String> {
    let api = Arc::new(Api::new(client.clone(), CALL_DEADLINE, None));
    // The feature gates follow the version that the embedded server reports.
    let unused_condition = registry::unused_gate(&[], None)?;
    unused_condition.follow_server(Some(bindery_apiserver::http::GIT_VERSION));
    let mut sets = registry::all(&Settings { binder: BinderConfig::default(), unused_condition });
    sets.push(Box::new(Scheduler::default()));
    if driver.is_some() {
        let topology = Some(TopologyConfig { strict: true, immediate: true });
        let config = Config { supports_block: true, topology, ..Config::new(DRIVER) };
        sets.push(Box::new(Provisioner::new(config)));
    }
    let engine = Engine::new(EngineConfig::default(), sets);
    tracing::info!(enabled = engine.controllers().collect::<Vec<_>>().join(","), nodes, "controllers configured");
    let records = driver.is_some().then(|| Records::new(api.clone(), "kube-system", DRIVER));
    let store = records.as_ref().map(|(records, _)| records.clone());
    let worker = |events| {
        let in_tree: Arc<dyn RunOperation> = Arc::new(InTreeWorker::new(api.clone(), events, observer.clone()));
        match driver.clone().zip(store) {
            Some((driver, records)) => {
                let worker = ProvisioningWorker::new(api.clone(), Arc::new(driver));
                Arc::new(worker.with_in_tree(in_tree).with_records(records))
            }
            None => in_tree,
        }
    };
    let mut host = EngineHost::start_with_records(&api, engine, &observer, worker, records);
    host.set_leader(true)?;
    if let Some(driver) = driver {
        host.spawn("the simulated CSI driver", driver.run(api.clone()));
    }
    if nodes > 0 {
        host.spawn("the simulated kubelets", bindery_simulated_nodes::run(api, nodes));
    }
    Ok(host)
}
