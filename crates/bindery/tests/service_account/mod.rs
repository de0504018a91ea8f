//! A cluster in which the commands of bindery use the service accounts and roles of deploy/.

use std::path::PathBuf;

use bindery_test_cluster::{Builder, TestCluster, eventually};

const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/manifests");

/// The service account of a command of `bindery`, or of `local` and `node-cleanup`.
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

/// Starts a cluster and applies the manifests, or returns `None` if the test is skipped.
pub fn cluster(builder: Builder) -> Option<TestCluster> {
    // The local provisioner runs privileged.
    let builder = builder.api_server_flag("--allow-privileged=true");
    let commands = ["controller", "scheduler", "provisioner", "local", "node-cleanup"];
    let test_cluster =
        commands.iter().fold(builder, |builder, command| builder.user(&user(command), &GROUPS)).for_test()?;
    eventually("kube-system exists", || test_cluster.kubectl(["get", "namespace", "kube-system"]).is_ok());
    // Strict validation rejects unknown fields.
    test_cluster.kubectl(["apply", "--validate=strict", "-f", MANIFESTS]).expect("the manifests are valid");
    Some(test_cluster)
}

/// The kubeconfig of a command of `bindery`.
pub fn kubeconfig(test_cluster: &TestCluster, command: &str) -> PathBuf {
    test_cluster.kubeconfig_of(&user(command)).expect("a kubeconfig")
}
