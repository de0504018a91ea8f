//! A world in memory to run the engine in.
//!
//! [`World`] stands for the API server and for what lies outside it: it keeps objects as JSON, answers requests at once, refuses
//! stale writes, tells what changed, and has plugins that do as they are told. Whoever else answers an engine is an
//! [`Answerer`] too. [`notation`] writes states down in a line an
//! object, for tests to read as the domain. [`run`] runs an engine in a world until it is quiet, with restarts where one likes, and
//! [`twins`] runs two. [`table`] checks cases that are written down in tables.
//! [`provisioner`] makes volumes, or fails to.
//!
//! This room does not know any rule. It is never part of what is shipped.

mod answerer;
pub mod cluster;
pub mod notation;
pub mod oracle;
pub mod provisioner;
pub mod run;
pub mod storage;
pub mod table;
pub mod twins;
mod world;

pub use answerer::Answerer;
pub use world::{Injected, Told, World, describe};
