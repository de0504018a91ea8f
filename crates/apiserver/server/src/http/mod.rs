//! HTTP: paths, methods, headers and bodies around the synchronous heart. The only room that awaits.
//!
//! A request is read ([`request`]), its place found ([`path`]), the store asked once while it is locked ([`shared`]), and the
//! answer written from bytes that the store shares ([`reply`], [`rows`], [`events`]). What is not about objects is a document
//! that is made once ([`discovery`], [`openapi`]).

mod accept;
mod body;
mod caretaker;
mod connection;
mod discovery;
mod events;
mod health;
mod messages;
mod moments;
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
mod version;

pub use caretaker::tend;
pub use connection::serve;
pub use moments::Moments;
pub use shared::{Journal, Shared};
