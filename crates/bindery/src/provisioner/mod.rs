//! `bindery provisioner`: volumes from storage, and storage back from volumes.

mod counted;
mod csi;
mod election;
mod endpoint;
mod flags;
mod gates;
mod listen;
mod local;
mod node;
mod node_cleanup;
mod room;

/// Flags.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    storage: Storage,
}

/// Which storage.
#[derive(clap::Subcommand)]
enum Storage {
    /// Have volumes made by a CSI driver, beside which this runs: in place of csi-provisioner, with its flags.
    Csi(Box<flags::Args>),
    /// Offer the disks of this node as volumes, and clean them before they are offered again. On every node, in place of the
    /// local static provisioner.
    Local(Box<local::Args>),
    /// Delete the claims and volumes of local disks whose nodes are gone. Once in a cluster, in place of the local static
    /// provisioner's node-cleanup.
    NodeCleanup(Box<node_cleanup::Args>),
}

impl Args {
    /// How much is to be logged, as csi-provisioner's flag has it.
    pub fn verbosity(&self) -> u8 {
        match &self.storage {
            Storage::Csi(args) => args.verbosity(),
            Storage::Local(_) | Storage::NodeCleanup(_) => 0,
        }
    }
}

/// Runs until it is told to stop, or until it cannot go on.
pub async fn run(args: Args) -> Result<(), String> {
    match args.storage {
        Storage::Csi(args) => csi::run(*args).await,
        Storage::Local(args) => local::run(*args).await,
        Storage::NodeCleanup(args) => node_cleanup::run(*args).await,
    }
}
