//! Who is measured, and how each is started.

use std::path::{Path, PathBuf};

use bindery_test_cluster::{Running, TestCluster};

const BINDER: &str = "persistentvolume-binder-controller";
const CONTROLLERS: &str = "persistentvolume-binder-controller,ephemeral-volume-controller,\
    persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,\
    volumeattributesclass-protection-controller,persistentvolume-expander-controller";

/// A binder that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Contender {
    /// This project's.
    Bindery,
    /// kube-controller-manager's, with the limits of its client out of the way.
    Upstream,
    /// One that decides nothing.
    Limit,
}

impl Contender {
    /// All of them. The limit comes last: its ratios are in the others' lines.
    pub const ALL: [Self; 3] = [Self::Bindery, Self::Upstream, Self::Limit];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bindery => "bindery",
            Self::Upstream => "kube-controller-manager",
            Self::Limit => "the limit",
        }
    }

    /// Starts it on a lab, as the user of a kubeconfig: the binder alone, or all controllers.
    pub fn start(
        self,
        lab: &TestCluster,
        kubeconfig: &Path,
        programs: &Programs,
        all: bool,
    ) -> Result<Running, String> {
        let kubeconfig = kubeconfig.display();
        let controllers = format!("--controllers={}", if all { CONTROLLERS } else { BINDER });
        match self {
            Self::Bindery => {
                let flags = [
                    "controller",
                    &format!("--kubeconfig={kubeconfig}"),
                    "--leader-elect=false",
                    "--listen=127.0.0.1:0",
                    &controllers,
                    // As the reference's version has it.
                    "--feature-gates=PersistentVolumeClaimUnusedSinceTime=false",
                ];
                lab.start_program(&programs.bindery, flags)
            }
            Self::Upstream => {
                let flags = [
                    &format!("--kubeconfig={kubeconfig}"),
                    "--leader-elect=false",
                    &controllers,
                    "--kube-api-qps=10000",
                    "--kube-api-burst=10000",
                    "--secure-port=0",
                    "--use-service-account-credentials=false",
                ];
                lab.start_program("kube-controller-manager", flags)
            }
            Self::Limit => lab.start_program(&programs.bench, ["limit", &format!("--kubeconfig={kubeconfig}")]),
        }
    }
}

/// Where the programs are that are not part of the lab.
pub struct Programs {
    /// `bindery`, built with optimisations.
    pub bindery: PathBuf,
    /// This program, which can be the limit, too.
    pub bench: PathBuf,
}
