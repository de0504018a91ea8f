//! A digest of the engine's state, by which an explorer recognises a state that it has visited.

use std::hash::{DefaultHasher, Hash, Hasher};

use bindery_model::hash::digest;

use super::Engine;
use crate::RequestId;

impl Engine {
    /// A digest of everything that later outputs depend on. Counters and measurements are left out;
    /// times are relative to the last input, and requests are identified by the digests that the
    /// caller gives them. Objects are identified by key, UID and resourceVersion, so no two states
    /// of an object may have the same version.
    pub fn digest(&self, request: &dyn Fn(RequestId) -> u64) -> u64 {
        let request = &|id| digest((request(id), self.gate.was_sent_before_slow_down(id)));
        let mut state = DefaultHasher::new();
        self.known.digest(&mut state);
        (&self.unlisted, self.is_leader).hash(&mut state);
        self.queue.digest(&mut state);
        self.sweeps.hash(&mut state);
        self.gate.digest(self.now, request, &mut state);
        self.in_flight.digest(request, &mut state);
        self.published.digest(&mut state);
        self.tick_at.map(|tick_at| tick_at.since(self.now)).hash(&mut state);
        state.finish()
    }
}
