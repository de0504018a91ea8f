//! `bindery up`: the embedded API server and every controller, in one process; and simulated nodes, if any are asked for.

mod demo;
mod story;

use std::sync::Arc;

use bindery_apiserver::host::Server;
use bindery_engine::{Config as EngineConfig, Engine};
use bindery_model::Quantity;
use bindery_provisioner_sdk::{Config, Provisioner, ProvisioningWorker, TopologyConfig};
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, InTreeOperations, Observer, RunOperation, shutdown_signal};
use bindery_scheduler::Scheduler;
use bindery_simulated_nodes::{DRIVER, Driver, NODES_MAX};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::apiserver;
use crate::controllers::{self, Settings};
use crate::metrics::Taken;

/// How everything is run.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    server: apiserver::Args,

    /// Make this many simulated nodes, if they are not there: node-1 and so on. A fake kubelet plays theirs: pods that are given
    /// one of them run, as far as the API tells, once their claims are bound; no container is ever started.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=i64::from(NODES_MAX)))]
    nodes: u32,

    /// How much storage each simulated node has, for volumes of the class `simulated`. A simulated CSI driver makes them: there is
    /// nothing behind them. A node that says otherwise in its annotation bindery/simulated-storage has that.
    #[arg(long, value_name = "QUANTITY", default_value = "100Gi", requires = "nodes")]
    node_storage: Quantity,

    /// Show how claims are bound, step by step and rule by rule, and end. Takes seconds, and leaves nothing behind.
    #[arg(long, conflicts_with_all = ["write_kubeconfig", "data_dir", "nodes"])]
    pub demo: bool,
}

/// Runs everything until it is told to stop; or the demonstration, until that is over.
pub async fn run(args: Args) -> Result<(), String> {
    if args.demo {
        return demo::run().await;
    }
    let server = args.server.start().await?;
    let client = client(&server).await?;
    let driver = (args.nodes > 0).then(|| Driver::new(args.node_storage.units()));
    let mut hosted = host(&client, Arc::new(Taken::default()), args.nodes, driver)?;
    let ended = tokio::select! {
        stopped = shutdown_signal() => stopped,
        failed = hosted.failed() => Err(failed),
        why = server.failed() => return Err(apiserver::unkept(&why)),
    };
    drop(hosted);
    server.stop().await;
    ended
}

/// A client of the embedded server.
async fn client(server: &Server) -> Result<Client, String> {
    let wrong = |error: kube::config::KubeconfigError| format!("the server's own kubeconfig: {error}");
    let kubeconfig = Kubeconfig::from_yaml(server.kubeconfig()).map_err(wrong)?;
    let options = KubeConfigOptions::default();
    bindery_runtime::client(kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(wrong)?)
}

/// Starts every controller there is, and so many simulated nodes, with a simulated driver on them, if one is wanted. The
/// controllers lead at once: nobody else knows of this server.
fn host(
    client: &Client,
    observer: Arc<dyn Observer>,
    nodes: u32,
    driver: Option<Driver>,
) -> Result<EngineHost, String> {
    let api = Arc::new(Api::new(client.clone(), CALL_DEADLINE, None));
    let mut sets = controllers::every(&Settings::default());
    sets.push(Box::new(Scheduler::default()));
    if driver.is_some() {
        let topology = Some(TopologyConfig { strict: true, immediate: true });
        let config = Config { makes_blocks: true, topology, ..Config::new(DRIVER) };
        sets.push(Box::new(Provisioner::new(config)));
    }
    let engine = Engine::new(EngineConfig::default(), sets);
    let mut hosted = EngineHost::start_with(&api, engine, &observer, |events| {
        let host: Arc<dyn RunOperation> = Arc::new(InTreeOperations::new(api.clone(), events, observer.clone()));
        match driver.clone() {
            Some(driver) => Arc::new(ProvisioningWorker::new(api.clone(), Arc::new(driver)).beside(host)),
            None => host,
        }
    });
    hosted.lead(true)?;
    if let Some(driver) = driver {
        hosted.run("the simulated CSI driver", driver.run(api.clone()));
    }
    if nodes > 0 {
        hosted.run("the fake kubelet", bindery_simulated_nodes::run(api, nodes));
    }
    Ok(hosted)
}
