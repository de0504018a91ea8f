//! `bindery scheduler`: assigns pods to nodes.

use bindery_engine::{Config, Engine};
use bindery_scheduler::Scheduler;

use crate::process::{Defaults, ProcessFlags};

/// How many decisions are made in one call of the engine. Evaluating thousands of nodes for a pod
/// takes milliseconds.
const DECISIONS_MAX: usize = 4;

/// Flags of `bindery scheduler`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    process: ProcessFlags,

    /// Schedule the pods whose spec.schedulerName is NAME. To replace kube-scheduler, pass
    /// default-scheduler, and make sure that kube-scheduler does not serve that name.
    #[arg(long, value_name = "NAME", default_value = "bindery-scheduler")]
    scheduler_name: String,
}

/// Runs until SIGTERM or SIGINT, or until the lease is lost.
pub async fn run(args: Args) -> Result<(), String> {
    let config = Config {
        resync_rarely: args.process.min_resync_period,
        requests_max: args.process.kube_api_in_flight,
        decisions_max: DECISIONS_MAX,
        ..Config::default()
    };
    let name: &'static str = args.scheduler_name.leak();
    let engine = Engine::new(config, vec![Box::new(Scheduler::new(name).with_component(name))]);
    args.process.run(Defaults { lease: "bindery-scheduler", port: 10259 }, engine, &[]).await
}
