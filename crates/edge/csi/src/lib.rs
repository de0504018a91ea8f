//! Storage by a CSI driver: what is asked of it, and what its answers make.
//!
//! ```text
//!   claim, class ─▶ prepare (pure) ─▶ CreateVolume ─▶ answer (pure) ─▶ a volume
//!                     │    ▲                            └─▶ or DeleteVolume, where it cannot be kept
//!                     ▼    │
//!                  Look: objects, live
//! ```
//!
//! It does not know when a volume is asked for or removed, nor what a claim is bound to; it writes no volume, and no claim but for the
//! finalizer on one that another is filled from. Secrets are read when they are passed on, and neither kept nor logged.

mod answer;
pub mod capacity;
mod delete;
mod driver;
mod facts;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod fields;
mod look;
mod migration;
mod path;
mod prepare;
mod refusal;
mod setup;
mod storage;
mod sweep;
mod taking;
mod wire;

pub use driver::{Called, Calls, Driver, Introduction};
pub use facts::{Facts, Found, Patch, Wrote};
pub use look::{Look, Server};
pub use prepare::{Prepared, SecretRef, Secrets, Source, Step, next};
pub use refusal::code as code_name;
pub use setup::{Abilities, Setup};
pub use storage::Csi;
pub use sweep::sweep;
pub use taking::{Free, Taking};

/// The interface itself, made from `proto/csi.proto`.
#[allow(missing_docs, unused_qualifications, clippy::all)]
pub mod proto {
    tonic::include_proto!("csi.v1");
}
