//! The controllers that do a real API server's chores: garbage, and the contents of namespaces that go.

use bindery_lab::{Lab, Running};

/// Starts kube-controller-manager with nothing but these.
pub fn start(lab: &Lab) -> Result<Running, String> {
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
