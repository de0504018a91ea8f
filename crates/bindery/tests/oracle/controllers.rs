//! The controllers under test: ours or upstream's, and upstream's scheduler and garbage collector
//! for states with pods.

use bindery_test_cluster::{Running, TestCluster};

use crate::{kube_scheduler, servers};

/// The selection of controllers.
#[derive(Debug, Clone, Copy)]
pub struct Controlled {
    /// The volume controllers.
    pub volumes: Who,
    /// The scheduler, if any.
    pub scheduler: Option<Who>,
    /// Whether kube-controller-manager's garbage collector runs, which deletes the claims of
    /// deleted pods.
    pub collector: bool,
}

/// The implementation of a part.
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

impl Controlled {
    fn upstreams(self) -> Vec<&'static str> {
        let volumes = UPSTREAMS_VOLUMES.into_iter().filter(|_| self.volumes == Who::Upstreams);
        let collector = self.collector.then_some("garbage-collector-controller");
        volumes.chain(collector).collect()
    }
}

/// Running controllers, killed on drop.
pub struct Controllers {
    ours: Option<Running>,
    scheduler: Option<Running>,
    _others: Option<Running>,
}

impl Controllers {
    pub fn start(selection: Controlled, test_cluster: &TestCluster) -> Controllers {
        let controllers = selection.upstreams();
        let upstreams = (!controllers.is_empty()).then(|| upstreams(test_cluster, &controllers));
        let scheduler = selection.scheduler.map(|who| match who {
            Who::Ours => our_scheduler(test_cluster),
            Who::Upstreams => kube_scheduler::start(test_cluster),
        });
        let ours = (selection.volumes == Who::Ours).then(|| ours(test_cluster));
        Controllers { ours, scheduler, _others: upstreams }
    }

    /// The log of our controller in lines of JSON, then the scheduler's.
    pub fn log(&self) -> String {
        self.ours.iter().chain(&self.scheduler).map(Running::log).collect()
    }

    /// A metric of our controller.
    pub fn count(&self, name: &str) -> u64 {
        let ours = self.ours.as_ref().expect("ours counts");
        let metrics = ours.page("/metrics").expect("metrics");
        let count = |line: &str| line.strip_prefix(name)?.strip_prefix("_total ")?.parse().ok();
        metrics.lines().find_map(count).unwrap_or_else(|| panic!("{name} is missing in {metrics}"))
    }
}

fn ours(test_cluster: &TestCluster) -> Running {
    let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(test_cluster, "controller").display());
    let args = [
        "controller",
        "-v=4",
        &kubeconfig,
        "--leader-elect=false",
        "--listen=127.0.0.1:0",
        // Off in the version the states were recorded with.
        "--feature-gates=PersistentVolumeClaimUnusedSinceTime=false",
    ];
    test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

fn our_scheduler(test_cluster: &TestCluster) -> Running {
    let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(test_cluster, "scheduler").display());
    let args = [
        "scheduler",
        "--scheduler-name=default-scheduler",
        "-v=4",
        &kubeconfig,
        "--leader-elect=false",
        "--listen=127.0.0.1:0",
    ];
    test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

/// Controllers of kube-controller-manager, with a resync every two seconds.
fn upstreams(test_cluster: &TestCluster, controllers: &[&str]) -> Running {
    let kubeconfig = format!("--kubeconfig={}", test_cluster.kubeconfig().display());
    let controllers = format!("--controllers={}", controllers.join(","));
    let args = [
        &kubeconfig,
        &controllers,
        "--pvclaimbinder-sync-period=2s",
        // The content type that both servers support.
        "--kube-api-content-type=application/json",
        "--leader-elect=false",
        "--kube-api-qps=10000",
        "--kube-api-burst=10000",
        "--secure-port=0",
    ];
    test_cluster.start_program("kube-controller-manager", args).expect("kube-controller-manager starts")
}
