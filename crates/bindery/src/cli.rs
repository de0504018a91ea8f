//! The command line: all commands, and the flags that every command accepts.

use clap::{Parser, Subcommand};

use crate::logging::{LogFlags, LogProfile};
use crate::{apiserver, controller, explain, generate, provisioner, scheduler, up, version};

/// Volume control plane for Kubernetes: bind, provision, protect and reclaim PersistentVolumes
#[derive(Parser)]
#[command(name = "bindery", version = version::SUMMARY, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub log: LogFlags,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run the volume controllers on a cluster, in place of those in kube-controller-manager
    Controller(Box<controller::Args>),
    /// Assign pods to nodes, taking their volumes into account
    ///
    /// Replaces kube-scheduler for pods whose schedulerName matches, and binds the claims of
    /// classes with WaitForFirstConsumer.
    Scheduler(Box<scheduler::Args>),
    /// Provision volumes, and reclaim released ones
    Provisioner(provisioner::Args),
    /// Run an embedded API server and every controller in one process; no cluster is needed
    Up(Box<up::Args>),
    /// Run the embedded API server only
    ///
    /// Objects are kept in memory, or on disk with --data-dir.
    Apiserver(Box<apiserver::CommandArgs>),
    /// Explain the state of a claim, volume or pod
    ///
    /// Shows the deciding rule, what the object waits for, which finalizers block its deletion, and
    /// why each candidate was rejected. Works on a cluster or on files that kubectl wrote.
    Explain(Box<explain::Args>),
    /// Print the version, the commit and the supported Kubernetes versions
    Version(version::Args),
    /// Print a shell completion script
    Completions {
        /// Shell to generate the script for.
        shell: clap_complete::Shell,
    },
    /// Generate man pages, the Markdown reference, or completion scripts
    #[command(hide = true)]
    Generate(generate::Args),
}

impl Command {
    /// The command's name if it runs until it is stopped; `None` for commands that print an answer
    /// and exit.
    pub fn daemon_name(&self) -> Option<&'static str> {
        match self {
            Command::Controller(_) => Some("controller"),
            Command::Scheduler(_) => Some("scheduler"),
            Command::Provisioner(args) => Some(args.name()),
            Command::Up(_) => Some("up"),
            Command::Apiserver(args) => args.serves().then_some("apiserver"),
            Command::Explain(_) | Command::Version(_) | Command::Completions { .. } | Command::Generate(_) => None,
        }
    }

    /// How the command logs unless flags say otherwise.
    pub fn log_profile(&self) -> LogProfile {
        // The demo prints the decisions itself.
        if matches!(self, Command::Up(args) if args.demo) {
            return LogProfile::ErrorsOnly;
        }
        if self.daemon_name().is_some() { LogProfile::Daemon } else { LogProfile::OneShot }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn flags_of_all_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn verbosity_is_accepted_as_klog_users_type_it() {
        for verbosity in [&["-v", "4"][..], &["-v=4"], &["-v4"], &["--v", "4"], &["--v=4"]] {
            for command in [&["explain", "pvc/data"][..], &["controller"], &["provisioner", "csi"]] {
                let cli = Cli::try_parse_from([&["bindery"], command, verbosity].concat());
                assert_eq!(cli.unwrap_or_else(|error| panic!("{error}")).log.v, 4, "{command:?} {verbosity:?}");
            }
        }
        assert!(Cli::try_parse_from(["bindery", "controller", "-v=much"]).is_err());
    }
}
