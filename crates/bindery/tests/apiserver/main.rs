//! `bindery apiserver` and `bindery up` as processes, with kubectl and with invalid requests.

mod bad_input;
mod durable;
mod kubectl;
mod nodes;
mod process;
mod server;
mod snapshot;
mod storage;
mod up;
mod upstream;
