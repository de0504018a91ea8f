//! `bindery`: a volume control plane for Kubernetes.

mod apiserver;
mod common;
mod connect;
mod controller;
mod controllers;
mod duration;
mod explain;
mod leading;
mod logs;
mod metrics;
mod provisioner;
mod scheduler;
mod serve;
mod snapshot;
mod up;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Objects come and go by the thousand, in sizes of a few kinds: jemalloc gives their memory back, and takes less time.
#[global_allocator]
static MEMORY: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A volume control plane for Kubernetes: binds claims to volumes.
#[derive(Parser)]
#[command(name = "bindery", version, propagate_version = true, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,

    /// Say more: -v what is found in order too, -vv everything.
    #[arg(short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Subcommand)]
enum Command {
    /// Run the volume controllers on a cluster, in place of kube-controller-manager's.
    Controller(Box<controller::Args>),
    /// Give pods their nodes on a cluster, with regard to their volumes: delayed binding's other half.
    Scheduler(Box<scheduler::Args>),
    /// Make volumes of storage, and storage of volumes that nobody has any more.
    Provisioner(provisioner::Args),
    /// Run everything in one process, with no cluster at hand: a small API server of its own, and every controller on it.
    Up(up::Args),
    /// Run a small API server of its own, for where there is no cluster: in memory, or with --data-dir for good.
    Apiserver(apiserver::Args),
    /// Say why a claim, a volume or a pod is as it is: by which rule, what it waits for, who holds it back from being deleted,
    /// and what is wrong with each candidate.
    Explain(Box<explain::Args>),
    /// Write a script with which a shell completes what is typed.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let args = Args::parse_from(std::env::args_os().map(as_upstream_has_it));
    let verbose = match &args.command {
        Command::Provisioner(provisioner) => args.verbose.max(provisioner.verbosity()),
        Command::Controller(_)
        | Command::Scheduler(_)
        | Command::Up(_)
        | Command::Apiserver(_)
        | Command::Explain(_)
        | Command::Completions { .. } => args.verbose,
    };
    let at_rest = match args.command {
        Command::Controller(_) | Command::Scheduler(_) | Command::Provisioner(_) | Command::Apiserver(_) => "info",
        // The demonstration tells its own story.
        Command::Up(up::Args { demo: true, .. }) => "error",
        Command::Up(_) => "info",
        // Who asks a question wants the answer alone.
        Command::Explain(_) | Command::Completions { .. } => "warn",
    };
    logs::start(at_rest, verbose);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bindery: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = match args.command {
        Command::Controller(args) => runtime.block_on(controller::run(*args)),
        Command::Scheduler(args) => runtime.block_on(scheduler::run(*args)),
        Command::Provisioner(args) => runtime.block_on(provisioner::run(args)),
        Command::Up(args) => runtime.block_on(up::run(args)),
        Command::Apiserver(args) => runtime.block_on(apiserver::run(args)),
        Command::Explain(args) => runtime.block_on(explain::run(*args)),
        Command::Completions { shell } => completions(shell),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bindery: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Kubernetes' programs take `-v=5` for `--v=5`; ours take `-v`, once or twice.
fn as_upstream_has_it(argument: OsString) -> OsString {
    match argument.to_str().and_then(|text| text.strip_prefix("-v=")) {
        Some(level) => format!("--v={level}").into(),
        None => argument,
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), String> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "bindery", &mut script);
    explain::print(&String::from_utf8_lossy(&script))
}
