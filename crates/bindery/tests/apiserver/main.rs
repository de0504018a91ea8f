//! `bindery apiserver` and `bindery up`, from the outside: the binary, with kubectl and with requests that make no sense.

mod bad_input;
mod durable;
mod kubectl;
mod nodes;
mod process;
mod server;
mod storage;
mod up;
mod upstream;
