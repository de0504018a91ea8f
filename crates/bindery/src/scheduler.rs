//! `bindery scheduler`: gives pods their nodes, on a cluster.

use bindery_engine::{Config, Engine};
use bindery_model::DEFAULT_SCHEDULER;
use bindery_scheduler::Scheduler;

use crate::common::{Common, Itself};

/// Flags.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,

    /// The pods that are placed: those whose schedulerName is this.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_SCHEDULER)]
    scheduler_name: String,
}

/// Runs until it is told to stop, or until it leads no more.
pub async fn run(args: Args) -> Result<(), String> {
    let config = Config {
        resync_rarely: args.common.min_resync_period,
        requests_max: args.common.kube_api_in_flight,
        ..Config::default()
    };
    let name: &'static str = args.scheduler_name.leak();
    let engine = Engine::new(config, vec![Box::new(Scheduler::new(name).with_component(name))]);
    args.common.run(Itself { lease: "bindery-scheduler", port: 10259 }, engine).await
}
