//! `cargo xtask`: the project's tasks.

use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::process::{Command, ExitCode};

use bindery_test_cluster::assets::VARIABLE;
use clap::{Parser, Subcommand};
use xtask::assets::{Assets, provide};
use xtask::bench::{apiserver, binder};

/// Proptest's variable for the seed. .cargo/config.toml sets a default.
const SEED: &str = "PROPTEST_RNG_SEED";

/// The project's tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all tests: units, properties, upstream's tables, recorded states, docs, and those that
    /// need a real API server if one is available.
    Test {
        /// Fail if no real API server is available, instead of skipping the tests that need one.
        #[arg(long)]
        require_test_cluster: bool,
        /// Use a new seed for random tests, and print it for replay. By default every run tries the
        /// same cases.
        #[arg(long)]
        fresh_seeds: bool,
    },
    /// Provide etcd, kubectl and Kubernetes' programs for tests, and print their folder: that of
    /// KUBEBUILDER_ASSETS, or a cache they are built into once with Go.
    Assets,
    /// Generate docs/rules.md from the rules' declarations.
    Rules,
    /// Generate deploy/manifests from the chart, with Helm from the cache, from PATH, or built once
    /// with Go.
    Manifests,
    /// Generate the reference pages, check the documentation's links, and build the book in
    /// target/book.
    Docs {
        /// Do not regenerate pages, for which the program is compiled. Tests check that they are
        /// current.
        #[arg(long)]
        no_generate: bool,
    },
    /// Run a benchmark and print a table.
    Bench {
        /// The benchmark.
        #[command(subcommand)]
        what: Bench,
    },
    /// Fuzz the decoder, the rules and the embedded API server (needs cargo-fuzz).
    Fuzz {
        /// The targets [default: all].
        #[arg(value_parser = FUZZ_TARGETS)]
        targets: Vec<String>,
        /// The duration of each target in seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Check licences, sources and duplicate dependencies (needs cargo-deny).
    Deny,
}

#[derive(Subcommand)]
enum Bench {
    /// The decision core: choosing a volume, memory per object, complete binds through the engine.
    Core,
    /// Placing a pod: checking and scoring 5,000 nodes.
    Placement,
    /// bindery, kube-controller-manager and the no-decision baseline, on a real API server.
    Binder(binder::Options),
    /// The embedded API server and a real one: the writes of a bind, start-up, memory.
    Apiserver(apiserver::Options),
}

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Test { require_test_cluster, fresh_seeds } => test(require_test_cluster, fresh_seeds),
        Task::Assets => print_assets(),
        Task::Rules => write_rules(),
        Task::Manifests => write_manifests(),
        Task::Docs { no_generate } => docs(no_generate),
        Task::Bench { what: Bench::Core } => {
            let release = ["run", "--quiet", "--release", "--package", "xtask", "--bin"];
            cargo(&[&release[..], &["bench"]].concat()).and_then(|()| cargo(&[&release[..], &["heap"]].concat()))
        }
        Task::Bench { what: Bench::Placement } => {
            cargo(&["run", "--quiet", "--release", "--package", "xtask", "--bin", "placement"])
        }
        Task::Bench { what: Bench::Binder(options) } => bench("binder", &["measure"], options.to_args()),
        Task::Bench { what: Bench::Apiserver(options) } => bench("apiserver", &[], options.to_args()),
        Task::Fuzz { targets, seconds } => fuzz(&targets, seconds),
        Task::Deny => cargo(&["deny", "check", "bans", "licenses", "sources"]),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs cargo.
fn cargo(args: &[&str]) -> Result<(), String> {
    run(Command::new(env!("CARGO")).args(args), &format!("cargo {}", args.join(" ")))
}

/// Builds `bindery` and the program that measures it in release mode, and runs the latter.
fn bench(program: &str, command: &[&str], options: Vec<impl AsRef<OsStr>>) -> Result<(), String> {
    let folder = match provide()? {
        Assets::Available(folder) => folder,
        Assets::Unavailable(reason) => return Err(reason),
    };
    let build = ["build", "--release", "--package", "bindery", "--package", "xtask", "--bin", "bindery", "--bin"];
    cargo(&[&build[..], &[program]].concat())?;
    // Next to the folder that this program was built in.
    let this = std::env::current_exe().map_err(|error| format!("cannot find this program's path: {error}"))?;
    let release = this.ancestors().nth(2).ok_or("this program is not in cargo's target folder")?.join("release");
    let mut bench = Command::new(release.join(program));
    bench.env(VARIABLE, folder).args(command).arg("--bindery").arg(release.join("bindery")).args(options);
    run(&mut bench, "the benchmark")
}

/// Runs all tests. Those that need a real API server are skipped without one, unless it is
/// required.
fn test(require_test_cluster: bool, fresh_seeds: bool) -> Result<(), String> {
    let mut tests = Command::new(env!("CARGO"));
    tests.args(["test", "--workspace"]);
    match provide()? {
        Assets::Available(folder) => {
            tests.env(VARIABLE, folder);
        }
        Assets::Unavailable(reason) if require_test_cluster => return Err(reason),
        Assets::Unavailable(reason) => eprintln!("cargo xtask: tests on a real API server are skipped: {reason}"),
    }
    if require_test_cluster {
        tests.env("BINDERY_REQUIRE_TEST_CLUSTER", "1");
    }
    if fresh_seeds {
        let seed = RandomState::new().hash_one(std::process::id());
        eprintln!("cargo xtask: to replay these cases: {SEED}={seed} cargo xtask test");
        tests.env(SEED, seed.to_string());
    }
    run(&mut tests, "cargo test --workspace")
}

fn docs(no_generate: bool) -> Result<(), String> {
    let run = ["run", "--quiet", "--package", "xtask-docs", "--features", "book", "--"];
    cargo(&[&run[..], if no_generate { &["--no-generate"] } else { &[] }].concat())
}

fn print_assets() -> Result<(), String> {
    match provide()? {
        Assets::Available(folder) => println!("{}", folder.display()),
        Assets::Unavailable(reason) => return Err(reason),
    }
    Ok(())
}

fn run(command: &mut Command, words: &str) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("`{words}` cannot be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{words}` failed ({status})")) }
}

fn write_rules() -> Result<(), String> {
    let path = xtask::rules::path();
    std::fs::write(&path, xtask::rules::page()).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

fn write_manifests() -> Result<(), String> {
    let helm = xtask::manifests::provide_helm()?;
    for manifests in xtask::manifests::ALL {
        let path = manifests.path();
        std::fs::write(&path, manifests.page(&helm)?).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("wrote {}", path.display());
    }
    Ok(())
}

/// cargo-fuzz needs nightly options for its sanitizers, which RUSTC_BOOTSTRAP enables on a stable
/// compiler. Interesting inputs are kept in fuzz/corpus, which is not tracked; `decide` starts from
/// fuzz/seeds.
fn fuzz(targets: &[String], seconds: u32) -> Result<(), String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let is_chosen = |target: &&str| targets.is_empty() || targets.iter().any(|chosen| chosen == target);
    for target in FUZZ_TARGETS.into_iter().filter(is_chosen) {
        let corpus = format!("fuzz/corpus/{target}");
        std::fs::create_dir_all(format!("{root}/{corpus}")).map_err(|error| format!("{corpus}: {error}"))?;
        let time = format!("-max_total_time={seconds}");
        let folders = if target == "decide" { vec![corpus.as_str(), "fuzz/seeds"] } else { vec![corpus.as_str()] };
        let limits = ["-max_len=8192", "-timeout=10", "-dict=fuzz/decide.dict", &time];
        let args = [&["fuzz", "run", target, "--sanitizer", "none"], &folders[..], &["--"], &limits[..]].concat();
        let mut command = Command::new(env!("CARGO"));
        command.args(&args).env("RUSTC_BOOTSTRAP", "1").current_dir(root);
        run(&mut command, &format!("cargo {}", args.join(" ")))?;
    }
    Ok(())
}

/// The binaries in fuzz/Cargo.toml.
const FUZZ_TARGETS: [&str; 3] = ["decide", "fields", "requests"];
