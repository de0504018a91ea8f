//! `bindery-test-cluster`: a real API server by hand, until this program ends.

use std::process::ExitCode;

use bindery_test_cluster::TestCluster;

fn main() -> ExitCode {
    let lab = match TestCluster::start() {
        Ok(lab) => lab,
        Err(error) => {
            eprintln!("bindery-test-cluster: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("export KUBECONFIG={}", lab.kubeconfig().display());
    println!("# {}, processes {:?}; it ends with this program (Ctrl-C)", lab.server_url(), lab.pids());
    loop {
        std::thread::park();
    }
}
