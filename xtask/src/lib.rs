//! What the project's tasks share.

pub mod bench;
pub mod rules;
