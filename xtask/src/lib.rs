//! What the project's tasks share.

pub mod assets;
pub mod bench;
pub mod rules;
