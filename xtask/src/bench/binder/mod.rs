//! Binders on a real API server: Bindery, kube-controller-manager, and the no-decision baseline.
//!
//! Every measurement starts a new API server, so that none sees the objects of another. The
//! benchmark creates the objects and watches claims become Bound; the binder is a separate process,
//! whose resource usage is read from the operating system. The API server counts its writes.

mod baseline;
mod cluster;
mod contender;
mod delay;
mod process;
mod run;
mod scenario;
mod table;
mod witness;

use std::ffi::OsString;
use std::path::PathBuf;

pub use baseline::run as run_baseline;
use clap::ValueEnum;
use clap::builder::PossibleValue;
pub(super) use cluster::{CLAIMS, VOLUMES, claim, volume};
pub use contender::{Contender, Programs};
pub(super) use process::{cpu_seconds, memory};
pub use scenario::Scenario;

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The number of claims bound in a scenario.
    #[arg(long, default_value_t = 1_000)]
    pub pairs: usize,
    /// The number of pods created in the scenario `ephemeral`.
    #[arg(long, default_value_t = 5_000)]
    pub pods: usize,
    /// Measure only this scenario. May be repeated.
    #[arg(long, value_name = "SCENARIO", value_enum)]
    pub only: Vec<Scenario>,
    /// Measure only this binder. May be repeated.
    #[arg(long, value_name = "BINDER", value_enum)]
    pub contender: Vec<Contender>,
    /// The number of rounds; the table shows the run of median speed.
    #[arg(long, default_value_t = 1)]
    pub rounds: usize,
    /// Also write the tables to a file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl Options {
    /// These options as arguments.
    pub fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = ["pairs", "pods", "rounds"]
            .into_iter()
            .zip([self.pairs, self.pods, self.rounds])
            .map(|(name, value)| format!("--{name}={value}").into())
            .collect();
        let name = |value: Option<PossibleValue>| value.map(|value| value.get_name().to_owned()).unwrap_or_default();
        args.extend(self.only.iter().map(|only| format!("--only={}", name(only.to_possible_value())).into()));
        args.extend(self.contender.iter().map(|one| format!("--contender={}", name(one.to_possible_value())).into()));
        if let Some(out) = &self.out {
            args.extend(["--out".into(), out.into()]);
        }
        args
    }
}

/// Prints progress.
fn progress_line(what: &str) {
    eprintln!("bench: {what}");
}

/// Runs the measurements and returns the tables.
pub fn measure(options: &Options, programs: &Programs) -> Result<String, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("cannot start the async runtime: {error}"))?;
    let chosen = |all: &[Scenario]| if options.only.is_empty() { all.to_vec() } else { options.only.clone() };
    let contenders = if options.contender.is_empty() { Contender::ALL.to_vec() } else { options.contender.clone() };
    let mut binds = Vec::new();
    let mut memory = Vec::new();
    for scenario in chosen(Scenario::value_variants()) {
        if scenario == Scenario::Mem {
            memory = run::memory_of(&runtime, &contenders, programs)?;
        }
        for setup in scenario.setups(options.pairs, options.pods) {
            let mut rounds = vec![Vec::new(); contenders.len()];
            // Round by round, so that temporary load on the machine slows all of them.
            for _ in 0..options.rounds.max(1) {
                for (place, &contender) in contenders.iter().enumerate() {
                    if scenario.is_for(contender) {
                        let measured = run::bind(&runtime, &setup, contender, programs)?;
                        progress_line(table::binds(std::slice::from_ref(&measured)).lines().last().unwrap_or_default());
                        rounds[place].push(measured);
                    }
                }
            }
            binds.extend(rounds.into_iter().filter_map(median));
        }
    }
    let mut page = String::new();
    if !binds.is_empty() {
        page += &table::binds(&binds);
    }
    if binds.iter().any(|one| one.made.is_some()) {
        page += "\n";
        page += &table::made(&binds);
    }
    if !memory.is_empty() {
        page += if page.is_empty() { "" } else { "\n" };
        page += &table::memory(&memory);
    }
    if let Some(file) = &options.out {
        std::fs::write(file, &page).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(page)
}

/// The run of median speed.
fn median(mut all: Vec<run::Measured>) -> Option<run::Measured> {
    all.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    let middle = all.len() / 2;
    (!all.is_empty()).then(|| all.swap_remove(middle))
}
