//! `bindery controller`, from the outside: the binary on a real API server, killed, doubled, cut off and lied to. What it
//! promises is checked on everything that the API server ever held, revision by revision.

mod cluster;
mod faults;
mod history;
mod kill;
mod leaders;
mod load;
mod promises;
mod proxy;
mod restart;
#[path = "../service_account/mod.rs"]
mod service_account;
