//! Measures binders on a real API server. Started by `cargo xtask bench binder` as a release build.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::bench::binder::{Options, Programs, measure, run_baseline};

/// Measure binders on a real API server.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, and print tables.
    Measure {
        /// The `bindery` to measure.
        #[arg(long)]
        bindery: PathBuf,
        #[command(flatten)]
        options: Options,
    },
    /// Run the no-decision baseline: a binder that only writes.
    Baseline {
        /// The kubeconfig of the API server.
        #[arg(long)]
        kubeconfig: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Measure { bindery, options } => std::env::current_exe()
            .map_err(|error| format!("this program does not know where it is: {error}"))
            .and_then(|bench| measure(&options, &Programs { bindery, bench }))
            .map(|tables| print!("{tables}")),
        Command::Baseline { kubeconfig } => tokio::runtime::Runtime::new()
            .map_err(|error| format!("no runtime: {error}"))
            .and_then(|runtime| runtime.block_on(run_baseline(&kubeconfig))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
