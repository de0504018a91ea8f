//! A small Kubernetes API server: a synchronous, deterministic store, and HTTP around it.
//!
//! This room does not know any controller, nor what a claim is bound to.
//!
//! [`Api`] is the heart: it is handed a request and the moment at which it comes ([`Moment`]: time and chance), and answers. It reads no
//! clock, draws no random number, locks nothing, and does no I/O. [`kinds`] holds what is special about each kind; [`store`] keeps objects
//! as the very bytes that clients are sent, and [`disk`] where they outlive the process.

pub mod api;
mod chance;
pub mod disk;
mod go_diff;
pub mod host;
pub mod http;
mod invalid;
pub mod kinds;
mod metadata;
mod names;
pub mod status;
pub mod store;
mod structure;
mod value;

pub use api::{Answer, Api, Moment, Options, Request, Target, Verb};
pub use kinds::Kind;
pub use status::Status;
