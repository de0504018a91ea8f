//! What a service account may do, and what it may not.

use std::path::PathBuf;

use bindery_test_cluster::{TestCluster, eventually};

use crate::service_account;

/// A cluster, and a service account restricted to its role.
pub struct Denied {
    test_cluster: TestCluster,
    kubeconfig: PathBuf,
}

impl Denied {
    /// Starts a cluster with objects, among them a claim `precious`, for the service account of a
    /// command.
    pub fn start(command: &str, objects: &str) -> Option<Denied> {
        let test_cluster = service_account::cluster(TestCluster::builder())?;
        test_cluster.kubectl_with_input(objects, ["apply", "-f", "-"]).expect("objects are created");
        let kubeconfig = service_account::kubeconfig(&test_cluster, command);
        let denied = Denied { test_cluster, kubeconfig };
        // RBAC takes effect a moment after the role is created.
        eventually("the role is in effect", || denied.kubectl("get pvc precious").is_ok());
        Some(denied)
    }

    fn kubectl(&self, words: &str) -> Result<String, String> {
        self.test_cluster.kubectl_with(&self.kubeconfig, words.split(' '), "")
    }

    /// Asserts that all of this is allowed.
    pub fn may(&self, all: &[&str]) {
        for words in all {
            assert_eq!(self.kubectl(&format!("auth can-i {words}")).as_deref(), Ok("yes\n"), "{words}");
        }
    }

    /// Asserts that none of this is allowed.
    pub fn may_not(&self, all: &[&str]) {
        for words in all {
            // kubectl also fails on invalid questions, and says so.
            let answer = self.kubectl(&format!("auth can-i {words}"));
            assert!(answer.as_ref().is_err_and(|error| !error.contains("error:")), "{words}: {answer:?}");
        }
    }

    /// Asserts that the API server rejects these requests, and that the claim still exists.
    pub fn is_rejected(&self, all: &[&str]) {
        for words in all {
            let answer = self.kubectl(words).expect_err("it is rejected");
            assert!(answer.contains("forbidden"), "{words}: {answer}");
        }
        self.test_cluster.kubectl(["get", "pvc", "precious"]).expect("the claim is still there");
    }
}
