//! A world in memory to run the engine in.
//!
//! [`World`] stands for the API server and for what lies outside it: it keeps objects as JSON, answers requests at once, refuses
//! stale writes, tells what changed, and has plugins that do as they are told. [`Served`] is the same by the core of the embedded
//! API server, without HTTP and on the engine's clock. [`notation`] writes states down in a line an
//! object, for tests to read as the domain. [`run`] runs an engine in a world until it is quiet, with restarts where one likes.
//!
//! This room does not know any rule. It is never part of what is shipped.

mod answerer;
pub mod cluster;
pub mod notation;
pub mod oracle;
pub mod run;
mod served;
mod world;

pub use answerer::Answerer;
pub use served::Served;
pub use world::{Injected, Told, World};
