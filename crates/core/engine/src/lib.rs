//! A synchronous state machine that calls rule sets and tracks their requests.
//!
//! ```text
//!  watched change ─┐                                               ┌─▶ request to send
//!          answer ─┤                                               ├─▶ event to publish
//!            tick ─┼─▶ Engine::handle(now, input) ─────────────────┼─▶ decision to log
//!      leadership ─┘   cache · queue · requests in flight · timers ├─▶ rejection to report
//!                                                                  └─▶ time of the next tick
//! ```
//!
//! One thread decides for the whole cluster. Hundreds of requests are in flight at once, but never
//! two that change the same object. After each answer the rules decide again, so a crash can only
//! happen between two steps.
//!
//! The engine contains no rules and has no knowledge of claims or volumes. It does not await,
//! sleep, lock or read a clock. It requires that every request is answered, if necessary with
//! [`RequestError::Lost`].

mod backoff;
mod config;
mod engine;
mod gate;
mod in_flight;
mod io;
mod published_events;
mod queue;
mod stats;

pub use config::Config;
pub use engine::Engine;
pub use io::{Answer, Decided, Input, Measured, Moment, Output, Rejection, RequestError, RequestId};
pub use stats::{Histogram, Queue, Stats};
