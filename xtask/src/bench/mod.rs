//! Benchmarks of the decision core (no API server, no network), of binders on a real API server,
//! and of API servers.

pub mod apiserver;
pub mod binder;
pub mod choose;
pub mod drive;
pub mod large;
pub mod meter;
pub mod objects;
pub mod placement;
