//! Notifications that are combined until somebody takes them.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// A set of what has happened since it was last taken. What happens repeatedly is stored once, so
/// that its size is bounded by the number of different values.
#[derive(Debug)]
pub struct Coalesced<T> {
    values: Mutex<BTreeSet<T>>,
    notify: Notify,
}

impl<T> Default for Coalesced<T> {
    fn default() -> Coalesced<T> {
        Coalesced { values: Mutex::default(), notify: Notify::new() }
    }
}

impl<T: Ord> Coalesced<T> {
    /// Adds a value. Does not block.
    pub fn add(&self, value: T) {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).insert(value);
        self.notify.notify_one();
    }

    /// Waits until there are values, and takes them.
    pub async fn next(&self) -> BTreeSet<T> {
        loop {
            let values = std::mem::take(&mut *self.values.lock().unwrap_or_else(PoisonError::into_inner));
            if !values.is_empty() {
                return values;
            }
            self.notify.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn values_that_repeat_are_stored_once() {
        let coalesced = Coalesced::default();
        assert!(coalesced.next().now_or_never().is_none());
        for number in 0..10_000 {
            coalesced.add(number % 3);
        }
        assert_eq!(coalesced.next().now_or_never(), Some(BTreeSet::from([0, 1, 2])));
        assert!(coalesced.next().now_or_never().is_none(), "they were taken");
    }
}
