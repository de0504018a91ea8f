//! A small Kubernetes API server: a synchronous, deterministic store, and HTTP around it.
//!
//! [`Api`] handles a request, given the time and a random seed ([`RequestContext`]). It reads no
//! clock, draws no random numbers, takes no locks and does no I/O. [`kinds`] has what is special
//! about each kind, [`store`] keeps objects as the bytes that clients receive, and [`disk`]
//! persists them.
//!
//! Everything is bounded: what is stored and remembered ([`api::Settings`]), what happens at the
//! same time ([`http::Limits`]), the size of an object and of its lists, and the background work
//! between two requests. Requests are handled one at a time while the store is locked, so a request
//! with the largest lists delays all others by up to seconds.
//!
//! This crate knows no controllers, and nothing about binding volumes.

pub mod api;
mod codec;
pub mod disk;
mod field_errors;
mod go_diff;
pub mod host;
pub mod http;
pub mod kinds;
mod metadata;
mod names;
mod rng;
pub mod status;
pub mod store;
mod value;

pub use api::{Answer, Api, Options, Request, RequestContext, Target, Verb};
pub use kinds::Kind;
pub use status::Status;
