//! Holding a call, so that whoever made it can be killed at a moment that the test knows.

use std::future::{Future, pending};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// When a call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It has been received, and is not carried out.
    Received,
    /// It is carried out, and not answered.
    Done,
}

/// Which call is held, if any is to be.
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

    /// Carries out a call, and holds it before or after that for ever, if it is the one.
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

    /// Counts a call. Returns when it is to be held, if it is the one.
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
