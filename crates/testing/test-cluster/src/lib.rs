//! An API server for tests: a real one, or the one that is embedded in `bindery`.
//!
//! A [`TestCluster`] is an etcd and a kube-apiserver of their own, on loopback, with RBAC, in a folder of their own. It is there in
//! seconds, and it is gone when the `TestCluster` is dropped or the process that started it ends, however it ends: a shell beside it
//! sees the end and clears up (see `guard.rs`). Other programs (kube-controller-manager, kube-scheduler, `bindery`) run
//! beside it under the same care.
//!
//! The programs come from `KUBEBUILDER_ASSETS`, or from the cache that `cargo xtask assets` fills. A test begins with
//!
//! ```no_run
//! # use bindery_test_cluster::TestCluster;
//! let Some(lab) = TestCluster::for_test() else { return }; // says that it skips, or fails where the lab is demanded
//! let kubeconfig = format!("--kubeconfig={}", lab.kubeconfig().display());
//! let controllers = lab.start_program("kube-controller-manager", [kubeconfig.as_str(), "--leader-elect=false"]);
//! println!("{}", lab.kubectl(["get", "persistentvolumes"]).expect("volumes"));
//! # drop(controllers);
//! ```
//!
//! With [`Builder::embedded`] the same tests run on the API server that is embedded in `bindery`, under the same care.
//!
//! This room does not know volumes and claims, nor the other crates: it is for tests and benchmarks, and no part of what ships.

pub mod assets;
mod builder;
mod disks;
mod etcd;
mod guard;
mod keys;
mod lab;
mod patience;
mod port;
mod running;
mod server;
mod users;

pub use builder::Builder;
pub use disks::Disks;
pub use lab::TestCluster;
pub use patience::{KUBECTL_PATIENCE, PATIENCE, comes_to_hold, eventually};
pub use running::Running;
