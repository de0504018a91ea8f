//! `bindery-conformance`: compares two API servers.
//!
//! `--right FILE` compares a new kube-apiserver with the server of a kubeconfig. By default two
//! kube-apiservers are compared: any difference is then an error of the comparison.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use bindery_apiserver::api::Settings;
use bindery_apiserver::host::{Config, Server};
use bindery_conformance::endpoint::Endpoint;
use bindery_conformance::notation::Library;
use bindery_conformance::suite::{HISTORY_SECONDS, Selection, run};
use bindery_conformance::{reference, report};
use bindery_test_cluster::{Running, TestCluster};
use clap::Parser;

/// Sends the same requests to two API servers, and lists the differences of their responses
#[derive(Parser)]
struct Args {
    /// A kubeconfig, `test-cluster` for a new kube-apiserver, or `embedded` for Bindery's API
    /// server
    #[arg(long, default_value = "test-cluster")]
    left: String,
    /// Like --left, for the other server
    #[arg(long, default_value = "test-cluster")]
    right: String,
    /// Only shapes whose name starts with this; can be repeated
    #[arg(long)]
    only: Vec<String>,
    /// Prints the names of the shapes, and sends nothing
    #[arg(long)]
    list: bool,
    /// Runs per shape, instead of the number in the shape
    #[arg(long)]
    seeds: Option<u64>,
    /// Only shapes that need the garbage collector and the namespace controller, which are then
    /// started
    #[arg(long)]
    controllers: bool,
    /// Groups differences by their probable cause
    #[arg(long)]
    by_cause: bool,
    /// Prints a summary of the left server's responses; twice, the whole responses
    #[arg(long, action = clap::ArgAction::Count)]
    show: u8,
    /// Writes the differences to a file, instead of standard output
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
    let library = Library::bundled()?;
    if args.list {
        library.shapes.iter().for_each(|shape| println!("{}", shape.name));
        return Ok(true);
    }
    let (left, right) =
        (Side::open(&args.left, args.controllers).await?, Side::open(&args.right, args.controllers).await?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis());
    let selection =
        Selection { only: args.only, series: now.to_string(), controllers: args.controllers, seeds: args.seeds };
    let outcome =
        run(&library, &Endpoint::of(left.kubeconfig()).await?, &Endpoint::of(right.kubeconfig()).await?, &selection)
            .await;
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

/// An existing server, or one that was started for the comparison.
enum Side {
    Existing(PathBuf),
    TestCluster(Box<(Option<Running>, TestCluster)>),
    Embedded {
        kubeconfig: PathBuf,
        /// The server stops when this is dropped.
        _server: Box<Server>,
    },
}

impl Side {
    async fn open(name: &str, controllers: bool) -> Result<Side, String> {
        match name {
            "test-cluster" => {
                let mut cluster = TestCluster::start()?;
                reference::compact_history(&mut cluster)?;
                let controllers = if controllers { Some(reference::start_controllers(&cluster)?) } else { None };
                Ok(Side::TestCluster(Box::new((controllers, cluster))))
            }
            "embedded" => {
                let file = std::env::temp_dir().join(format!("bindery-conformance-{}", std::process::id()));
                let settings = Settings { controllers, history_seconds: HISTORY_SECONDS, ..Settings::default() };
                let config = Config { kubeconfig: Some(file.clone()), settings, ..Config::in_memory() };
                let server = Server::start(config).await?;
                Ok(Side::Embedded { kubeconfig: file, _server: Box::new(server) })
            }
            file => Ok(Side::Existing(file.into())),
        }
    }

    fn kubeconfig(&self) -> &Path {
        match self {
            Side::Existing(kubeconfig) | Side::Embedded { kubeconfig, .. } => kubeconfig,
            Side::TestCluster(started) => started.1.kubeconfig(),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if let Side::Embedded { kubeconfig, .. } = self {
            // It contains secrets.
            let _ = std::fs::remove_file(kubeconfig);
        }
    }
}
