//! Requests in flight: their keys, the objects that they lock, and the keys that share a list.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use bindery_model::ObjectKey;
use bindery_model::hash::{digest, digest_unordered};
use bindery_rules_api::{Listing, Request};
use rustc_hash::FxHashMap;

use crate::RequestId;
use crate::queue::Work;

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

/// A list that keys share.
#[derive(Debug, Clone, Default, Hash)]
struct SharedList {
    /// Whether it is in flight.
    is_in_flight: bool,
    /// The keys that the list in flight is for.
    served: Vec<Work>,
    /// The keys that need a later list.
    next: Vec<Work>,
}

/// All requests in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight {
    by_id: FxHashMap<RequestId, InFlightRequest>,
    /// Objects that a request in flight locks: two requests never change the same object.
    locked: FxHashMap<ObjectKey, RequestId>,
    /// Keys that wait for an object to be unlocked, in order.
    waiting: FxHashMap<ObjectKey, VecDeque<Work>>,
    /// Lists that are in flight or that keys need.
    lists: FxHashMap<Listing, SharedList>,
    lists_by_id: FxHashMap<RequestId, Listing>,
}

impl InFlight {
    /// Adds the requests and the keys that wait for them to a digest, each request by its digest.
    pub fn digest(&self, request: &dyn Fn(RequestId) -> u64, state: &mut impl Hasher) {
        let of_request = |(id, sent): (&RequestId, &InFlightRequest)| {
            digest((request(*id), &sent.work, sent.cached_version, sent.checks_version))
        };
        digest_unordered(self.by_id.iter().map(of_request), state);
        digest_unordered(self.locked.iter().map(|(key, id)| (key, request(*id))), state);
        digest_unordered(&self.waiting, state);
        digest_unordered(&self.lists, state);
    }

    pub fn is_locked(&self, key: &ObjectKey) -> bool {
        self.locked.contains_key(key)
    }

    /// A request in flight.
    pub fn get(&self, id: RequestId) -> Option<&InFlightRequest> {
        self.by_id.get(&id)
    }

    /// Registers a sent request and locks its target if necessary.
    pub fn send(&mut self, id: RequestId, request: InFlightRequest) {
        // A read after a rejected write keeps the lock until the outcome is known.
        if request.request.locks_target() || request.checks_version.is_some() {
            let before = self.locked.insert(request.request.target(), id);
            assert!(before.is_none(), "two requests must not change the same object");
        }
        self.by_id.insert(id, request);
    }

    /// Removes an answered request and unlocks its target; `None` if the ID is unknown.
    pub fn complete(&mut self, id: RequestId) -> Option<InFlightRequest> {
        let completed = self.by_id.remove(&id)?;
        let target = completed.request.target();
        if self.locked.get(&target) == Some(&id) {
            self.locked.remove(&target);
        }
        Some(completed)
    }

    /// Makes a key wait for a list. Returns whether the list is to be sent: it is not in flight,
    /// and no other key waits for it.
    pub fn request_list(&mut self, listing: Listing, work: Work) -> bool {
        let list = self.lists.entry(listing).or_default();
        list.next.push(work);
        !list.is_in_flight && list.next.len() == 1
    }

    /// Registers a list as sent, and reports the keys that wait for it.
    pub fn send_list(&mut self, id: RequestId, listing: &Listing, sent_for: impl FnMut(&Work)) {
        let list = self.lists.entry(listing.clone()).or_default();
        list.is_in_flight = true;
        list.served = std::mem::take(&mut list.next);
        list.served.iter().for_each(sent_for);
        self.lists_by_id.insert(id, listing.clone());
    }

    /// Removes an answered list, with the keys that wait for it, and whether others need it again.
    pub fn complete_list(&mut self, id: RequestId) -> Option<(Listing, Vec<Work>, bool)> {
        let listing = self.lists_by_id.remove(&id)?;
        let list = self.lists.get_mut(&listing)?;
        list.is_in_flight = false;
        let served = std::mem::take(&mut list.served);
        let is_needed = !list.next.is_empty();
        if !is_needed {
            self.lists.remove(&listing);
        }
        Some((listing, served, is_needed))
    }

    pub fn wait_for(&mut self, object: ObjectKey, work: Work) {
        self.waiting.entry(object).or_default().push_back(work);
    }

    /// Removes the keys that wait for an object, in order.
    pub fn take_waiting(&mut self, object: &ObjectKey) -> VecDeque<Work> {
        self.waiting.remove(object).unwrap_or_default()
    }

    /// Removes all waiting keys. Lists in flight were requested by decisions that no longer count.
    pub fn clear_waiting(&mut self) {
        self.waiting.clear();
        self.lists.retain(|_, list| {
            list.served.clear();
            list.next.clear();
            list.is_in_flight
        });
    }
}
