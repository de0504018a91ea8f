//! A synchronous state machine that hosts rule sets.
//!
//! ```text
//!  watched change ─┐                                      ┌─▶ request to send
//!          answer ─┤                                      ├─▶ event to publish
//!            tick ─┼─▶ Engine::handle(now, input) ────────┼─▶ verdict, to log
//!      leadership ─┘   mirror · queue · flights · timers  └─▶ moment to tick at
//! ```
//!
//! One thread decides for the whole cluster; hundreds of requests are under way at once, never two of them changing one object.
//! FailureEffect each answer the rules look again, so that every crash point lies between two steps.
//!
//! This room does not know what a claim or a volume is for, nor any rule; it does not await, sleep, lock, or read a clock.
//! It relies on one thing: whoever sends its requests answers each of them, if need be with [`RequestError::Lost`].

mod backoff;
mod config;
mod engine;
mod flights;
mod io;
mod progress;
mod published_events;
mod stats;

pub use config::Config;
pub use engine::Engine;
pub use io::{Answer, Decided, Input, Measured, Moment, Output, RequestError, RequestId};
pub use stats::{Histogram, Queue, Stats};
