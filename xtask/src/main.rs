//! `cargo xtask`: the project's own tasks.

use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::process::{Command, ExitCode};

use bindery_test_cluster::assets::VARIABLE;
use clap::{Parser, Subcommand};
use xtask::assets::{Assets, provide};
use xtask::bench::{apiserver, binder};

/// The variable by which proptest is told where to begin. .cargo/config.toml sets it, for whoever does not.
const SEED: &str = "PROPTEST_RNG_SEED";

/// The project's own tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all tests: units, properties, upstream's tables, recorded states, docs; and on a real API server, if it can be had.
    Test {
        /// Fail if there can be no real API server, instead of skipping the tests that need one.
        #[arg(long)]
        require_lab: bool,
        /// Try properties and random histories on cases that were never tried before. A run without this tries the same ones each
        /// time, and so does one with the seed that this prints.
        #[arg(long)]
        fresh_seeds: bool,
    },
    /// Provide etcd, Kubernetes' programs and kubectl for tests, and print their folder: that of KUBEBUILDER_ASSETS, or built
    /// once with Go.
    Assets,
    /// Write docs/rules.md from the declarations of the rules.
    Rules,
    /// Write deploy/manifests from the chart, with Helm: from the cache, from PATH, or built once with Go.
    Manifests,
    /// Write the generated pages of the documentation, check its links, and build it as a book in
    /// target/book.
    Docs {
        /// Do not write the generated pages, for which the program is compiled. Tests check
        /// that they are current.
        #[arg(long)]
        no_generate: bool,
    },
    /// Measure, and print a table.
    Bench {
        /// What to measure.
        #[command(subcommand)]
        what: Bench,
    },
    /// Fuzz the decoder and the rules for a while (needs cargo-fuzz).
    Fuzz {
        /// For how long.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Check licences, sources and doubled dependencies (needs cargo-deny).
    Deny,
}

#[derive(Subcommand)]
enum Bench {
    /// Deciding alone: choosing a volume, memory an object, whole binds through the engine.
    Core,
    /// Placing a pod: asking and scoring 5,000 nodes.
    Placement,
    /// bindery, kube-controller-manager and the limit side by side, on a real API server.
    Binder(binder::Options),
    /// The embedded API server and a real one side by side: the writes of a bind, start-up, memory.
    Apiserver(apiserver::Options),
}

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Test { require_lab, fresh_seeds } => test(require_lab, fresh_seeds),
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
        Task::Fuzz { seconds } => fuzz(seconds),
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

/// Runs cargo, and says what failed.
fn cargo(args: &[&str]) -> Result<(), String> {
    run(Command::new(env!("CARGO")).args(args), &format!("cargo {}", args.join(" ")))
}

/// Builds `bindery` and the program that measures it, both with optimisations, and measures.
fn bench(program: &str, command: &[&str], options: Vec<impl AsRef<OsStr>>) -> Result<(), String> {
    let folder = match provide()? {
        Assets::There(folder) => folder,
        Assets::Unavailable(reason) => return Err(reason),
    };
    let build = ["build", "--release", "--package", "bindery", "--package", "xtask", "--bin", "bindery", "--bin"];
    cargo(&[&build[..], &[program]].concat())?;
    // Beside the folder that this program was built in.
    let this = std::env::current_exe().map_err(|error| format!("this program does not know where it is: {error}"))?;
    let release = this.ancestors().nth(2).ok_or("this program is in no folder of cargo's")?.join("release");
    let mut bench = Command::new(release.join(program));
    bench.env(VARIABLE, folder).args(command).arg("--bindery").arg(release.join("bindery")).args(options);
    run(&mut bench, "the benchmark")
}

/// All tests. Without a real API server those that need one are skipped, unless they are demanded.
fn test(require_lab: bool, fresh_seeds: bool) -> Result<(), String> {
    let mut tests = Command::new(env!("CARGO"));
    tests.args(["test", "--workspace"]);
    match provide()? {
        Assets::There(folder) => {
            tests.env(VARIABLE, folder);
        }
        Assets::Unavailable(reason) if require_lab => return Err(reason),
        Assets::Unavailable(reason) => eprintln!("cargo xtask: tests on a real API server are skipped: {reason}"),
    }
    if require_lab {
        tests.env("BINDERY_REQUIRE_LAB", "1");
    }
    if fresh_seeds {
        let seed = RandomState::new().hash_one(std::process::id());
        eprintln!("cargo xtask: for the same cases again: {SEED}={seed} cargo xtask test");
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
        Assets::There(folder) => println!("{}", folder.display()),
        Assets::Unavailable(reason) => return Err(reason),
    }
    Ok(())
}

fn run(command: &mut Command, words: &str) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("`{words}` could not be started: {error}"))?;
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

/// cargo-fuzz wants a nightly compiler for its sanitizers; the stable one does, when it is told to be one. What the fuzzer finds
/// interesting is kept in fuzz/corpus, which is not tracked; it starts from fuzz/seeds, which is.
fn fuzz(seconds: u32) -> Result<(), String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let corpus = format!("{root}/fuzz/corpus/decide");
    std::fs::create_dir_all(&corpus).map_err(|error| format!("{corpus}: {error}"))?;
    let time = format!("-max_total_time={seconds}");
    let folders = ["fuzz/corpus/decide", "fuzz/seeds"];
    let limits = ["-max_len=8192", "-timeout=10", "-dict=fuzz/decide.dict", &time];
    let args = [&["fuzz", "run", "decide", "--sanitizer", "none"], &folders[..], &["--"], &limits[..]].concat();
    let mut command = Command::new(env!("CARGO"));
    command.args(&args).env("RUSTC_BOOTSTRAP", "1").current_dir(root);
    run(&mut command, &format!("cargo {}", args.join(" ")))
}
