//! The controllers that run: ours, and beside it those of kube-controller-manager that protect and expand; or only those of
//! kube-controller-manager.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use bindery_lab::{Lab, Running};
use serde_json::Value;

use crate::servers;

/// What runs until this is dropped.
pub struct Controllers {
    ours: Running,
    _others: Running,
}

impl Controllers {
    pub fn start(lab: &Lab) -> Controllers {
        Controllers { _others: upstreams(lab, &BESIDE), ours: ours(lab) }
    }

    /// What ours says, in lines of JSON.
    pub fn log(&self) -> String {
        self.ours.log()
    }

    /// What ours counts under a name.
    pub fn count(&self, name: &str) -> u64 {
        let metrics = self.metrics();
        let count = |line: &str| line.strip_prefix(name)?.strip_prefix("_total ")?.parse().ok();
        metrics.lines().find_map(count).unwrap_or_else(|| panic!("there is no {name} in {metrics}"))
    }

    /// The port that ours serves metrics on is its own choice, and logged.
    fn metrics(&self) -> String {
        let log = self.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let address = lines.into_iter().find_map(|line| line["address"].as_str().map(str::to_owned));
        let mut connection = TcpStream::connect(address.expect("the address is logged")).expect("it listens");
        connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("a request");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

fn ours(lab: &Lab) -> Running {
    let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(lab).display());
    let args = ["controller", "-v", &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"];
    lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts")
}

/// The reference: all that upstream has for claims and volumes, looking at everything every other second.
pub fn reference(lab: &Lab) -> Running {
    let all = [&["persistentvolume-binder-controller", "ephemeral-volume-controller"], &BESIDE[..]].concat();
    upstreams(lab, &all)
}

/// What runs beside ours.
const BESIDE: [&str; 3] = [
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "persistentvolume-expander-controller",
];

fn upstreams(lab: &Lab, controllers: &[&str]) -> Running {
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
