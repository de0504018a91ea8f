//! `bindery provisioner local`: the disks of this node.

mod metrics;
mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bindery_engine::{Config as EngineConfig, Engine};
use bindery_local_disks::agent::{
    Cleanings, EngineVolumes, LocalDisks, Discovery, provisioner_config, read_node, remove_taint,
};
use bindery_local_disks::discover::Owner;
use bindery_local_disks::{Config, disk};
use bindery_model::{Annotation, Kind, Name, Node, Object};
use bindery_provisioner_sdk::{Provisioner, ProvisioningWorker};
use bindery_runtime::{Api, CALL_DEADLINE, EngineHost, Observer, RunOperation, list, shutdown_signal};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use crate::{connect, duration, metrics as common, serve};
use metrics::Metrics;
use pages::Pages;

/// The environment variable with the node's name.
const NODE_VARIABLE: &str = "MY_NODE_NAME";

/// How often the node is read before this gives up, and how long it waits in between.
const NODE_TRIES: u32 = 3;
const NODE_PAUSE: Duration = Duration::from_secs(1);

/// How long it waits before it looks again whether all volumes are known.
const LISTED_PAUSE: Duration = Duration::from_millis(20);

/// How long a disk that cannot be cleaned is left alone at most.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Flags. Those of the local static provisioner keep their names and meanings.
#[derive(clap::Args)]
pub struct Args {
    /// How to reach the API server [default: KUBECONFIG, then ~/.kube/config, then the cluster this runs in].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The directory of the configuration: a file for each key, as a mounted ConfigMap has them.
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/provisioner/config/")]
    config: PathBuf,
    /// The node whose disks these are [default: the environment variable MY_NODE_NAME].
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
    /// Where readiness and metrics are served; port 0 picks a free one, which is logged.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", value_parser = super::listen::parse)]
    listen_address: SocketAddr,
    /// Where in there the metrics are.
    #[arg(long, value_name = "PATH", default_value = "/metrics")]
    metrics_path: String,
    /// How often the disks are looked at.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    discovery_period: Duration,
    /// How often the configuration is looked at.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration::parse)]
    config_sync_period: Duration,
}

/// Runs until it is told to stop.
pub async fn run(args: Args) -> Result<(), String> {
    let name = args.node_name.clone().or_else(|| std::env::var(NODE_VARIABLE).ok()).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("on which node does this run? Say --node-name, or set {NODE_VARIABLE}"))?;
    let mut config = Arc::new(read_config(&args)?);
    let client = bindery_runtime::client(connect::config(args.kubeconfig.as_deref()).await?)?;
    let api = Arc::new(Api::new(client, CALL_DEADLINE, None));
    let node = Arc::new(find_node(&api, &name).await?);
    let agent =
        Agent { api, node, cleanings: Cleanings::default(), metrics: Metrics::default(), pages: Pages::default() };
    let listener = serve::listen(args.listen_address).await?;
    let pages = pages::serve(
        listener,
        agent.pages.clone(),
        agent.metrics.clone(),
        agent.cleanings.clone(),
        args.metrics_path.clone(),
    );
    let (mut pages, mut stop) = (std::pin::pin!(pages), std::pin::pin!(shutdown_signal()));
    loop {
        let changed = tokio::select! {
            stopped = &mut stop => return stopped,
            () = &mut pages => return Err("the HTTP server ended unexpectedly".into()),
            changed = agent.serve(&args, config.clone()) => changed?,
        };
        tracing::info!("the configuration has changed: begins anew with it");
        config = changed;
    }
}

fn read_config(args: &Args) -> Result<Config, String> {
    let files = disk::read_config(&args.config).map_err(|error| format!("--config: {error}"))?;
    Config::parse(&files)
        .map_err(|error| format!("{}/{error}", args.config.display().to_string().trim_end_matches('/')))
}

async fn find_node(api: &Api, name: &str) -> Result<Node, String> {
    let mut tries = 1;
    loop {
        match read_node(api, name).await {
            Ok(node) => return Ok(node),
            Err(error) if tries == NODE_TRIES => return Err(error),
            Err(error) => tracing::warn!(error, "cannot read the node yet"),
        }
        tries += 1;
        sleep(NODE_PAUSE).await;
    }
}

/// What lives as long as the process, whatever is configured.
struct Agent {
    api: Arc<Api>,
    node: Arc<Node>,
    cleanings: Cleanings,
    metrics: Metrics,
    pages: Pages,
}

impl Agent {
    /// Serves with a configuration, until there is another.
    async fn serve(&self, args: &Args, config: Arc<Config>) -> Result<Arc<Config>, String> {
        for file in &config.unknown {
            tracing::warn!(file, "the configuration has a file that means nothing here");
        }
        if config.classes.is_empty() {
            tracing::warn!("the configuration has no class in storageClassMap: nothing is offered");
        }
        let owner = Owner::new(&config, &self.node);
        let knowledge = EngineVolumes::default();
        let provisioner = provisioner_config(&owner, self.predecessors(&owner).await?);
        let component = provisioner.component;
        let engine_config =
            EngineConfig { resync_rarely: config.resync_min, storage_retry_max: RETRY_MAX, ..EngineConfig::default() };
        let engine = Engine::new(engine_config, vec![Box::new(Provisioner::new(provisioner))]);
        let observer: Arc<dyn Observer> = Arc::new(common::Taken::default());
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
        let mut hosted = EngineHost::start_with(&self.api, engine, &observer, |events| {
            Arc::new(ProvisioningWorker::new(self.api.clone(), Arc::new(disks(events)))) as Arc<dyn RunOperation>
        });
        knowledge.connect(hosted.outbox.clone());
        self.pages.is_at(knowledge.clone(), owner.clone());
        hosted.lead(true)?;
        let rounds = Discovery {
            api: self.api.clone(),
            config: config.clone(),
            node: self.node.clone(),
            owner,
            engine_volumes: knowledge,
            cleanings: self.cleanings.clone(),
            events: hosted.events.clone(),
            component,
            observer: Arc::new(self.metrics.clone()),
            logged: BTreeMap::new(),
            failed: BTreeSet::new(),
        };
        tokio::select! {
            failed = hosted.failed() => Err(failed),
            never = self.go_round(args, rounds) => match never {},
            changed = self.watch_config(args, &config) => Ok(changed),
        }
    }

    /// The names under which predecessors made volumes that are ours by now.
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

    /// Looks at the disks, again and again.
    async fn go_round(&self, args: &Args, mut rounds: Discovery) -> std::convert::Infallible {
        while rounds.engine_volumes.list().await.is_none() {
            sleep(LISTED_PAUSE).await;
        }
        let mut ticks = steadily(args.discovery_period);
        let mut taint = rounds.config.taint.clone();
        loop {
            ticks.tick().await;
            let problems = rounds.run_once().await;
            let is_well = problems.is_empty();
            self.pages.round_is_over(problems);
            if let Some(key) = taint.as_deref().filter(|_| is_well) {
                match remove_taint(&self.api, self.node.name(), key).await {
                    Ok(was_there) => {
                        tracing::info!(taint = key, was_there, "the node is without the taint");
                        taint = None;
                    }
                    Err(error) => tracing::warn!(taint = key, error, "cannot take the taint off the node"),
                }
            }
        }
    }

    /// Waits for another configuration. One that makes no sense is told of, and that which is at work stays.
    async fn watch_config(&self, args: &Args, current: &Config) -> Arc<Config> {
        let mut ticks = steadily(args.config_sync_period);
        loop {
            ticks.tick().await;
            match read_config(args) {
                Ok(config) if config != *current => return Arc::new(config),
                Ok(_) => self.pages.config_is(None),
                Err(error) => self.pages.config_is(Some(error)),
            }
        }
    }
}

fn steadily(period: Duration) -> Interval {
    let mut ticks = interval(period.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
