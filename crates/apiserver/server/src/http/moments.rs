//! Time and chance, which the store does not have.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;

use crate::api::Moment;

/// Gives every request its moment. Its numbers never come twice: a counter, hashed with keys that are new in every process.
#[derive(Default)]
pub struct Moments {
    high: RandomState,
    low: RandomState,
    drawn: AtomicU64,
}

impl Moments {
    /// Now.
    pub fn next(&self) -> Moment {
        Moment { now: Timestamp::now(), seed: self.chance() }
    }

    /// A number that no one has had.
    pub fn chance(&self) -> u128 {
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        (u128::from(self.high.hash_one(drawn)) << 64) | u128::from(self.low.hash_one(drawn))
    }
}
