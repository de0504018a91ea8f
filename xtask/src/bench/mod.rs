//! Benchmarks of the decision core: no API server, no network, nothing but deciding.

pub mod choose;
pub mod drive;
pub mod objects;
