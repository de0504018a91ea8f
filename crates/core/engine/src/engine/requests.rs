//! Requests: sent one at a time for each object, and shown as done before they are answered.

use std::sync::Arc;

use bindery_model::{Claim, ObjectKey, Pod, Volume};
use bindery_rules_api::{Edit, Request, Write};

use super::Engine;
use crate::Output;
use crate::flights::Flight;
use crate::progress::{State, Work};

impl Engine {
    /// Sends a request, unless its object is being changed or there is no room for an operation: then the key waits.
    pub(super) fn request(&mut self, work: Work, request: Request) {
        let target = request.target();
        match &request {
            request if request.holds_target() && self.flights.is_busy(&target) => {
                // What it means to do is shown to others meanwhile: a volume that it will reserve is not theirs.
                if let Request::Write(write) = request {
                    self.assume(write);
                }
                return self.park(target, work);
            }
            Request::RunOperation(_) if !self.flights.has_room_for_operation(&self.config) => {
                self.set_state(&work, State::Parked);
                return self.flights.park_for_operation(work);
            }
            Request::List(listing) => return self.want_list(work, listing.clone()),
            Request::Write(write) => self.assume(write),
            Request::Bind(bind) => self.assume_pod(bind.target(), |pod| pod.node = bind.node().clone()),
            Request::Create(_) | Request::Delete(_) | Request::Read(_) | Request::RunOperation(_) => {}
        }
        self.send(work, request, None);
    }

    pub(super) fn send(&mut self, work: Work, request: Request, checks_version: Option<u64>) {
        let asked_at = self.known.seen_version(&request.target());
        let flight = Flight { work, request, asked_at, checks_version };
        self.set_state(&flight.work, State::Sent);
        self.stats.sent += 1;
        let request = flight.request.clone();
        let id = self.flights.depart(flight);
        self.out.push(Output::Send(id, request));
    }

    pub(super) fn park(&mut self, on: ObjectKey, work: Work) {
        self.set_state(&work, State::Parked);
        self.flights.park(on, work);
    }

    pub(super) fn set_state(&mut self, work: &Work, state: State) {
        if let Some(progress) = self.agenda.get_mut(work) {
            progress.state = state;
        }
    }

    /// Shows an object as a write will make it.
    pub(super) fn assume(&mut self, write: &Write) {
        let key = write.target();
        match write.edit() {
            Edit::Claim(edit) => self.assume_claim(key, |claim| edit.apply(claim)),
            Edit::ClaimStatus(edit) => self.assume_claim(key, |claim| edit.apply(claim)),
            Edit::ClaimReport(report) => self.assume_claim(key, |claim| report.apply(claim)),
            Edit::Volume(edit) => self.assume_volume(key, |volume| edit.apply(volume)),
            Edit::VolumeStatus(edit) => self.assume_volume(key, |volume| edit.apply(volume)),
            // Finalizers concern nobody else: there is nothing to show to others.
            Edit::Protection(_) => {}
            Edit::PodStatus(edit) => self.assume_pod(key, |pod| edit.apply(pod)),
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

    pub(super) fn assume_volume(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut Volume)) {
        if let Some(volume) = self.known.volume(&key.name) {
            let mut volume = volume.as_ref().clone();
            edit(&mut volume);
            self.known.assume_volume(Arc::new(volume));
        }
    }
}
