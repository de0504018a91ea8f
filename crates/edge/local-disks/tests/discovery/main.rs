//! Decisions about discovery and cleaning: a state, and the decision. Every rule has a case.

mod cleaning;
mod entries;
mod volumes;
mod world;
