//! Holding a call, so that a test can kill the caller at a known moment.

use std::future::{Future, pending};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// When a call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// After it was received, before it is carried out.
    Received,
    /// After it was carried out, before it is answered.
    Done,
}

/// The call to hold, if any.
#[derive(Default)]
pub(super) struct Hold(Mutex<State>);

#[derive(Default)]
struct State {
    arrived: usize,
    nth: Option<(usize, When)>,
    is_holding: bool,
}

impl Hold {
    pub(super) fn set(&self, nth: usize, when: When) {
        *self.state() = State { nth: Some((nth, when)), ..State::default() };
    }

    pub(super) fn is_holding(&self) -> bool {
        self.state().is_holding
    }

    pub(super) fn arrived(&self) -> usize {
        self.state().arrived
    }

    /// Carries out a call; the selected one is held forever, before or after.
    pub(super) async fn around<A>(&self, call: impl Future<Output = A>) -> A {
        let when = self.count();
        if when == Some(When::Received) {
            self.stop().await;
        }
        let answer = call.await;
        if when == Some(When::Done) {
            self.stop().await;
        }
        answer
    }

    /// Counts a call. Returns when to hold it, if it is the selected one.
    fn count(&self) -> Option<When> {
        let mut state = self.state();
        state.arrived += 1;
        let arrived = state.arrived;
        state.nth.filter(|(nth, _)| *nth == arrived).map(|(_, when)| when)
    }

    async fn stop(&self) {
        self.state().is_holding = true;
        pending().await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
