//! The side of a cluster that an engine sees. Implemented by the simulated cluster, and in tests by
//! the core of the embedded API server.

use bindery_engine::{Answer, Moment};
use bindery_model::{Kind, Object};
use bindery_rules_api::Request;

use crate::simulated_cluster::WatchEvent;

/// Lists, watches and requests of an engine.
pub trait EngineApi {
    /// All objects of a kind, and their resource version. Pending watch events of that kind are
    /// dropped.
    fn list(&mut self, kind: Kind) -> (u64, Vec<Object>);

    /// The next watch event, if any.
    fn next_watch_event(&mut self) -> Option<WatchEvent>;

    /// Carries out or rejects a request.
    fn answer(&mut self, request: &Request) -> Answer;

    /// Advances the clock.
    fn set_time(&mut self, now: Moment);

    /// How many requests changed an object or ran an operation.
    fn effects(&self) -> usize;

    /// All requests so far as text, with the error if they were rejected.
    fn history(&self) -> &[String];
}
