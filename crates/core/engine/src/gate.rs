//! The admission gate: every read, write, list and operation passes it.
//!
//! A window limits the requests in flight. It starts at [`Config::requests_max`], is halved when
//! the API server is overloaded or does not respond, and grows by a quarter with each window of
//! responses. A Retry-After pauses everything. Operations have a limit of their own, because they
//! take minutes and hardly load the API server.
//!
//! The engine asks the gate before each decision, so a key that does not use its slot passes it on,
//! and keys that wait are served while there is capacity.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use bindery_model::hash::digest;
use bindery_rules_api::Listing;

use crate::queue::Work;
use crate::{Config, Moment, RequestError, RequestId};

/// The longest pause that a Retry-After causes for all requests. The rejected request itself waits
/// as long as the server asked for.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The window is never less than this fraction of the maximum: requests that hang, such as in an
/// admission webhook, must not stop all others.
const WINDOW_MIN_FRACTION: usize = 16;

/// The admission gate.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    window: usize,
    window_max: usize,
    operations_max: usize,
    jitter_seed: Option<u64>,
    /// Reads, writes and lists in flight.
    requests: usize,
    operations: usize,
    /// The number of requests sent so far. It is the ID of the last one.
    sent: u64,
    /// Responses since the window last changed.
    responses: usize,
    /// The number of requests that were sent when the window was last halved. Failures of these
    /// requests do not halve it again.
    sent_when_slowed: u64,
    paused_until: Moment,
    /// Lists that wait for capacity, in order. They come before keys that were not decided about.
    lists: VecDeque<Listing>,
    /// Keys that wait until an operation may start, in order.
    waiting_for_operation: VecDeque<Work>,
    /// Requests that are to be sent after a pause. They lock their targets already.
    held: VecDeque<RequestId>,
}

impl Gate {
    pub fn new(config: &Config) -> Gate {
        Gate {
            window: config.requests_max,
            window_max: config.requests_max,
            operations_max: config.operations_max,
            jitter_seed: config.jitter_seed,
            requests: 0,
            operations: 0,
            sent: 0,
            responses: 0,
            sent_when_slowed: 0,
            paused_until: Moment::default(),
            lists: VecDeque::new(),
            waiting_for_operation: VecDeque::new(),
            held: VecDeque::new(),
        }
    }

    /// Sets the random number that spreads delays.
    pub fn set_jitter(&mut self, seed: u64) {
        self.jitter_seed = Some(seed);
    }

    /// The number of reads, writes and lists in flight.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// The number of operations in flight.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// The most requests that may be in flight now.
    pub fn window(&self) -> usize {
        self.window
    }

    /// The end of the pause, if there is one.
    pub fn paused_until(&self, now: Moment) -> Option<Moment> {
        Some(self.paused_until).filter(|until| now < *until)
    }

    /// Whether a key may be decided about: its request could be sent.
    pub fn admits_request(&self, now: Moment) -> bool {
        self.paused_until(now).is_none() && self.requests + self.lists.len() < self.window
    }

    /// Whether another operation may start.
    pub fn admits_operation(&self) -> bool {
        self.operations < self.operations_max
    }

    /// Makes a list wait for capacity.
    pub fn wait_for_list(&mut self, listing: Listing) {
        self.lists.push_back(listing);
    }

    /// The next list that may be sent.
    pub fn next_list(&mut self, now: Moment) -> Option<Listing> {
        let has_capacity = self.paused_until(now).is_none() && self.requests < self.window;
        if has_capacity { self.lists.pop_front() } else { None }
    }

    /// Makes a key wait until an operation may start.
    pub fn wait_for_operation(&mut self, work: Work) {
        self.waiting_for_operation.push_back(work);
    }

    /// Whether a key waits for an operation, and one may start.
    pub fn has_operation_to_start(&self) -> bool {
        self.admits_operation() && !self.waiting_for_operation.is_empty()
    }

    /// The next key that waits for an operation, if one may start.
    pub fn next_for_operation(&mut self) -> Option<Work> {
        if self.admits_operation() { self.waiting_for_operation.pop_front() } else { None }
    }

    /// Sends a request after the pause.
    pub fn hold(&mut self, id: RequestId) {
        self.held.push_back(id);
    }

    /// The next request that was held and may be sent.
    pub fn next_held(&mut self, now: Moment) -> Option<RequestId> {
        if self.paused_until(now).is_none() { self.held.pop_front() } else { None }
    }

    /// Drops everything that waits, except requests that lock an object.
    pub fn clear_waiting(&mut self) {
        self.lists.clear();
        self.waiting_for_operation.clear();
    }

    /// Counts a request as in flight.
    pub fn start(&mut self, is_operation: bool) -> RequestId {
        if is_operation {
            self.operations += 1;
        } else {
            self.requests += 1;
        }
        self.sent += 1;
        RequestId(self.sent)
    }

    /// Counts a request as answered, and learns from its error how much the API server can take.
    pub fn finish(&mut self, now: Moment, id: RequestId, is_operation: bool, error: Option<&RequestError>) {
        if is_operation {
            self.operations -= 1;
        } else {
            self.requests -= 1;
        }
        if let Some(RequestError::RetryAfter(delay, _)) = error {
            let pause = self.later((*delay).min(PAUSE_MAX), id);
            self.paused_until = self.paused_until.max(now + pause);
        }
        match error {
            Some(error) if is_overload(error, is_operation) => self.slow_down(id),
            Some(_) | None if is_operation => {}
            Some(_) | None => self.speed_up(),
        }
    }

    /// Whether a request was sent before the window was last halved, so that it does not halve it
    /// again.
    pub fn was_sent_before_slow_down(&self, id: RequestId) -> bool {
        id.0 <= self.sent_when_slowed
    }

    fn slow_down(&mut self, id: RequestId) {
        if self.was_sent_before_slow_down(id) {
            return;
        }
        let window_min = (self.window_max / WINDOW_MIN_FRACTION).max(1);
        self.window = (self.window / 2).max(window_min);
        (self.sent_when_slowed, self.responses) = (self.sent, 0);
    }

    fn speed_up(&mut self) {
        if self.window >= self.window_max {
            return;
        }
        self.responses += 1;
        if self.responses >= self.window {
            self.window = (self.window + (self.window / 4).max(1)).min(self.window_max);
            self.responses = 0;
        }
    }

    /// A delay that a server asked for, up to a quarter later, so that not all of its clients come
    /// back at once.
    fn later(&self, delay: Duration, id: RequestId) -> Duration {
        match self.jitter_seed {
            Some(seed) => delay + fraction(delay / 4, (seed, id)),
            None => delay,
        }
    }

    /// Adds the state to a digest, with times relative to now. Requests in flight have digests of
    /// their own.
    pub fn digest(&self, now: Moment, request: &dyn Fn(RequestId) -> u64, state: &mut impl Hasher) {
        (self.window, self.responses, self.paused_until.since(now)).hash(state);
        (&self.lists, &self.waiting_for_operation).hash(state);
        self.held.iter().map(|id| request(*id)).collect::<Vec<_>>().hash(state);
    }
}

/// Whether an error shows that the API server is overloaded or does not respond. An operation
/// shows it only if its error asks for a delay explicitly.
fn is_overload(error: &RequestError, is_operation: bool) -> bool {
    match error {
        RequestError::RetryAfter(..) => true,
        RequestError::Lost => !is_operation,
        RequestError::Unknown(status, _) => !is_operation && matches!(status, 0 | 429 | 503 | 504),
        RequestError::Error(status, _) => !is_operation && matches!(status, 429 | 503 | 504),
        RequestError::Conflict | RequestError::NotFound | RequestError::AlreadyExists => false,
    }
}

/// A part of a duration that depends on a value, evenly distributed over all values.
pub(crate) fn fraction(of: Duration, value: impl Hash) -> Duration {
    let part = digest(value) >> 32;
    Duration::from_nanos(((of.as_nanos() * u128::from(part)) >> 32).try_into().unwrap_or(u64::MAX))
}
