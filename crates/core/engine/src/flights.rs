//! Requests under way: how many, for whom, and which objects they change.

use std::collections::{BTreeMap, VecDeque};

use bindery_model::ObjectKey;
use bindery_rules_api::{Listing, Request};
use rustc_hash::FxHashMap;

use crate::progress::Work;
use crate::{Config, RequestId};

/// A request under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub work: Work,
    pub request: Request,
    /// The version of the target that was known when it was sent.
    pub asked_at: Option<u64>,
    /// The version of the object that a write was refused for: a read is under way to see what became of it.
    pub checks_version: Option<u64>,
}

/// All requests under way.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    by_id: FxHashMap<RequestId, Flight>,
    /// Objects that are being changed, or whose storage is: never by two requests at once.
    busy: FxHashMap<ObjectKey, RequestId>,
    /// Keys that wait for an object to be free, in order.
    parked: FxHashMap<ObjectKey, VecDeque<Work>>,
    /// Lists that are wanted, and by whom.
    wanted_lists: BTreeMap<Listing, Vec<Work>>,
    /// Lists under way, and for whom.
    lists: FxHashMap<RequestId, (Listing, Vec<Work>)>,
    /// Keys that wait for room for an operation, in order.
    queued_operations: VecDeque<Work>,
    operations: usize,
    sent: u64,
}

impl Flights {
    /// How many reads and writes are under way.
    pub fn requests(&self) -> usize {
        self.by_id.len() + self.lists.len() - self.operations
    }

    /// How many operations are under way.
    pub fn operations(&self) -> usize {
        self.operations
    }

    /// Whether there is room for one more read or write.
    pub fn has_room(&self, config: &Config) -> bool {
        self.requests() < config.requests_max
    }

    /// Whether there is room for one more operation.
    pub fn has_room_for_operation(&self, config: &Config) -> bool {
        self.operations < config.operations_max
    }

    pub fn is_busy(&self, key: &ObjectKey) -> bool {
        self.busy.contains_key(key)
    }

    /// Notes a request as under way, and what it changes as busy.
    pub fn depart(&mut self, flight: Flight) -> RequestId {
        self.sent += 1;
        let id = RequestId(self.sent);
        // Looking after a write that was refused: the object stays busy until it is known what became of it.
        if flight.request.holds_target() || flight.checks_version.is_some() {
            let before = self.busy.insert(flight.request.target(), id);
            assert!(before.is_none(), "two requests never change one object at once");
        }
        if matches!(flight.request, Request::RunOperation(_)) {
            self.operations += 1;
        }
        self.by_id.insert(id, flight);
        id
    }

    /// Takes out a request that was answered; `None` when there is none of that number. What it changed is free again.
    pub fn arrive(&mut self, id: RequestId) -> Option<Flight> {
        let flight = self.by_id.remove(&id)?;
        if matches!(flight.request, Request::RunOperation(_)) {
            self.operations -= 1;
        }
        let target = flight.request.target();
        if self.busy.get(&target) == Some(&id) {
            self.busy.remove(&target);
        }
        Some(flight)
    }

    pub fn want_list(&mut self, listing: Listing, work: Work) {
        self.wanted_lists.entry(listing).or_default().push(work);
    }

    /// Notes a list that is wanted, and of which none is under way, as under way, and tells who asked for it; `None` when there
    /// is no such list.
    pub fn depart_list(&mut self, instance: impl FnMut(&Work)) -> Option<(RequestId, Listing)> {
        let is_under_way = |listing: &Listing| self.lists.values().any(|(other, _)| other == listing);
        let listing = self.wanted_lists.keys().find(|listing| !is_under_way(listing))?.clone();
        let askers = self.wanted_lists.remove(&listing)?;
        askers.iter().for_each(instance);
        self.sent += 1;
        let id = RequestId(self.sent);
        self.lists.insert(id, (listing.clone(), askers));
        Some((id, listing))
    }

    /// Takes out a list that was answered, and whoever asked for it.
    pub fn arrive_list(&mut self, id: RequestId) -> Option<(Listing, Vec<Work>)> {
        self.lists.remove(&id)
    }

    pub fn park(&mut self, on: ObjectKey, work: Work) {
        self.parked.entry(on).or_default().push_back(work);
    }

    pub fn park_for_operation(&mut self, work: Work) {
        self.queued_operations.push_back(work);
    }

    /// The keys that waited for an object, in order.
    pub fn unpark(&mut self, on: &ObjectKey) -> VecDeque<Work> {
        self.parked.remove(on).unwrap_or_default()
    }

    /// A key that waited for room for an operation.
    pub fn unpark_for_operation(&mut self) -> Option<Work> {
        self.queued_operations.pop_front()
    }

    /// Forgets who waited.
    pub fn clear_parked(&mut self) {
        self.parked.clear();
        self.wanted_lists.clear();
        // What is under way was asked for by decisions that count no more.
        for (_, askers) in self.lists.values_mut() {
            askers.clear();
        }
        self.queued_operations.clear();
    }
}
