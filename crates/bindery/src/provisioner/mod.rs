//! `bindery provisioner`: volumes from CSI drivers and local disks.

mod csi;
mod local;
mod node_cleanup;

/// Flags of `bindery provisioner`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Provision and delete volumes with a CSI driver
    ///
    /// Runs as a sidecar of the driver, in place of csi-provisioner, and accepts its flags. As for
    /// csi-provisioner, the KUBECONFIG environment variable takes precedence over --kubeconfig.
    Csi(Box<csi::Args>),
    /// Create PersistentVolumes for the disks of this node, and clean released disks
    ///
    /// Runs on every node, in place of sig-storage-local-static-provisioner, and accepts its flags.
    Local(Box<local::Args>),
    /// Delete claims and volumes of local disks whose node was deleted
    ///
    /// Runs once in a cluster, in place of the node-cleanup-controller of
    /// sig-storage-local-static-provisioner, and accepts its flags.
    NodeCleanup(Box<node_cleanup::Args>),
}

impl Args {
    /// The name of the command.
    pub fn name(&self) -> &'static str {
        match self.command {
            Command::Csi(_) => "provisioner csi",
            Command::Local(_) => "provisioner local",
            Command::NodeCleanup(_) => "provisioner node-cleanup",
        }
    }
}

/// Runs until SIGTERM or SIGINT, or until an error that needs a restart.
pub async fn run(args: Args) -> Result<(), String> {
    match args.command {
        Command::Csi(args) => csi::run(*args).await,
        Command::Local(args) => local::run(*args).await,
        Command::NodeCleanup(args) => node_cleanup::run(*args).await,
    }
}
