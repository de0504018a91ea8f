//! The roles that deploy/ grants are enough, and no more than enough: shown with the binary on a real API server that authorizes
//! by RBAC, and by that server's audit log, which says what was asked for and what was refused.

mod audit;
mod controller;
mod denied;
mod local;
mod node_cleanup;
mod provisioner;
mod scheduler;
#[path = "../service_account/mod.rs"]
mod service_account;
