//! The work queue: keys that are not idle, their state, and timers.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use bindery_model::hash::digest_unordered;
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{Backoff, LiveReads, Rule};
use rustc_hash::FxHashMap;

use crate::{Moment, Queue, Rejection};

/// A key of one rule set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Work {
    pub set: usize,
    pub key: ObjectKey,
}

/// Why a key is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Cause {
    /// An object that it depends on has changed.
    Change,
    /// This instance became the leader: it is to be decided about, whatever has changed before.
    Start,
    /// A pending write that its last decision may rely on was dropped.
    Settled,
    /// A periodic resync.
    Resync,
}

/// The state of a key that is not idle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// It is in the queue.
    #[default]
    Queued,
    /// Its request is in flight.
    InFlight,
    /// It waits for a locked object, a list, or the start of an operation.
    Waiting,
    /// It is enqueued at this time; `true` if its outcomes are kept.
    Scheduled(Moment, bool),
}

/// A key that is not idle. Idle keys use no memory here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Changed by the queue only, which counts queued keys.
    state: State,
    pub live_reads: LiveReads,
    /// Consecutive rejections by the API server. A successful step resets it.
    pub rejections: u32,
    /// Consecutive failures of operations. Only a change that affects the key, or becoming idle,
    /// resets it.
    pub failures: u32,
    /// The rule of its last decision, or the step that the rule requested.
    pub step: Option<&'static Rule>,
    /// Its last rejected request, until a write or the same step succeeds.
    pub rejection: Option<Box<Rejection>>,
    /// Whether only a resync woke it.
    pub by_resync: bool,
    /// Whether a change woke it while its request was in flight or it was waiting.
    pub woken: bool,
    /// The same for a pending write that was dropped.
    pub settled: bool,
    /// When it was enqueued.
    since: Moment,
    /// When it was first decided about after that.
    began: Option<Moment>,
}

impl Progress {
    /// The consecutive failures that count for a back-off.
    pub fn failures_of(&self, backoff: Backoff) -> u32 {
        match backoff {
            Backoff::Api => self.rejections,
            Backoff::Operation | Backoff::Storage | Backoff::Infeasible => self.failures,
        }
    }

    /// Sets the consecutive failures that count for a back-off.
    pub fn note_failure(&mut self, backoff: Backoff, failures: u32) {
        match backoff {
            Backoff::Api => self.rejections = failures,
            Backoff::Operation | Backoff::Storage | Backoff::Infeasible => self.failures = failures,
        }
    }
}

/// All keys that are not idle: a first-in, first-out queue with priority for some, and timers.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkQueue {
    keys: FxHashMap<Work, Progress>,
    /// Decided about first: keys that continue after an answer or receive a hand-off.
    first: VecDeque<Work>,
    queue: VecDeque<Work>,
    /// One entry for each scheduled key.
    timers: BTreeSet<(Moment, Work)>,
    /// Keys that are no longer scheduled, until they are taken.
    resumed: Vec<Work>,
    now: Moment,
    /// Counters by rule set and kind.
    queues: FxHashMap<(usize, Kind), Queue>,
    /// The number of queued keys by rule set and kind.
    depths: FxHashMap<(usize, Kind), usize>,
}

impl WorkQueue {
    /// Sets the current time.
    pub fn advance(&mut self, now: Moment) {
        self.now = now;
    }

    /// The counters of a rule set and kind, and the number of queued keys.
    pub fn queue(&self, set: usize, kind: Kind) -> (Queue, usize) {
        let of_it = (set, kind);
        let waiting = self.depths.get(&of_it).copied().unwrap_or_default();
        (self.queues.get(&of_it).copied().unwrap_or_default(), waiting)
    }

    /// Sets the state of a key that is not idle.
    pub fn set_state(&mut self, work: &Work, state: State) {
        let Some(progress) = self.keys.get_mut(work) else { return };
        let before = std::mem::replace(&mut progress.state, state);
        self.count_queued(work, Some(before), Some(state));
    }

    /// Updates the number of queued keys after a key's state has changed; `None` while it is idle.
    fn count_queued(&mut self, work: &Work, before: Option<State>, after: Option<State>) {
        let (was_queued, is_queued) = (before == Some(State::Queued), after == Some(State::Queued));
        if was_queued == is_queued {
            return;
        }
        let depth = self.depths.entry((work.set, work.key.kind)).or_default();
        *depth = if is_queued { *depth + 1 } else { depth.saturating_sub(1) };
    }

    fn counts(&mut self, work: &Work) -> &mut Queue {
        self.queues.entry((work.set, work.key.kind)).or_default()
    }

    /// Counts a retry.
    pub fn note_retry(&mut self, work: &Work) {
        self.counts(work).retries += 1;
    }

    pub fn get_mut(&mut self, work: &Work) -> Option<&mut Progress> {
        self.keys.get_mut(work)
    }

    /// Adds all keys to a digest, with times relative to now.
    pub fn digest(&self, state: &mut impl Hasher) {
        let of_key = |(work, progress): (&Work, &Progress)| {
            let (due, keeps_outcomes) = match progress.state {
                State::Scheduled(due, keeps_outcomes) => (Some(due.since(self.now)), keeps_outcomes),
                State::Queued | State::InFlight | State::Waiting => (None, false),
            };
            let mut of_key = DefaultHasher::new();
            (work, std::mem::discriminant(&progress.state), due, keeps_outcomes).hash(&mut of_key);
            (progress.rejections, progress.failures, progress.by_resync, progress.woken, progress.settled)
                .hash(&mut of_key);
            progress.live_reads.digest(&mut of_key);
            of_key.finish()
        };
        digest_unordered(self.keys.iter().map(of_key), state);
        (&self.first, &self.queue).hash(state);
    }

    pub fn get(&self, work: &Work) -> Option<&Progress> {
        self.keys.get(work)
    }

    /// The last rejected requests of all keys that have one.
    pub fn rejections(&self) -> impl Iterator<Item = &Rejection> {
        self.keys.values().filter_map(|progress| progress.rejection.as_deref())
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Enqueues a key unless it is queued, waiting or in flight. Only a change ends its back-off. A
    /// dropped pending write does not end the back-off after a rejection: otherwise keys whose
    /// writes are rejected would wake each other without any delay. Returns whether it was
    /// enqueued.
    pub fn wake(&mut self, work: Work, cause: Cause) -> bool {
        let Some(progress) = self.keys.get_mut(&work) else {
            let by_resync = cause == Cause::Resync;
            let since = self.now;
            self.counts(&work).adds += 1;
            self.keys.insert(work.clone(), Progress { by_resync, since, ..Progress::default() });
            self.count_queued(&work, None, Some(State::Queued));
            self.queue.push_back(work);
            return true;
        };
        match cause {
            Cause::Change | Cause::Settled => {}
            // It was woken since, or continues after its answer.
            Cause::Start | Cause::Resync => return false,
        }
        let is_change = cause == Cause::Change;
        let was_rejected = progress.rejections > 0 || progress.rejection.is_some();
        if !is_change && was_rejected && matches!(progress.state, State::Scheduled(..)) {
            return false;
        }
        progress.live_reads.clear_reads();
        if is_change {
            (progress.rejections, progress.failures) = (0, 0);
        }
        progress.by_resync = false;
        match progress.state {
            State::InFlight | State::Waiting => {
                progress.woken |= is_change;
                progress.settled |= !is_change;
                false
            }
            State::Queued => false,
            State::Scheduled(due, _) => {
                self.timers.remove(&(due, work.clone()));
                self.resumed.push(work.clone());
                (progress.since, progress.began) = (self.now, None);
                self.set_state(&work, State::Queued);
                self.counts(&work).adds += 1;
                self.queue.push_back(work);
                true
            }
        }
    }

    /// Wakes the keys with a request in flight, which is from before this instance was the leader.
    pub fn wake_in_flight(&mut self) {
        for progress in self.keys.values_mut().filter(|progress| progress.state == State::InFlight) {
            progress.live_reads.clear_reads();
            (progress.rejections, progress.failures) = (0, 0);
            (progress.by_resync, progress.woken) = (false, true);
        }
    }

    /// At least the number of queued keys: some may have been decided about since.
    pub fn backlog(&self) -> usize {
        self.first.len() + self.queue.len()
    }

    /// Records that the list which a key waits for is sent. It includes all earlier changes.
    pub fn list_sent(&mut self, work: &Work) {
        if let Some(progress) = self.keys.get_mut(work) {
            progress.woken = false;
        }
    }

    /// Enqueues a key ahead of the ordinary queue.
    pub fn enqueue_first(&mut self, work: Work) {
        let progress = self.progress(&work);
        (progress.woken, progress.settled) = (false, false);
        self.set_state(&work, State::Queued);
        self.first.push_back(work);
    }

    /// Makes a key idle after its request, unless a change has woken it.
    pub fn idle_unless_woken(&mut self, work: Work) {
        if self.keys.get(&work).is_some_and(|progress| progress.woken || progress.settled) {
            self.enqueue_first(work);
        } else {
            self.set_idle(&work);
        }
    }

    /// Enqueues a key for a hand-off, ahead of all others. One that is in flight, waiting or
    /// scheduled is not moved; it considers the object when it is decided about.
    pub fn enqueue_for_hand_off(&mut self, work: Work) {
        let progress = self.progress(&work);
        if progress.state == State::Queued {
            progress.live_reads.clear_reads();
            self.first.push_front(work);
        }
    }

    /// Enqueues a key ahead of all others.
    pub fn enqueue_next(&mut self, work: Work) {
        let progress = self.progress(&work);
        (progress.woken, progress.settled) = (false, false);
        self.set_state(&work, State::Queued);
        self.first.push_front(work);
    }

    /// The progress of a key, which is enqueued if it was idle.
    fn progress(&mut self, work: &Work) -> &mut Progress {
        if !self.keys.contains_key(work) {
            self.count_queued(work, None, Some(State::Queued));
        }
        let since = self.now;
        self.keys.entry(work.clone()).or_insert_with(|| Progress { since, ..Progress::default() })
    }

    /// Removes the next key. Entries whose key is no longer queued are skipped.
    pub fn next(&mut self) -> Option<Work> {
        loop {
            let work = self.first.pop_front().or_else(|| self.queue.pop_front())?;
            let Some(progress) = self.keys.get_mut(&work).filter(|progress| progress.state == State::Queued) else {
                continue;
            };
            if progress.began.is_none() {
                let waited = self.now.since(progress.since);
                progress.began = Some(self.now);
                self.counts(&work).waited.record(waited);
            }
            return Some(work);
        }
    }

    /// Enqueues a key at a later time.
    pub fn schedule(&mut self, work: &Work, moment: Moment, keep_outcomes: bool) {
        if let Some(progress) = self.keys.get_mut(work) {
            if let Some(rejection) = &mut progress.rejection {
                rejection.retry_in = Some(moment.since(rejection.at));
            }
            self.set_state(work, State::Scheduled(moment, keep_outcomes));
            self.timers.insert((moment, work.clone()));
        }
    }

    /// Enqueues the keys that are due; at most this many, and the others later.
    pub fn enqueue_due(&mut self, now: Moment, keys_max: usize) {
        for _ in 0..keys_max {
            if self.timers.first().is_none_or(|(due, _)| *due > now) {
                return;
            }
            let Some((moment, work)) = self.timers.pop_first() else { return };
            let Some(progress) = self.keys.get_mut(&work) else { continue };
            if let State::Scheduled(due, keeps_outcomes) = progress.state
                && due == moment
            {
                if keeps_outcomes {
                    progress.live_reads.note_pause();
                    progress.live_reads.clear_reads();
                }
                (progress.since, progress.began) = (now, None);
                self.set_state(&work, State::Queued);
                self.counts(&work).adds += 1;
                self.resumed.push(work.clone());
                self.queue.push_back(work);
            }
        }
    }

    /// Removes the keys that were scheduled and are queued since the last call.
    pub fn take_resumed(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.resumed)
    }

    /// The time of the next timer.
    pub fn next_due(&self) -> Option<Moment> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Makes a key idle.
    pub fn set_idle(&mut self, work: &Work) {
        let Some(progress) = self.keys.remove(work) else { return };
        self.count_queued(work, Some(progress.state), None);
        if let Some(began) = progress.began {
            let worked = self.now.since(began);
            self.counts(work).worked.record(worked);
        }
    }

    /// Makes all keys idle except those with a request in flight.
    pub fn clear(&mut self) {
        self.keys.retain(|_, progress| progress.state == State::InFlight);
        self.depths.clear();
        self.first.clear();
        self.queue.clear();
        self.timers.clear();
        self.resumed.clear();
    }
}
