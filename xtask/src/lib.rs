//! Shared code of the project's tasks.

pub mod assets;
pub mod bench;
mod golang;
pub mod manifests;
pub mod rules;
