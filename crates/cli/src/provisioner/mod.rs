//! `bindery provisioner`: volumes from storage, and storage back from volumes.

mod listen;
mod local;
mod node_cleanup;

use clap::Subcommand;

/// Which one.
#[derive(Subcommand)]
pub enum Provisioner {
    /// Offer the disks of this node as volumes, and clean them before they are offered again. On every node, in place of the
    /// local static provisioner.
    Local(Box<local::Args>),
    /// Delete the claims and volumes of local disks whose nodes are gone. Once in a cluster, in place of the local static
    /// provisioner's node-cleanup.
    NodeCleanup(Box<node_cleanup::Args>),
}

/// Runs until it is told to stop.
pub async fn run(which: Provisioner) -> Result<(), String> {
    match which {
        Provisioner::Local(args) => local::run(*args).await,
        Provisioner::NodeCleanup(args) => node_cleanup::run(*args).await,
    }
}
