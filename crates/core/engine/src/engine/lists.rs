//! Live lists: one request serves all keys that need the same list.

use std::sync::Arc;

use bindery_model::Object;
use bindery_rules_api::{Backoff, Listing, Request};

use super::Engine;
use crate::queue::{State, Work};
use crate::{Answer, Output, RequestError};

impl Engine {
    /// Makes a key wait for a list. It is sent after all decisions that can be made now, so that it
    /// is later than every decision that needs it.
    pub(super) fn request_list(&mut self, work: Work, listing: Listing) {
        self.queue.set_state(&work, State::Waiting);
        if self.in_flight.request_list(listing.clone(), work) {
            self.gate.wait_for_list(listing);
        }
    }

    /// Sends the lists that are due, while there is capacity. If the same list is in flight, it is
    /// sent again afterwards.
    pub(super) fn send_lists(&mut self) {
        let Engine { gate, in_flight, queue, .. } = self;
        while let Some(listing) = gate.next_list(self.now) {
            let id = gate.start(false);
            in_flight.send_list(id, &listing, |work| queue.list_sent(work));
            self.stats.sent += 1;
            self.out.push(Output::Send(id, Request::List(listing)));
        }
    }

    /// Whether the watch has passed a listed object's version: it was deleted or changed since.
    fn is_outdated(&self, object: &Object) -> bool {
        let version = object.meta().version;
        let is_watched = version != 0 && version <= self.known.watched_version(object.kind());
        is_watched && self.known.seen_version(&object.key()) != Some(version)
    }

    /// Gives a list to all keys that wait for it, except those woken by a change since it was sent:
    /// the list may be older than that change.
    pub(super) fn listed_live(&mut self, listing: &Listing, waiting: Vec<Work>, answer: Answer) {
        let found: Result<Arc<[Object]>, RequestError> = match answer {
            Answer::Listed(objects) => Ok(objects.into_iter().filter(|object| !self.is_outdated(object)).collect()),
            Answer::Rejected(error) => Err(error),
            Answer::Written(_) | Answer::Deleted(_) | Answer::Read(_) | Answer::Done(_) => {
                debug_assert!(false, "not the answer to a list");
                Err(RequestError::Lost)
            }
        };
        for (index, work) in waiting.into_iter().enumerate() {
            match &found {
                Ok(_) => self.settle_rejection(&work, false),
                // One request was rejected for all of them.
                Err(error) if index == 0 => self.report_rejection(&work, &listing.target(), error),
                Err(error) => self.note_rejection(&work, &listing.target(), error),
            }
            let Some(progress) = self.queue.get_mut(&work) else { continue };
            match &found {
                Ok(found) => {
                    if !progress.woken {
                        progress.live_reads.note_list(listing.clone(), found.clone());
                    }
                    self.queue.enqueue_first(work);
                }
                Err(RequestError::RetryAfter(delay, _)) => {
                    self.retry_after(&work, *delay);
                }
                Err(_) => self.retry(&work, Backoff::Api),
            }
        }
    }
}
