//! A lab in which the parts of bindery are who they are in a cluster: the service accounts of deploy/, with the roles that are
//! granted there.

use std::path::PathBuf;

use bindery_test_cluster::{Builder, TestCluster, eventually};

const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/manifests");

/// The service account of a command of `bindery`; of `bindery provisioner`, where it is `local` or `node-cleanup`.
pub fn user(command: &str) -> String {
    let name = match command {
        "scheduler" => "bindery-scheduler",
        // It runs in the pods of a CSI driver.
        "provisioner" => "csi-driver",
        "local" => "bindery-local",
        "node-cleanup" => "bindery-node-cleanup",
        _ => "bindery",
    };
    format!("system:serviceaccount:kube-system:{name}")
}

/// A lab in which the manifests are applied, or nothing where the test is skipped.
pub fn lab(builder: Builder) -> Option<TestCluster> {
    // Whoever cleans disks has privileges.
    let builder = builder.api_server_flag("--allow-privileged=true");
    let commands = ["controller", "scheduler", "provisioner", "local", "node-cleanup"];
    let lab = commands.iter().fold(builder, |builder, command| builder.user(&user(command), &GROUPS)).for_test()?;
    eventually("there is a kube-system", || lab.kubectl(["get", "namespace", "kube-system"]).is_ok());
    // Strictly: a field that the API server does not know is an error.
    lab.kubectl(["apply", "--validate=strict", "-f", MANIFESTS]).expect("the manifests are valid");
    Some(lab)
}

/// How a command of `bindery` reaches the lab's API server.
pub fn kubeconfig(lab: &TestCluster, command: &str) -> PathBuf {
    lab.kubeconfig_of(&user(command)).expect("a kubeconfig")
}
