//! Live lists: asked for by many keys, sent once for all of them.

use std::sync::Arc;

use bindery_model::Object;
use bindery_rules_api::{Backoff, Listing, Request};

use super::Engine;
use crate::progress::{State, Work};
use crate::{Answer, Output, RequestError};

impl Engine {
    /// Has a key wait for a list. It is sent when all is decided that can be decided now, so that it is as late as any decision
    /// that asked for it, and serves all of them.
    pub(super) fn want_list(&mut self, work: Work, listing: Listing) {
        self.set_state(&work, State::Parked);
        self.flights.want_list(listing, work);
    }

    /// Sends the lists that are wanted, unless the same list is under way: whoever asks now is served by the next one.
    pub(super) fn send_lists(&mut self) {
        let Engine { flights, agenda, .. } = self;
        while let Some((id, listing)) = flights.depart_list(|work| agenda.list_departs(work)) {
            self.stats.sent += 1;
            self.out.push(Output::Send(id, Request::List(listing)));
        }
    }

    /// Whether the watch is past an object that was listed: it is gone since, or known in a later state, and that is what counts.
    fn is_overtaken(&self, object: &Object) -> bool {
        let version = object.meta().version;
        let is_told = version != 0 && version <= self.known.watched_version(object.kind());
        is_told && self.known.seen_version(&object.key()) != Some(version)
    }

    /// Serves all who asked for a list, except for those that something has changed for since it was sent: it may be older than
    /// that, and they look anew.
    pub(super) fn listed_live(&mut self, listing: &Listing, askers: Vec<Work>, answer: Answer) {
        let found: Result<Arc<[Object]>, RequestError> = match answer {
            Answer::Listed(objects) => Ok(objects.into_iter().filter(|object| !self.is_overtaken(object)).collect()),
            Answer::Refused(refusal) => {
                self.stats.refused += 1;
                Err(refusal)
            }
            Answer::Written(_) | Answer::Deleted(_) | Answer::Read(_) | Answer::Done(_) => {
                debug_assert!(false, "no answer to a list");
                Err(RequestError::Lost)
            }
        };
        for work in askers {
            let Some(progress) = self.agenda.get_mut(&work) else { continue };
            match &found {
                Ok(found) => {
                    if !progress.woken {
                        progress.live_reads.note_list(listing.clone(), found.clone());
                    }
                    self.agenda.hurry(work);
                }
                Err(RequestError::Later(delay, _)) => {
                    progress.live_reads = Default::default();
                    self.agenda.due(&work, self.now + *delay, false);
                }
                Err(_) => self.retry(&work, Backoff::Api),
            }
        }
    }
}
