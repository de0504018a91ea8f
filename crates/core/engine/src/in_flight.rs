//! Requests in flight: their number, their keys, and the objects that they lock.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

use bindery_model::ObjectKey;
use bindery_model::hash::{digest, digest_unordered};
use bindery_rules_api::{Listing, Request};
use rustc_hash::FxHashMap;

use crate::queue::Work;
use crate::{Config, RequestId};

/// A request in flight.
#[derive(Debug, Clone)]
pub(crate) struct InFlightRequest {
    pub work: Work,
    pub request: Request,
    /// The target's version in the cache when it was sent.
    pub cached_version: Option<u64>,
    /// For a read after a rejected write: the version that the write was conditional on.
    pub checks_version: Option<u64>,
}

/// All requests in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight {
    by_id: FxHashMap<RequestId, InFlightRequest>,
    /// Objects that a request in flight locks: two requests never change the same object.
    locked: FxHashMap<ObjectKey, RequestId>,
    /// Keys that wait for an object to be unlocked, in order.
    waiting: FxHashMap<ObjectKey, VecDeque<Work>>,
    /// Lists to send, and the keys that wait for them.
    requested_lists: BTreeMap<Listing, Vec<Work>>,
    /// Lists in flight, and the keys that wait for them.
    lists: FxHashMap<RequestId, (Listing, Vec<Work>)>,
    /// Keys that wait until an operation may start, in order.
    waiting_for_operation: VecDeque<Work>,
    operations: usize,
    sent: u64,
}

impl InFlight {
    /// The number of reads and writes in flight.
    pub fn requests(&self) -> usize {
        self.by_id.len() + self.lists.len() - self.operations
    }

    /// The number of operations in flight.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Whether another read or write may be sent.
    pub fn has_capacity(&self, config: &Config) -> bool {
        self.requests() < config.requests_max
    }

    /// Whether another operation may start.
    pub fn has_operation_capacity(&self, config: &Config) -> bool {
        self.operations < config.operations_max
    }

    /// Adds the requests and the keys that wait for them to a digest, each request by its digest.
    pub fn digest(&self, request: &dyn Fn(RequestId) -> u64, state: &mut impl Hasher) {
        let of_request = |(id, sent): (&RequestId, &InFlightRequest)| {
            digest((request(*id), &sent.work, sent.cached_version, sent.checks_version))
        };
        digest_unordered(self.by_id.iter().map(of_request), state);
        digest_unordered(self.locked.iter().map(|(key, id)| (key, request(*id))), state);
        digest_unordered(&self.waiting, state);
        digest_unordered(self.lists.iter().map(|(id, (_, waiting))| (request(*id), waiting)), state);
        (&self.requested_lists, &self.waiting_for_operation).hash(state);
    }

    pub fn is_locked(&self, key: &ObjectKey) -> bool {
        self.locked.contains_key(key)
    }

    /// Registers a sent request and locks its target if necessary.
    pub fn send(&mut self, request: InFlightRequest) -> RequestId {
        self.sent += 1;
        let id = RequestId(self.sent);
        // A read after a rejected write keeps the lock until the outcome is known.
        if request.request.locks_target() || request.checks_version.is_some() {
            let before = self.locked.insert(request.request.target(), id);
            assert!(before.is_none(), "two requests must not change the same object");
        }
        if matches!(request.request, Request::RunOperation(_)) {
            self.operations += 1;
        }
        self.by_id.insert(id, request);
        id
    }

    /// Removes an answered request and unlocks its target; `None` if the ID is unknown.
    pub fn complete(&mut self, id: RequestId) -> Option<InFlightRequest> {
        let completed = self.by_id.remove(&id)?;
        if matches!(completed.request, Request::RunOperation(_)) {
            self.operations -= 1;
        }
        let target = completed.request.target();
        if self.locked.get(&target) == Some(&id) {
            self.locked.remove(&target);
        }
        Some(completed)
    }

    pub fn request_list(&mut self, listing: Listing, work: Work) {
        self.requested_lists.entry(listing).or_default().push(work);
    }

    /// Registers the next requested list that is not in flight as sent, and reports the keys that
    /// wait for it; `None` if there is no such list.
    pub fn send_list(&mut self, sent_for: impl FnMut(&Work)) -> Option<(RequestId, Listing)> {
        let is_in_flight = |listing: &Listing| self.lists.values().any(|(other, _)| other == listing);
        let listing = self.requested_lists.keys().find(|listing| !is_in_flight(listing))?.clone();
        let waiting = self.requested_lists.remove(&listing)?;
        waiting.iter().for_each(sent_for);
        self.sent += 1;
        let id = RequestId(self.sent);
        self.lists.insert(id, (listing.clone(), waiting));
        Some((id, listing))
    }

    /// Removes an answered list, with the keys that wait for it.
    pub fn complete_list(&mut self, id: RequestId) -> Option<(Listing, Vec<Work>)> {
        self.lists.remove(&id)
    }

    pub fn wait_for(&mut self, object: ObjectKey, work: Work) {
        self.waiting.entry(object).or_default().push_back(work);
    }

    pub fn wait_for_operation(&mut self, work: Work) {
        self.waiting_for_operation.push_back(work);
    }

    /// Removes the keys that wait for an object, in order.
    pub fn take_waiting(&mut self, object: &ObjectKey) -> VecDeque<Work> {
        self.waiting.remove(object).unwrap_or_default()
    }

    /// Removes the first key that waits for an operation.
    pub fn take_waiting_for_operation(&mut self) -> Option<Work> {
        self.waiting_for_operation.pop_front()
    }

    /// Removes all waiting keys.
    pub fn clear_waiting(&mut self) {
        self.waiting.clear();
        self.requested_lists.clear();
        // Lists in flight were requested by decisions that no longer count.
        for (_, waiting) in self.lists.values_mut() {
            waiting.clear();
        }
        self.waiting_for_operation.clear();
    }
}
