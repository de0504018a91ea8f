//! HTTP: paths, methods, headers and bodies around the synchronous [`Api`](crate::Api). All
//! asynchronous code of the server is here.
//!
//! A request is read (`request`) and routed (`path`), the store is locked once (`shared`),
//! and the response is written from bytes that the store shares (`reply`, `rows`, `events`).
//! Other documents are encoded once (`discovery`, `openapi`).

mod accept;
mod activity;
mod audit;
mod authentication;
mod background;
mod body;
mod call_info;
mod connection;
mod context;
mod discovery;
mod events;
mod health;
mod limits;
mod messages;
mod metrics;
mod objects;
mod openapi;
mod path;
mod pretty;
mod protobuf;
mod query;
mod reply;
mod request;
mod reviews;
mod rows;
mod shape;
mod shared;
mod snapshot;
mod version;

pub use audit::{AUDIT_BYTES_MAX, AuditLog};
pub use background::run_background_tasks;
pub use connection::serve;
pub use context::ContextSource;
pub use limits::Limits;
pub use shared::{Journal, ServerInfo, Shared};
pub use version::GIT_VERSION;

/// The whole list as JSON.
#[cfg(test)]
pub(crate) fn list_bytes(list: crate::api::List) -> Vec<u8> {
    rows::Rows::new(list, shape::Form::Plain).all().to_vec()
}
