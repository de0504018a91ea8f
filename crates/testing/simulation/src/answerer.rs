//! Whoever answers an engine: the world in memory, or in tests the core of the embedded API server.

use bindery_engine::{Answer, Moment};
use bindery_model::{Kind, Object};
use bindery_rules_api::Request;

use crate::world::Told;

/// Answers an engine's requests, and tells it what happens.
pub trait Answerer {
    /// All objects of a kind, and the version they are of. Whatever of that kind is still to be told is told by this.
    fn list(&mut self, kind: Kind) -> (u64, Vec<Object>);

    /// The next thing that a watch tells, if there is any.
    fn told(&mut self) -> Option<Told>;

    /// Carries out a request, or refuses it.
    fn answer(&mut self, request: &Request) -> Answer;

    /// What time it is from now on.
    fn pass(&mut self, now: Moment);

    /// How many requests changed something, or did something outside.
    fn effects(&self) -> usize;

    /// Every request that was carried out or refused, in words.
    fn history(&self) -> &[String];
}
