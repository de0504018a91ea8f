//! Benchmarks: of the decision core alone (no API server, no network), of whole binders on a real API
//! server, and of API servers.

pub mod apiserver;
pub mod binder;
pub mod choose;
pub mod drive;
pub mod objects;
pub mod placement;
