//! `bindery-conformance`: what differs between two API servers, by hand.
//!
//! `--left lab --right FILE` starts a real API server for the left side, and takes the right one from a kubeconfig. Without
//! either, two real ones are compared: whatever differs then is a fault of the comparison.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use bindery_apiserver::api::Settings;
use bindery_apiserver::host::{Config, Server};
use bindery_conformance::endpoint::Endpoint;
use bindery_conformance::notation::Library;
use bindery_conformance::suite::{Choice, HISTORY_SECONDS, run};
use bindery_conformance::{real, report};
use bindery_test_cluster::{Running, TestCluster};
use clap::Parser;

/// Sends the same requests to two API servers, and tells what differs in their answers.
#[derive(Parser)]
struct Args {
    /// A kubeconfig; `lab` for a real API server of its own, or `embedded` for one of ours.
    #[arg(long, default_value = "lab")]
    left: String,
    /// Likewise.
    #[arg(long, default_value = "lab")]
    right: String,
    /// Only shapes whose name begins with this; may be given several times.
    #[arg(long)]
    only: Vec<String>,
    /// Prints the names of the shapes, and sends nothing.
    #[arg(long)]
    list: bool,
    /// Runs of each shape, instead of as many as it asks for.
    #[arg(long)]
    seeds: Option<u64>,
    /// Shapes that need controllers for garbage and namespaces; a `lab` gets them.
    #[arg(long)]
    chores: bool,
    /// Groups differences by what may be their cause.
    #[arg(long)]
    by_cause: bool,
    /// Prints what the left server answered to everything, in short; twice, in full.
    #[arg(long, action = clap::ArgAction::Count)]
    show: u8,
    /// A file for the differences, instead of standard output.
    #[arg(long)]
    out: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match compare(Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("bindery-conformance: {error}");
            ExitCode::from(2)
        }
    }
}

async fn compare(args: Args) -> Result<bool, String> {
    let library = Library::own()?;
    if args.list {
        library.shapes.iter().for_each(|shape| println!("{}", shape.name));
        return Ok(true);
    }
    let (left, right) = (Side::open(&args.left, args.chores).await?, Side::open(&args.right, args.chores).await?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis());
    let choice = Choice { only: args.only, series: now.to_string(), chores: args.chores, seeds: args.seeds };
    let outcome =
        run(&library, &Endpoint::of(left.kubeconfig()).await?, &Endpoint::of(right.kubeconfig()).await?, &choice).await;
    if args.show > 0 {
        print!("{}", report::answers(&outcome, args.show > 1));
    }
    let text = if args.by_cause { report::by_cause(&outcome) } else { report::by_shape(&outcome) };
    match args.out {
        Some(file) => std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?,
        None => print!("{text}"),
    }
    println!("{}", report::counts(&outcome));
    Ok(outcome.differing.is_empty())
}

/// A server that was there, or one that is started for this.
enum Side {
    There(PathBuf),
    Real(Box<(Option<Running>, TestCluster)>),
    Embedded {
        kubeconfig: PathBuf,
        /// It serves as long as this is held.
        _server: Box<Server>,
    },
}

impl Side {
    async fn open(name: &str, chores: bool) -> Result<Side, String> {
        match name {
            "lab" => {
                let mut lab = TestCluster::start()?;
                real::forget_the_past(&mut lab)?;
                let controllers = if chores { Some(real::start_controllers(&lab)?) } else { None };
                Ok(Side::Real(Box::new((controllers, lab))))
            }
            "embedded" => {
                let file = std::env::temp_dir().join(format!("bindery-conformance-{}", std::process::id()));
                let settings = Settings { chores, history_seconds: HISTORY_SECONDS, ..Settings::default() };
                let config = Config { kubeconfig: Some(file.clone()), settings, ..Config::in_memory() };
                let server = Server::start(config).await?;
                Ok(Side::Embedded { kubeconfig: file, _server: Box::new(server) })
            }
            file => Ok(Side::There(file.into())),
        }
    }

    fn kubeconfig(&self) -> &Path {
        match self {
            Side::There(kubeconfig) | Side::Embedded { kubeconfig, .. } => kubeconfig,
            Side::Real(started) => started.1.kubeconfig(),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if let Side::Embedded { kubeconfig, .. } = self {
            // It holds keys.
            let _ = std::fs::remove_file(kubeconfig);
        }
    }
}
