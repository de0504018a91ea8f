//! Runs an engine against a Kubernetes API server. All I/O of the controllers is in this crate.
//!
//! Watches feed the engine; its requests are sent, and every request gets an answer. Events are
//! published from a separate queue, and a Lease elects the leader.
//!
//! ```text
//!   watches ─┐               ┌─▶ Caller: one conditional request, one answer
//!     lease ─┼─▶ EngineTask ─┼─▶ RunOperation: work outside the API server
//!     clock ─┘       ▲       └─▶ EventSink
//!                    └─ answers
//! ```
//!
//! This crate contains no rules and makes no decisions. Safety never depends on the Lease, only on
//! the preconditions of every request.
//!
//! Limits: watched changes wait in a queue that is bounded by the number of objects; the engine
//! limits the requests in flight, and callers the queries; the event queue and every log that
//! recognises repeats have a maximum size.

mod api;
mod caller;
mod change_queue;
mod connection_error;
mod correlator;
mod decision_log;
mod engine_host;
mod engine_task;
mod events;
mod lease;
mod list;
mod observer;
mod operation;
mod pending_claims;
mod permissions;
mod records;
mod recycler;
mod rejection_log;
mod transport;
mod watch;
mod watch_status;

pub use api::{Api, CALL_DEADLINE, GetError};
pub use caller::Caller;
pub use change_queue::{ChangeReceiver, ChangeSender, WatchedChange, change_queue};
pub use connection_error::connection_error;
pub use engine_host::{EngineHost, shutdown_signal};
pub use engine_task::{EngineQuery, EngineTask, Message};
pub use events::EventSink;
pub use lease::{Lease, LeaseConfig};
pub use list::{ListError, list};
pub use observer::{FinishedOperation, LeaseStatus, NoObserver, Observer};
pub use operation::RunOperation;
pub use pending_claims::PendingClaims;
pub use permissions::{Permission, PermissionStatus, check_permissions};
pub use records::{RecordTask, Records, list_records};
pub use recycler::Recycler;
pub use transport::client;
pub use watch::watch;
pub use watch_status::WatchStatus;
