//! `bindery`: a volume control plane for Kubernetes.

mod controller;
mod duration;
mod logs;
mod metrics;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A volume control plane for Kubernetes: binds claims to volumes.
#[derive(Parser)]
#[command(name = "bindery", version, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,

    /// Say more: -v what is found in order too, -vv everything.
    #[arg(short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Subcommand)]
enum Command {
    /// Run the PersistentVolume controller on a cluster, in place of kube-controller-manager's.
    Controller(Box<controller::Args>),
}

fn main() -> ExitCode {
    let args = Args::parse();
    logs::start(args.verbose);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bindery: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = match args.command {
        Command::Controller(args) => runtime.block_on(controller::run(*args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindery: {error}");
            ExitCode::FAILURE
        }
    }
}
