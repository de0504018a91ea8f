//! Sending requests, one at a time per object. Writes are applied to the cache before the answer.

use std::sync::Arc;

use bindery_model::{Claim, ObjectKey, Pod, Record, Volume};
use bindery_rules_api::{Edit, Request, Write};

use super::Engine;
use crate::in_flight::InFlightRequest;
use crate::queue::{State, Work};
use crate::{Moment, Output};

impl Engine {
    /// Sends a request. If its target is locked or too many operations are running, the key waits.
    pub(super) fn request(&mut self, work: Work, request: Request) {
        let target = request.target();
        match &request {
            request if request.locks_target() && self.in_flight.is_locked(&target) => {
                // Apply the write to the cache already, so that no other key takes the same volume.
                if let Request::Write(write) = request {
                    self.assume(write);
                }
                return self.wait_for(target, work);
            }
            Request::RunOperation(_) if !self.gate.admits_operation() => {
                self.queue.set_state(&work, State::Waiting);
                self.defer(&work);
                return self.gate.wait_for_operation(work);
            }
            Request::List(listing) => return self.request_list(work, listing.clone()),
            Request::Write(write) => self.assume(write),
            Request::Bind(bind) => self.assume_pod(bind.target(), |pod| pod.node = bind.node().clone()),
            Request::Create(_) | Request::Delete(_) | Request::Read(_) | Request::RunOperation(_) => {}
        }
        self.send(work, request, None);
    }

    pub(super) fn send(&mut self, work: Work, request: Request, checks_version: Option<u64>) {
        let cached_version = self.known.seen_version(&request.target());
        self.queue.set_state(&work, State::InFlight);
        self.stats.sent += 1;
        let id = self.gate.start(matches!(request, Request::RunOperation(_)));
        let sent = InFlightRequest { work, request: request.clone(), cached_version, checks_version };
        self.in_flight.send(id, sent);
        // A read after a rejected write follows without a decision, so the gate may be closed.
        match self.gate.paused_until(self.now) {
            Some(_) => self.gate.hold(id),
            None => self.out.push(Output::Send(id, request)),
        }
    }

    /// Sends the requests that were held during a pause.
    pub(super) fn send_held(&mut self) {
        while let Some(id) = self.gate.next_held(self.now) {
            let request = self.in_flight.get(id).map(|held| held.request.clone());
            self.out.extend(request.map(|request| Output::Send(id, request)));
        }
    }

    /// Makes a key wait until an object is unlocked.
    pub(super) fn wait_for(&mut self, object: ObjectKey, work: Work) {
        self.queue.set_state(&work, State::Waiting);
        self.in_flight.wait_for(object, work);
    }

    /// Decides about a key at a later time.
    pub(super) fn schedule(&mut self, work: &Work, due: Moment, keep_outcomes: bool) {
        self.queue.schedule(work, due, keep_outcomes);
        self.defer(work);
    }

    /// Hands nothing to a key that is backed off or waits for an operation: it sees every change
    /// once it is decided about. Otherwise each volume that becomes free would be offered to all of
    /// them, one decision after the other.
    fn defer(&mut self, work: &Work) {
        if self.sets[work.set].hands_off() {
            self.known.defer(&work.key);
        }
    }

    /// Ends that, once the key is queued again.
    pub(super) fn resume(&mut self, work: &Work) {
        if self.sets[work.set].hands_off() {
            self.known.resume(&work.key);
        }
    }

    /// Applies a write to the cache before it is answered.
    pub(super) fn assume(&mut self, write: &Write) {
        let key = write.target();
        match write.edit() {
            Edit::Claim(edit) => self.assume_claim(key, |claim| edit.apply(claim)),
            Edit::ClaimStatus(edit) => self.assume_claim(key, |claim| edit.apply(claim)),
            Edit::ClaimReport(report) => self.assume_claim(key, |claim| report.apply(claim)),
            Edit::Volume(edit) => self.assume_volume(key, |volume| edit.apply(volume)),
            Edit::VolumeStatus(edit) => self.assume_volume(key, |volume| edit.apply(volume)),
            // No rule of another key reads the protection finalizers.
            Edit::Protection(_) => {}
            Edit::PodStatus(edit) => self.assume_pod(key, |pod| edit.apply(pod)),
            Edit::Record(edit) => self.assume_record(key, |record| edit.apply(record)),
        }
    }

    pub(super) fn assume_claim(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Claim)) {
        if let Some(claim) = self.known.claim(&key.claim_key()) {
            let mut claim = claim.as_ref().clone();
            edit(&mut claim);
            self.known.assume_claim(Arc::new(claim));
        }
    }

    pub(super) fn assume_pod(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Pod)) {
        if let Some(pod) = self.known.pod(&key.pod_key()) {
            let mut pod = pod.as_ref().clone();
            edit(&mut pod);
            self.known.assume_pod(Arc::new(pod));
        }
    }

    pub(super) fn assume_record(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Record)) {
        if let Some(record) = self.known.record(&key.name) {
            let mut record = record.as_ref().clone();
            edit(&mut record);
            self.known.assume_record(Arc::new(record));
        }
    }

    pub(super) fn assume_volume(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Volume)) {
        if let Some(volume) = self.known.volume(&key.name) {
            let mut volume = volume.as_ref().clone();
            edit(&mut volume);
            self.known.assume_volume(Arc::new(volume));
        }
    }
}
