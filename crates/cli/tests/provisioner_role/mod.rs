//! API servers for tests of what runs beside the controller: a real one on which it is who it is in a cluster, with the role that
//! deploy/manifests/bindery-local.yaml grants; and the embedded one, where everybody is the administrator.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bindery_lab::Lab;

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/manifests/bindery-local.yaml");

/// An API server to test on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// kube-apiserver with etcd.
    Real,
    /// `bindery apiserver`.
    Embedded,
}

fn user(part: &str) -> String {
    format!("system:serviceaccount:kube-system:bindery-{part}")
}

impl Server {
    /// Starts one that knows the service account of a part, or nothing where the test is skipped.
    pub fn start(self, part: &str) -> Option<Lab> {
        let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
        let builder = match self {
            Server::Real => Lab::builder().user(&user(part), &groups).api_server_flag("--allow-privileged=true"),
            Server::Embedded => Lab::builder().embedded(env!("CARGO_BIN_EXE_bindery")),
        };
        let lab = builder.for_test()?;
        if self == Server::Real {
            let started = Instant::now();
            while lab.kubectl(["get", "namespace", "kube-system"]).is_err() {
                assert!(started.elapsed() < Duration::from_secs(60), "after a minute there is no kube-system");
                sleep(Duration::from_millis(200));
            }
            lab.kubectl(["apply", "--validate=strict", "-f", MANIFESTS]).expect("the manifests are valid");
        }
        Some(lab)
    }

    /// How that part reaches the API server.
    pub fn kubeconfig(self, lab: &Lab, part: &str) -> PathBuf {
        match self {
            Server::Real => lab.kubeconfig_of(&user(part)).expect("a kubeconfig"),
            Server::Embedded => lab.kubeconfig().to_path_buf(),
        }
    }
}
