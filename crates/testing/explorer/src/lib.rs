//! Explores every interleaving of a small world, and checks the promises in all of them.
//!
//! ```text
//!  Scenario ─▶ World ──steps──▶ World ──▶ …      breadth-first; a state that was visited is not
//!                │                               visited again
//!                ├─ API server: objects, versions
//!                ├─ storage: volumes, running calls
//!                └─ instances: the real engine with the real rules; requests, answers and watch
//!                   events on their way
//! ```
//!
//! Chaos tests draw random histories of large worlds. The explorer visits all histories of small
//! ones: one or two claims, one or two volumes, two instances that both believe to be the leader.
//! Everything that can happen, happens in every order: a watch event is delivered, a request is
//! carried out, its answer is delivered, a timer fires, a user acts, an instance crashes, an answer
//! is lost, a request is carried out late. [`Faults`] bounds how often each fault occurs, so the
//! number of states is finite.
//!
//! - Never: the promises S1 to S13 are checked at every step ([`promises`]).
//! - Eventually: where nothing but faults can happen anymore, the promises L1, L2 and L4 must hold.
//!   The steps without faults form no cycle, so every run without further faults gets there.
//!
//! Limits: a restarted instance lists all kinds at once and without staleness. Time passes only
//! when nothing else can happen, except for [`Faults::early_timers`]. A watch reports at once what
//! the instance already knows from an answer. Nothing is overtaken by more than [`Scenario::lag`]
//! changes. A lost read is not distinguished from a late one. There is no resync, so every wake
//! must be right. This crate contains no rules. It is used in tests only.

mod instance;
pub mod promises;
mod search;
mod server;
mod world;

pub use instance::Rules;
pub use search::{Counterexample, Explored, Model, explore};
pub use server::{Server, Stored};
pub use world::{EndCheck, Faults, Scenario, Step, UserAction, World};
