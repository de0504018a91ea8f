//! The binders that are compared, and how each is started.

use std::path::{Path, PathBuf};

use bindery_test_cluster::{Running, TestCluster};

const BINDER: &str = "persistentvolume-binder-controller";
const CONTROLLERS: &str = "persistentvolume-binder-controller,ephemeral-volume-controller,\
    persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,\
    volumeattributesclass-protection-controller,persistentvolume-expander-controller";

/// A binder to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Contender {
    /// Bindery.
    Bindery,
    /// kube-controller-manager, with its client's rate limit raised.
    Upstream,
    /// The no-decision baseline.
    Baseline,
}

impl Contender {
    /// All binders; the baseline is last, because the others are compared with it.
    pub const ALL: [Self; 3] = [Self::Bindery, Self::Upstream, Self::Baseline];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bindery => "bindery",
            Self::Upstream => "kube-controller-manager",
            Self::Baseline => "no-decision baseline",
        }
    }

    /// Starts it with a kubeconfig: the binder alone, or all volume controllers.
    pub fn start(
        self,
        cluster: &TestCluster,
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
                    // The default of the reference's version.
                    "--feature-gates=PersistentVolumeClaimUnusedSinceTime=false",
                ];
                cluster.start_program(&programs.bindery, flags)
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
                cluster.start_program("kube-controller-manager", flags)
            }
            Self::Baseline => {
                cluster.start_program(&programs.bench, ["baseline", &format!("--kubeconfig={kubeconfig}")])
            }
        }
    }
}

/// Programs that are not part of the test cluster.
pub struct Programs {
    /// The release build of `bindery`.
    pub bindery: PathBuf,
    /// This program, which also contains the baseline.
    pub bench: PathBuf,
}
