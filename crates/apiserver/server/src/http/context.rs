//! The clock and the randomness that the store does not have.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use crate::api::RequestContext;

/// Creates the context of each request. The random numbers are a counter, hashed with keys that are
/// new in every process, so they do not repeat.
#[derive(Default)]
pub struct ContextSource {
    high: RandomState,
    low: RandomState,
    drawn: AtomicU64,
}

impl ContextSource {
    /// The context of a new request.
    pub fn next(&self) -> RequestContext {
        RequestContext { now: Timestamp::now(), seed: self.random() }
    }

    /// A random number that was not returned before.
    pub fn random(&self) -> u128 {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        (u128::from(self.high.hash_one(drawn)) << 64) | u128::from(self.low.hash_one(drawn))
    }
}
