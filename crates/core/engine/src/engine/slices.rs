//! Work that concerns every object, in slices: no call of the engine takes longer because the
//! cluster is larger. A slice is done with every input, and a tick at once continues.
//!
//! - A list of a kind is stored a slice at a time. What the watch reports of this kind meanwhile is
//!   kept until the list is complete. Every input advances the list, so there is at most one such
//!   report for each slice.
//! - A sweep enqueues every key of a rule set, in order, while the queue is short: when this
//!   instance becomes the leader, and for each resync. A change in the middle of a sweep is decided
//!   about after at most a slice of it.

use std::collections::VecDeque;

use bindery_cache::ListInProgress;
use bindery_model::{Kind, Object, ObjectKey};

use super::Engine;
use crate::Input;
use crate::queue::{Cause, Work};

/// How many listed objects are stored in one call. Each takes microseconds.
const LISTED_MAX: usize = 256;

/// A list that is being stored, and what the watch of its kind reported since.
#[derive(Debug, Clone)]
pub(super) struct PartialList {
    list: ListInProgress,
    reported: VecDeque<Input>,
}

/// Keys of a rule set that are yet to be enqueued.
#[derive(Debug, Clone, Hash)]
pub(super) struct Sweep {
    set: usize,
    cause: Cause,
    /// The kinds that are not done, the current one first.
    kinds: VecDeque<Kind>,
    /// The last key of the current kind that was enqueued.
    after: Option<ObjectKey>,
}

impl Engine {
    /// Keeps an input of a kind whose list is not complete. Returns any other input.
    pub(super) fn keep_until_listed(&mut self, input: Input) -> Option<Input> {
        let kind = match &input {
            Input::Listed { kind, .. } | Input::Bookmark { kind, .. } => *kind,
            Input::Watched(object) => object.kind(),
            Input::Deleted { key, .. } => key.kind,
            Input::Answered(..) | Input::Tick | Input::Leader(_) => return Some(input),
        };
        match self.partial_lists.iter_mut().find(|partial| partial.list.kind() == kind) {
            Some(partial) => {
                partial.reported.push_back(input);
                None
            }
            None => Some(input),
        }
    }

    pub(super) fn listed(&mut self, kind: Kind, version: u64, objects: Vec<Object>) {
        let list = self.known.begin_list(kind, version, objects);
        self.partial_lists.push_back(PartialList { list, reported: VecDeque::new() });
    }

    /// Stores a slice of the first list that is not complete.
    pub(super) fn continue_list(&mut self) {
        let Some(mut partial) = self.partial_lists.pop_front() else { return };
        let was_active = self.is_active();
        for change in self.known.continue_list(&mut partial.list, LISTED_MAX) {
            self.changed(Some(change), Cause::Change, None);
        }
        if !partial.list.is_complete() {
            return self.partial_lists.push_front(partial);
        }
        self.unlisted.retain(|unlisted| *unlisted != partial.list.kind());
        if !was_active && self.is_active() {
            self.sweep_everything();
        }
        for input in partial.reported {
            self.apply(input);
        }
    }

    /// Enqueues every key of every rule set, as if all objects had changed.
    pub(super) fn sweep_everything(&mut self) {
        self.queue.wake_in_flight();
        for set in 0..self.sets.len() {
            self.sweep(set, Cause::Start);
        }
    }

    /// Enqueues every key of a rule set, kind by kind, in order.
    fn sweep(&mut self, set: usize, cause: Cause) {
        let profile = self.sets[set].profile();
        self.resync_at[set] = self.now + self.config.resync_interval(profile.resync);
        self.sweeps.push_back(Sweep { set, cause, kinds: profile.decides().collect(), after: None });
    }

    /// Starts the resyncs that are due. One that is due while the last one is not done is skipped.
    pub(super) fn resync_if_due(&mut self) {
        if !self.is_active() {
            return;
        }
        for set in 0..self.sets.len() {
            if self.now >= self.resync_at[set] && !self.is_sweeping(set) {
                self.stats.resyncs += 1;
                self.sweep(set, Cause::Resync);
            }
        }
    }

    pub(super) fn is_sweeping(&self, set: usize) -> bool {
        self.sweeps.iter().any(|sweep| sweep.set == set)
    }

    /// Enqueues keys of the first sweeps while fewer than a slice of decisions are queued. While
    /// decisions are made, it enqueues at least one, so that no key waits behind changes without
    /// end.
    pub(super) fn continue_sweeps(&mut self) {
        let least = usize::from(self.gate.admits_request(self.now));
        let mut left = self.config.decisions_max.saturating_sub(self.queue.backlog()).max(least);
        while left > 0
            && let Some(sweep) = self.sweeps.front_mut()
        {
            let Some(kind) = sweep.kinds.front() else {
                self.sweeps.pop_front();
                continue;
            };
            let keys = self.known.keys_after(*kind, sweep.after.as_ref(), left);
            if keys.len() < left {
                sweep.kinds.pop_front();
                sweep.after = None;
            } else {
                sweep.after = keys.last().cloned();
            }
            left -= keys.len();
            for key in keys {
                self.queue.wake(Work { set: sweep.set, key }, sweep.cause);
            }
        }
    }

    /// Whether there is work that needs no further input than the next tick.
    pub(super) fn has_more_to_do(&self) -> bool {
        let decides = self.is_active() && self.gate.admits_request(self.now);
        !self.partial_lists.is_empty()
            || decides && (self.queue.backlog() > 0 || !self.sweeps.is_empty() || self.gate.has_operation_to_start())
    }
}
