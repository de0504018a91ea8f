//! What a service account may, and what it may not.

use std::path::PathBuf;

use bindery_test_cluster::{TestCluster, eventually};

use crate::service_account;

/// A lab, and a service account that is to be kept to its role.
pub struct Denied {
    lab: TestCluster,
    kubeconfig: PathBuf,
}

impl Denied {
    /// A lab with some objects, among them a claim `precious`; and the service account of a command of `bindery`.
    pub fn start(command: &str, objects: &str) -> Option<Denied> {
        let lab = service_account::lab(TestCluster::builder())?;
        lab.kubectl_with_input(objects, ["apply", "-f", "-"]).expect("objects are made");
        let kubeconfig = service_account::kubeconfig(&lab, command);
        let denied = Denied { lab, kubeconfig };
        // That it can be told at all: what is granted takes effect a moment after the role is made.
        eventually("the role holds", || denied.kubectl("get pvc precious").is_ok());
        Some(denied)
    }

    fn kubectl(&self, words: &str) -> Result<String, String> {
        self.lab.kubectl_with(&self.kubeconfig, words.split(' '), "")
    }

    /// All of this is granted.
    pub fn may(&self, all: &[&str]) {
        for words in all {
            assert_eq!(self.kubectl(&format!("auth can-i {words}")).as_deref(), Ok("yes\n"), "{words}");
        }
    }

    /// Nothing of this is granted.
    pub fn may_not(&self, all: &[&str]) {
        for words in all {
            // kubectl fails when the answer is no; and when it was asked nonsense, which it says.
            let answer = self.kubectl(&format!("auth can-i {words}"));
            assert!(answer.as_ref().is_err_and(|error| !error.contains("error:")), "{words}: {answer:?}");
        }
    }

    /// Not only by its own account: the API server refuses. The claim is still there after that.
    pub fn is_refused(&self, all: &[&str]) {
        for words in all {
            let answer = self.kubectl(words).expect_err("it is refused");
            assert!(answer.contains("forbidden"), "{words}: {answer}");
        }
        self.lab.kubectl(["get", "pvc", "precious"]).expect("the claim is still there");
    }
}
