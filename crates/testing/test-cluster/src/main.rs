//! `bindery-test-cluster`: runs a test cluster until it is interrupted.

use std::process::ExitCode;

use bindery_test_cluster::TestCluster;

fn main() -> ExitCode {
    let cluster = match TestCluster::start() {
        Ok(cluster) => cluster,
        Err(error) => {
            eprintln!("bindery-test-cluster: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("export KUBECONFIG={}", cluster.kubeconfig().display());
    println!(
        "# API server {}, processes {:?}. Press Ctrl-C to stop and remove it.",
        cluster.server_url(),
        cluster.pids()
    );
    loop {
        std::thread::park();
    }
}
