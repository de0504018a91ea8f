//! `bindery provisioner`: has volumes made for claims, and removed again.

mod counted;
mod csi;
mod election;
mod endpoint;
mod flags;
mod gates;

/// Flags.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    storage: Storage,
}

#[derive(clap::Subcommand)]
enum Storage {
    /// Have volumes made by a CSI driver, beside which this runs: in place of csi-provisioner, with its flags.
    Csi(Box<flags::Args>),
}

impl Args {
    /// How much is to be logged, as csi-provisioner's flag has it.
    pub fn verbosity(&self) -> u8 {
        match &self.storage {
            Storage::Csi(args) => args.verbosity(),
        }
    }
}

/// Runs until it is told to stop, or until it cannot go on.
pub async fn run(args: Args) -> Result<(), String> {
    match args.storage {
        Storage::Csi(args) => csi::run(*args).await,
    }
}
