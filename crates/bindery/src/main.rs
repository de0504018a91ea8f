//! `bindery`: a volume control plane for Kubernetes.

mod apiserver;
mod cli;
mod cluster;
mod controller;
mod duration;
mod endpoints;
mod explain;
mod feature_gates;
mod generate;
mod leadership;
mod listen;
mod logging;
mod metrics;
mod number;
mod permissions;
mod process;
mod provisioner;
mod scheduler;
mod snapshot;
mod stdout;
mod up;
mod version;

use std::process::ExitCode;

use clap::Parser as _;
use cli::{Cli, Command};

/// Controllers allocate and free thousands of small objects; jemalloc returns that memory to the
/// system, and is faster than the default allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    logging::start(&cli.log, cli.command.log_profile());
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), String> {
    if let Some(name) = command.daemon_name() {
        tracing::info!(version = version::VERSION, commit = version::COMMIT, command = name, "starting");
    }
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("cannot start the async runtime: {error}"))?;
    runtime.block_on(async {
        match command {
            Command::Controller(args) => controller::run(*args).await,
            Command::Scheduler(args) => scheduler::run(*args).await,
            Command::Provisioner(args) => provisioner::run(args).await,
            Command::Up(args) => up::run(*args).await,
            Command::Apiserver(args) => apiserver::run(*args).await,
            Command::Explain(args) => explain::run(*args).await,
            Command::Version(args) => version::run(&args),
            Command::Completions { shell } => generate::completions(shell),
            Command::Generate(args) => generate::run(args),
        }
    })
}
