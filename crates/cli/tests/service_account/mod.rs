//! A lab in which bindery is who it is in a cluster: the service account of deploy/, with the role that is granted there.

use std::path::PathBuf;

use bindery_lab::{Builder, Lab, eventually};

/// The service account.
pub const USER: &str = "system:serviceaccount:kube-system:bindery";
const GROUPS: [&str; 2] = ["system:serviceaccounts", "system:serviceaccounts:kube-system"];
const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/manifests/bindery.yaml");

/// A lab in which the manifests are applied, or nothing where the test is skipped.
pub fn lab(builder: Builder) -> Option<Lab> {
    let lab = builder.user(USER, &GROUPS).for_test()?;
    eventually("there is a kube-system", || lab.kubectl(["get", "namespace", "kube-system"]).is_ok());
    // Strictly: a field that the API server does not know is an error.
    lab.kubectl(["apply", "--validate=strict", "-f", MANIFESTS]).expect("the manifests are valid");
    Some(lab)
}

/// How the service account reaches the lab's API server.
pub fn kubeconfig(lab: &Lab) -> PathBuf {
    lab.kubeconfig_of(USER).expect("a kubeconfig")
}
