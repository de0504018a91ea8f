//! A cluster with running controllers, and tests that run on each API server.

use bindery_test_cluster::{Running, TestCluster, wait_until};

use crate::servers;

/// A cluster and the programs that run on it.
pub struct Cluster {
    pub test_cluster: TestCluster,
    pub programs: Vec<Running>,
}

impl Cluster {
    /// A cluster without programs.
    pub fn new(test_cluster: TestCluster) -> Cluster {
        Cluster { test_cluster, programs: Vec::new() }
    }

    /// Starts a command of `bindery`, without leader election, with the rights it is deployed with.
    pub fn add_bindery(&mut self, command: &str, flags: &[&str]) {
        let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(&self.test_cluster, command).display());
        let args = [command, &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"]
            .into_iter()
            .chain(flags.iter().copied());
        self.add(self.test_cluster.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts"));
    }

    /// Adds a running program.
    pub fn add(&mut self, program: Running) {
        self.programs.push(program);
    }

    /// Waits until a condition holds.
    pub fn eventually(&self, what: &str, holds: impl FnMut() -> bool) {
        let tail = |program: &Running| program.log().lines().rev().take(15).collect::<Vec<_>>().join("\n");
        let log_tails = || self.programs.iter().map(tail).collect::<Vec<_>>().join("\n\n");
        assert!(wait_until(holds), "timed out: {what}\n{}", log_tails());
    }
}

/// Defines a test of the same name on each API server.
macro_rules! on_each_server {
    ($($test:ident),*) => { $(mod $test {
        use crate::servers::ApiServer;

        #[test]
        fn on_a_real_api_server() {
            crate::$test(ApiServer::Real);
        }

        #[test]
        fn on_the_embedded_api_server() {
            crate::$test(ApiServer::Embedded);
        }
    })* };
}
