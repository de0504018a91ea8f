//! The API servers that tests run on: a real one, and the one that is embedded in the binary. What runs on both shows that the
//! controller works on any cluster, and that the embedded server is one.

#[path = "../service_account/mod.rs"]
mod service_account;

use std::path::PathBuf;

use bindery_test_cluster::TestCluster;

/// An API server to test on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiServer {
    /// kube-apiserver with etcd, where bindery has the service accounts of deploy/.
    Real,
    /// `bindery apiserver`, where everybody is the administrator.
    Embedded,
}

impl ApiServer {
    /// Starts one, or nothing where the test is skipped.
    pub fn start(self) -> Option<TestCluster> {
        match self {
            ApiServer::Real => service_account::lab(TestCluster::builder()),
            ApiServer::Embedded => TestCluster::builder().embedded(env!("CARGO_BIN_EXE_bindery")).for_test(),
        }
    }
}

/// How a command of `bindery` reaches a lab's API server.
pub fn kubeconfig(lab: &TestCluster, command: &str) -> PathBuf {
    service_account::kubeconfig(lab, command)
}
