//! Benchmarks: of the decision core alone (no API server, no network), and of whole binders on a real API server.

pub mod binder;
pub mod choose;
pub mod drive;
pub mod objects;
