//! The roles in deploy/ grant exactly what the commands use: shown with the binary on a real API
//! server with RBAC, and by its audit log.

mod audit;
mod controller;
mod denied;
mod local;
mod missing;
mod node_cleanup;
mod provisioner;
mod scheduler;
#[path = "../service_account/mod.rs"]
mod service_account;
