//! Prepares a kube-apiserver for a comparison.

use bindery_test_cluster::{Running, TestCluster};

/// Drops all history, for shapes that request an expired revision. The watch cache is only emptied
/// by a restart.
pub fn compact_history(cluster: &mut TestCluster) -> Result<(), String> {
    cluster.compact()?;
    cluster.kill_api_server()?;
    cluster.start_api_server()
}

/// Starts the garbage collector and the namespace controller.
pub fn start_controllers(cluster: &TestCluster) -> Result<Running, String> {
    let kubeconfig = cluster.kubeconfig().display();
    cluster.start_program(
        "kube-controller-manager",
        [
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--controllers=garbage-collector-controller,namespace-controller".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ],
    )
}
