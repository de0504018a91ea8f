//! The API servers that tests run on: a real one, and the one embedded in the binary.

#[path = "../service_account/mod.rs"]
mod service_account;

use std::path::PathBuf;

use bindery_test_cluster::TestCluster;

/// An API server to test on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiServer {
    /// kube-apiserver with etcd, where bindery uses the service accounts of deploy/.
    Real,
    /// `bindery apiserver`, where every client is the administrator.
    Embedded,
}

impl ApiServer {
    /// Starts one, or returns `None` if the test is skipped.
    pub fn start(self) -> Option<TestCluster> {
        match self {
            ApiServer::Real => service_account::cluster(TestCluster::builder()),
            ApiServer::Embedded => TestCluster::builder().embedded(env!("CARGO_BIN_EXE_bindery")).for_test(),
        }
    }
}

/// The kubeconfig of a command of `bindery`.
pub fn kubeconfig(test_cluster: &TestCluster, command: &str) -> PathBuf {
    service_account::kubeconfig(test_cluster, command)
}
