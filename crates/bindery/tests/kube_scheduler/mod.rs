//! Upstream's scheduler.

use bindery_test_cluster::{Running, TestCluster};
use serde_json::json;

/// Starts kube-scheduler, which tries a pod again after a second at most: when nobody has written for longer, nobody will.
pub fn start(lab: &TestCluster) -> Running {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": lab.kubeconfig(),
            // The only one that both servers speak.
            "contentType": "application/json",
            "acceptContentTypes": "application/json",
            "qps": 10000,
            "burst": 10000,
        },
        "leaderElection": {"leaderElect": false},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
    });
    let file = lab.folder().join("scheduler.json");
    std::fs::write(&file, config.to_string()).expect("the scheduler's configuration is written");
    let args = [format!("--config={}", file.display()), "--secure-port=0".to_owned()];
    lab.start_program("kube-scheduler", args).expect("kube-scheduler starts")
}
