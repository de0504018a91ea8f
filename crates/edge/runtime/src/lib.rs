//! The only room that awaits.
//!
//! Watches tell the engine what happens; what the engine orders is sent, and every request is answered, come what may; events go
//! to a sink off the binding path; a lease says who leads; an HTTP endpoint tells how it goes.
//!
//! ```text
//!   watch a kind ─┐                       ┌─▶ Caller: one conditional request, one answer
//!          lease ─┼─▶ brain (the engine) ─┼─▶ Operator: work outside the API
//!          clock ─┘         ▲             └─▶ event sink
//!                           └── answers ──┘
//! ```
//!
//! This room does not know any rule, and decides nothing: it moves bytes. Safety never rests on the lease, only on the
//! preconditions that every request carries.

mod api;
mod brain;
mod correlate;
mod events;
mod hosted;
mod lease;
mod list;
mod observe;
mod operate;
mod paths;
mod recycle;
mod send;
mod transport;
mod watch;

pub use api::{Api, CALL_DEADLINE, NotHad};
pub use brain::{Ask, Brain, Message};
pub use events::EventSink;
pub use hosted::{Hosted, told_to_stop};
pub use lease::{Lease, LeaseConfig};
pub use list::{Unlisted, list};
pub use observe::{Leased, Nobody, Observer, Operated};
pub use operate::{Operate, Operator};
pub use send::Caller;
pub use transport::client;
pub use watch::watch;
