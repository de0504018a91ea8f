//! What the project's tasks share.

pub mod assets;
pub mod bench;
mod golang;
pub mod manifests;
pub mod rules;
