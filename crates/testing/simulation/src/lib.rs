//! A simulated cluster to run the engine in.
//!
//! | module | what it provides |
//! |---|---|
//! | [`SimulatedCluster`] | API server and storage in memory: objects as JSON, conditional writes, watch events, scripted operations |
//! | [`EngineApi`], [`user_api`] | the interfaces of a cluster for an engine and for a user; the embedded API server implements them, too |
//! | [`notation`] | a notation with one line per object |
//! | [`run`], [`two_leaders`] | run one engine, or two engines that both act as leader, until nothing happens anymore |
//! | [`table`] | table tests: a state, what happens, the state after |
//! | [`storage`], [`provisioner`] | a storage backend with scripted responses; an external provisioner |
//! | [`oracle`] | states recorded with the upstream controllers |
//!
//! This crate contains no rules. It is used in tests only.

mod engine_api;
pub mod notation;
pub mod oracle;
pub mod provisioner;
mod recycler_pods;
pub mod run;
mod simulated_cluster;
pub mod storage;
pub mod table;
pub mod two_leaders;
pub mod user_api;

pub use engine_api::EngineApi;
pub use recycler_pods::{RecyclerPods, SimulatedPod};
pub use simulated_cluster::{InjectedError, SimulatedCluster, WatchEvent, decode, describe, patched};
