//! What a real API server needs, to be compared.

use bindery_test_cluster::{Running, TestCluster};

/// Makes it forget all revisions until now, because some shapes ask for a past that is gone. Its watch cache forgets only when
/// it is started anew.
pub fn forget_the_past(lab: &mut TestCluster) -> Result<(), String> {
    lab.compact()?;
    lab.kill_api_server()?;
    lab.start_api_server()
}

/// Starts those controllers that do its chores: garbage, and the contents of namespaces that go.
pub fn start_controllers(lab: &TestCluster) -> Result<Running, String> {
    let kubeconfig = lab.kubeconfig().display();
    lab.start_program(
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
