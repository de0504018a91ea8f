//! Measures API servers. Started by `cargo xtask bench apiserver` as a release build.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use xtask::bench::apiserver::{Options, measure};

/// Measure API servers and print tables.
#[derive(Parser)]
struct Args {
    /// The `bindery` to measure.
    #[arg(long)]
    bindery: PathBuf,
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match measure(&args.options, &args.bindery) {
        Ok(tables) => {
            print!("{tables}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
