//! `bindery provisioner local`: PersistentVolumes for the disks of this node.

mod endpoints;
mod metrics;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bindery_engine::{Config as EngineConfig, Engine};
use bindery_local_disks::agent::{
    Cleanings, Discovery, EngineVolumes, LocalDisks, provisioner_config, read_node, remove_taint,
};
use bindery_local_disks::config::UnknownFile;
use bindery_local_disks::discover::Owner;
use bindery_local_disks::{Config, disk};
use bindery_model::{Annotation, Kind, Name, Node, Object};
use bindery_provisioner_sdk::{Provisioner, ProvisioningWorker};
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, Observer, RunOperation, list, shutdown_signal};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use crate::cluster::ClusterFlags;
use crate::duration;
use crate::listen::ListenAddress;
use crate::metrics::Recorder;
use endpoints::Status;
use metrics::Metrics;

/// The environment variable with the node's name.
const NODE_VARIABLE: &str = "MY_NODE_NAME";

/// How often reading the node is tried, and how long to wait in between.
const NODE_ATTEMPTS: u32 = 3;
const NODE_RETRY_PERIOD: Duration = Duration::from_secs(1);

/// How often to check whether the initial lists are complete.
const SYNC_POLL_PERIOD: Duration = Duration::from_millis(20);

/// The maximum delay before another attempt to clean a disk.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Flags of `bindery provisioner local`. Those of the local static provisioner have the same names
/// and meanings.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    cluster: ClusterFlags,
    /// Configuration directory with a file for each key, such as a mounted ConfigMap.
    #[arg(long, value_name = "DIR", default_value = "/etc/provisioner/config/")]
    config: PathBuf,
    /// Name of the node that this runs on [default: $MY_NODE_NAME].
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
    /// Address that serves readiness and metrics: HOST:PORT, :PORT for all interfaces, or port 0
    /// for any free port.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", visible_alias = "listen-address")]
    listen: ListenAddress,
    /// HTTP path of metrics.
    #[arg(long, value_name = "PATH", default_value = "/metrics")]
    metrics_path: String,
    /// Interval between searches for new disks.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::positive)]
    discovery_period: Duration,
    /// Interval between checks for a changed configuration.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::positive)]
    config_sync_period: Duration,
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(args: Args) -> Result<(), String> {
    let name = args.node_name.clone().or_else(|| std::env::var(NODE_VARIABLE).ok()).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("the node name is unknown: pass --node-name or set {NODE_VARIABLE}"))?;
    let mut config = Arc::new(read_config(&args)?);
    let cluster = args.cluster.load().await?;
    let client = cluster.client()?;
    let api = Arc::new(Api::new(client.clone(), CALL_DEADLINE, None));
    cluster.log_version(client);
    let node = Arc::new(find_node(&api, &name).await?);
    let agent =
        Agent { api, node, cleanings: Cleanings::default(), metrics: Metrics::default(), status: Status::default() };
    let listener = args.listen.bind().await?;
    let server = endpoints::serve(
        listener,
        agent.status.clone(),
        agent.metrics.clone(),
        agent.cleanings.clone(),
        args.metrics_path.clone(),
    );
    let (mut server, mut stop) = (std::pin::pin!(server), std::pin::pin!(shutdown_signal()));
    loop {
        let changed = tokio::select! {
            stopped = &mut stop => return stopped,
            () = &mut server => return Err("the HTTP server ended unexpectedly".into()),
            changed = agent.run(&args, config.clone()) => changed?,
        };
        tracing::info!("configuration changed, restarting with the new one");
        config = changed;
    }
}

fn read_config(args: &Args) -> Result<Config, String> {
    let files = disk::read_config(&args.config)
        .map_err(|error| format!("cannot read the configuration in {}: {error}", args.config.display()))?;
    Config::parse(&files)
        .and_then(|config| config.with_existing_cleaners(disk::is_program))
        .map_err(|error| format!("{}/{error}", args.config.display().to_string().trim_end_matches('/')))
}

async fn find_node(api: &Api, name: &str) -> Result<Node, String> {
    let mut attempt = 1;
    loop {
        match read_node(api, name).await {
            Ok(node) => return Ok(node),
            Err(error) if attempt == NODE_ATTEMPTS => return Err(error),
            Err(error) => tracing::warn!(error, "cannot read the node, retrying"),
        }
        attempt += 1;
        sleep(NODE_RETRY_PERIOD).await;
    }
}

/// What outlives changes of the configuration.
struct Agent {
    api: Arc<Api>,
    node: Arc<Node>,
    cleanings: Cleanings,
    metrics: Metrics,
    status: Status,
}

impl Agent {
    /// Runs with a configuration until it changes. Returns the new one.
    async fn run(&self, args: &Args, config: Arc<Config>) -> Result<Arc<Config>, String> {
        for UnknownFile { name, meant } in &config.unknown {
            tracing::warn!(key = name, did_you_mean = meant, "unknown configuration key, ignored");
        }
        if config.classes.is_empty() {
            tracing::warn!("storageClassMap has no class, no volumes will be created");
        }
        let owner = Owner::new(&config, &self.node);
        let knowledge = EngineVolumes::default();
        let provisioner = provisioner_config(&owner, self.predecessors(&owner).await?);
        let component = provisioner.component;
        let engine_config =
            EngineConfig { resync_rarely: config.resync_min, storage_retry_max: RETRY_MAX, ..EngineConfig::default() };
        let engine = Engine::new(engine_config, vec![Box::new(Provisioner::new(provisioner))]);
        let observer: Arc<dyn Observer> = Arc::new(Recorder::default());
        let disks = |events| LocalDisks {
            api: self.api.clone(),
            config: config.clone(),
            node: self.node.clone(),
            engine_volumes: knowledge.clone(),
            cleanings: self.cleanings.clone(),
            events,
            component,
            observer: Arc::new(self.metrics.clone()),
        };
        let mut host = EngineHost::start(&self.api, engine, &observer, |events| {
            Arc::new(ProvisioningWorker::new(self.api.clone(), Arc::new(disks(events)))) as Arc<dyn RunOperation>
        });
        knowledge.connect(host.outbox.clone());
        self.status.set_volumes(knowledge.clone(), owner.clone());
        host.set_leader(true)?;
        let rounds = Discovery {
            api: self.api.clone(),
            config: config.clone(),
            node: self.node.clone(),
            owner,
            engine_volumes: knowledge,
            cleanings: self.cleanings.clone(),
            events: host.events.clone(),
            component,
            observer: Arc::new(self.metrics.clone()),
            logged: BTreeMap::new(),
            failed: BTreeSet::new(),
        };
        tokio::select! {
            failed = host.task_failure() => Err(failed),
            never = self.discover(args, rounds) => match never {},
            changed = self.watch_config(args, &config) => Ok(changed),
        }
    }

    /// The names of earlier provisioners whose volumes this one owns now.
    async fn predecessors(&self, owner: &Owner) -> Result<Vec<Name>, String> {
        let (_, objects) =
            list(&self.api, Kind::Volume).await.map_err(|error| format!("cannot list volumes: {error}"))?;
        let by = |object: &Object| {
            let Object::Volume(volume) = object else { return None };
            volume.annotations.get(Annotation::ProvisionedBy).filter(|_| owner.owns(volume)).cloned()
        };
        let mut names: Vec<Name> = objects.iter().filter_map(by).filter(|name| *name != owner.provisioner).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Searches for disks, forever.
    async fn discover(&self, args: &Args, mut rounds: Discovery) -> std::convert::Infallible {
        while rounds.engine_volumes.list().await.is_none() {
            sleep(SYNC_POLL_PERIOD).await;
        }
        let mut ticks = every(args.discovery_period);
        let mut taint = rounds.config.taint.clone();
        loop {
            ticks.tick().await;
            let problems = rounds.run_once().await;
            let succeeded = problems.general.is_empty();
            self.status.set_discovery(problems);
            if let Some(key) = taint.as_deref().filter(|_| succeeded) {
                match remove_taint(&self.api, self.node.name(), key).await {
                    Ok(was_present) => {
                        tracing::info!(taint = key, was_present, "node is ready, taint removed");
                        taint = None;
                    }
                    Err(error) => tracing::warn!(taint = key, error, "cannot remove the taint from the node, retrying"),
                }
            }
        }
    }

    /// Waits for a changed configuration. An invalid one is reported, and the current one stays in
    /// use.
    async fn watch_config(&self, args: &Args, current: &Config) -> Arc<Config> {
        let mut ticks = every(args.config_sync_period);
        loop {
            ticks.tick().await;
            match read_config(args) {
                Ok(config) if config != *current => return Arc::new(config),
                Ok(_) => self.status.set_config(None),
                Err(error) => self.status.set_config(Some(error)),
            }
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
