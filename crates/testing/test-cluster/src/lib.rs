//! API servers for tests: kube-apiserver, or the one embedded in `bindery`.
//!
//! A [`TestCluster`] starts etcd and kube-apiserver on loopback, with RBAC, in a temporary
//! directory. It is ready within seconds. All processes and files are removed when the
//! `TestCluster` is dropped or when its process ends in any way (see `watchdog.rs`). Other programs
//! (kube-controller-manager, kube-scheduler, `bindery`) can be started in it and are cleaned up in
//! the same way.
//!
//! The binaries come from `KUBEBUILDER_ASSETS`, or from the cache of `cargo xtask assets`. A test
//! starts with
//!
//! ```no_run
//! # use bindery_test_cluster::TestCluster;
//! let Some(cluster) = TestCluster::for_test() else { return }; // skipped without binaries
//! let kubeconfig = format!("--kubeconfig={}", cluster.kubeconfig().display());
//! let flags = [kubeconfig.as_str(), "--leader-elect=false"];
//! let controllers = cluster.start_program("kube-controller-manager", flags);
//! println!("{}", cluster.kubectl(["get", "persistentvolumes"]).expect("volumes"));
//! # drop(controllers);
//! ```
//!
//! With [`Builder::embedded`] the same tests run on the API server embedded in `bindery`.
//!
//! This crate is used in tests and benchmarks only, and depends on no other crate of the workspace.

pub mod assets;
mod builder;
mod disks;
mod etcd;
mod keys;
mod port;
mod running;
mod server;
mod test_cluster;
mod users;
mod wait;
mod watchdog;

pub use builder::Builder;
pub use disks::Disks;
pub use running::Running;
pub use test_cluster::TestCluster;
pub use wait::{KUBECTL_TIMEOUT, TIMEOUT, eventually, wait_until};
