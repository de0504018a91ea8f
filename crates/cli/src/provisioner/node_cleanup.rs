//! `bindery provisioner node-cleanup`: what was on nodes that are gone.

/// Flags.
#[derive(clap::Args)]
pub struct Args {}

/// Runs until it is told to stop.
pub async fn run(_: Args) -> Result<(), String> {
    Err("not yet".into())
}
