//! Upstream's scheduler.

use bindery_test_cluster::{Running, TestCluster};
use serde_json::json;

/// Starts kube-scheduler with a maximum back-off of one second, so that a longer silence means it
/// is idle.
pub fn start(test_cluster: &TestCluster) -> Running {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": test_cluster.kubeconfig(),
            // The content type that both servers support.
            "contentType": "application/json",
            "acceptContentTypes": "application/json",
            "qps": 10000,
            "burst": 10000,
        },
        "leaderElection": {"leaderElect": false},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
    });
    let file = test_cluster.folder().join("scheduler.json");
    std::fs::write(&file, config.to_string()).expect("the scheduler's configuration is written");
    let args = [format!("--config={}", file.display()), "--secure-port=0".to_owned()];
    test_cluster.start_program("kube-scheduler", args).expect("kube-scheduler starts")
}
