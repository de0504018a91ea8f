//! A cluster with programs that decide on it, and tests that run on each API server.

use bindery_test_cluster::{Running, TestCluster, wait_until};

use crate::servers;

/// A cluster, and who decides on it.
pub struct Cluster {
    pub lab: TestCluster,
    pub programs: Vec<Running>,
}

impl Cluster {
    /// A cluster on which nobody decides yet.
    pub fn new(lab: TestCluster) -> Cluster {
        Cluster { lab, programs: Vec::new() }
    }

    /// Has a command of `bindery` decide, without an election, with the rights that it is deployed with.
    pub fn add_ours(&mut self, command: &str, flags: &[&str]) {
        let kubeconfig = format!("--kubeconfig={}", servers::kubeconfig(&self.lab, command).display());
        let args = [command, &kubeconfig, "--leader-elect=false", "--listen=127.0.0.1:0"]
            .into_iter()
            .chain(flags.iter().copied());
        self.add(self.lab.start_program(env!("CARGO_BIN_EXE_bindery"), args).expect("bindery starts"));
    }

    /// Has a program decide.
    pub fn add(&mut self, program: Running) {
        self.programs.push(program);
    }

    /// Returns once something holds.
    pub fn eventually(&self, what: &str, holds: impl FnMut() -> bool) {
        let tail = |program: &Running| program.log().lines().rev().take(15).collect::<Vec<_>>().join("\n");
        let last_words = || self.programs.iter().map(tail).collect::<Vec<_>>().join("\n\n");
        assert!(wait_until(holds), "in vain: {what}\n{}", last_words());
    }
}

/// A test of the same name on each API server.
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
