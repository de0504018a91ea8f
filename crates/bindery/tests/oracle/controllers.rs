//! The controllers that run: ours or upstream's, and upstream's scheduler and garbage collector where pods are about.

use bindery_test_cluster::{Running, TestCluster};

use crate::{kube_scheduler, servers};

/// Who plays.
#[derive(Debug, Clone, Copy)]
pub struct Cast {
    /// Who sees to claims and volumes.
    pub volumes: Who,
    /// Who gives pods their nodes, if anybody does.
    pub scheduler: Option<Who>,
    /// Whether the garbage collector of kube-controller-manager does: it takes the claims of pods that are gone.
    pub collector: bool,
}

/// Whose a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// `bindery controller` or `bindery scheduler`.
    Ours,
    /// kube-controller-manager or kube-scheduler: the reference.
    Upstreams,
}

/// All that kube-controller-manager has for claims and volumes.
const UPSTREAMS_VOLUMES: [&str; 6] = [
    "persistentvolume-binder-controller",
    "ephemeral-volume-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "persistentvolume-expander-controller",
    "volumeattributesclass-protection-controller",
];

impl Cast {
    fn upstreams(self) -> Vec<&'static str> {
        let volumes = UPSTREAMS_VOLUMES.into_iter().filter(|_| self.volumes == Who::Upstreams);
        let collector = self.collector.then_some("garbage-collector-controller");
        volumes.chain(collector).collect()
    }
}

/// What runs until this is dropped.
pub struct Controllers {
    ours: Option<Running>,
    scheduler: Option<Running>,
    _others: Option<Running>,
}

impl Controllers {
    pub fn start(cast: Cast, lab: &TestCluster) -> Controllers {
        let controllers = cast.upstreams();
        let upstreams = (!controllers.is_empty()).then(|| upstreams(lab, &controllers));
        let scheduler = cast.scheduler.map(|who| match who {
            Who::Ours => our_scheduler(lab),
            Who::Upstreams => kube_scheduler::start(lab),
        });
        let ours = (cast.volumes == Who::Ours).then(|| ours(lab));
        Controllers { ours, scheduler, _others: upstreams }
    }

    /// What ours says, in lines of JSON, then what the scheduler says.
    pub fn log(&self) -> String {
        self.ours.iter().chain(&self.scheduler).map(Running::log).collect()
    }

    /// What ours counts under a name.
    pub fn count(&self, name: &str) -> u64 {
        let ours = self.ours.as_ref().expect("ours counts");
        let metrics = ours.page("/metrics").expect("metrics");
        let count = |line: &str| line.strip_prefix(name)?.strip_prefix("_total ")?.parse().ok();
        metrics.lines().find_map(count).unwrap_or_else(|| panic!("there is no {name} in {metrics}"))
    }
}

fn ours(lab: &TestCluster) -> Running {
    let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(lab, "controller").display());
    let args = [
        "controller",
        "-v=4",
        &kubeconfig,
        "--leader-elect=false",
        "--listen=127.0.0.1:0",
        // Off in the version that the states were recorded with.
        "--feature-gates=PersistentVolumeClaimUnusedSinceTime=false",
    ];
    lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

fn our_scheduler(lab: &TestCluster) -> Running {
    let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(lab, "scheduler").display());
    let args = ["scheduler", "-v=4", &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"];
    lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

/// Controllers of kube-controller-manager, looking at everything every other second.
fn upstreams(lab: &TestCluster, controllers: &[&str]) -> Running {
    let kubeconfig = format!("--kubeconfig={}", lab.kubeconfig().display());
    let controllers = format!("--controllers={}", controllers.join(","));
    let args = [
        &kubeconfig,
        &controllers,
        "--pvclaimbinder-sync-period=2s",
        // The only one that both servers speak.
        "--kube-api-content-type=application/json",
        "--leader-elect=false",
        "--kube-api-qps=10000",
        "--kube-api-burst=10000",
        "--secure-port=0",
    ];
    lab.start_program("kube-controller-manager", args).expect("kube-controller-manager starts")
}
