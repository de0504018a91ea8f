//! The only room that awaits.
//!
//! Watches tell the engine what happens; what the engine orders is sent, and every request is answered, come what may; events go
//! to a sink off the binding path; a lease says who leads; an HTTP endpoint tells how it goes.
//!
//! ```text
//!   watch a kind ─┐                       ┌─▶ Caller: one conditional request, one answer
//!          lease ─┼─▶ brain (the engine) ─┼─▶ InTreeOperations: work outside the API
//!          clock ─┘         ▲             └─▶ event sink
//!                           └── answers ──┘
//! ```
//!
//! This room does not know any rule, and decides nothing: it moves bytes. Safety never rests on the lease, only on the
//! preconditions that every request carries.

mod api;
mod correlate;
mod engine_host;
mod engine_task;
mod events;
mod lease;
mod list;
mod observe;
mod operate;
mod recycle;
mod send;
mod transport;
mod watch;

pub use api::{Api, CALL_DEADLINE, GetError};
pub use engine_host::{EngineHost, shutdown_signal};
pub use engine_task::{Ask, EngineTask, Message};
pub use events::EventSink;
pub use lease::{Lease, LeaseConfig};
pub use list::{Unlisted, list};
pub use observe::{Leased, NoObserver, Observer, Operated};
pub use operate::{InTreeOperations, RunOperation};
pub use send::Caller;
pub use transport::client;
pub use watch::watch;
