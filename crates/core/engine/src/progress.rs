//! How far each key has come: what waits to be decided, and what is known of it meanwhile.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{Backoff, LiveReads};
use rustc_hash::FxHashMap;

use crate::{Moment, Queue};

/// A key of one rule set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Work {
    pub set: usize,
    pub key: ObjectKey,
}

/// Why a key is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Something that it depends on has changed.
    Change,
    /// It is looked at just in case.
    Resync,
}

/// What a key is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// It waits in the queue.
    #[default]
    Queued,
    /// A request of it is under way.
    Sent,
    /// It waits for another request on the same object to be answered, or for room for an operation.
    Parked,
    /// It is looked at again at a moment; `true` when what was found out is to be kept.
    Due(Moment, bool),
}

/// A key that is not at rest. Keys at rest cost nothing.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub state: State,
    pub live_reads: LiveReads,
    /// How often the API said no, in a row. A step that is done ends it.
    pub refusals: u32,
    /// How often something outside the API failed, in a row. Only a change that concerns the key, or coming to rest, ends it.
    pub failures: u32,
    /// Whether only a resync asked for this look.
    pub by_resync: bool,
    /// Whether something changed while a request was under way, or a list that it waits for.
    pub woken: bool,
    /// Since when it waits to be decided about.
    since: Moment,
    /// When it was first decided about after that.
    began: Option<Moment>,
}

impl Progress {
    /// How often something failed in a row, of what is tried again at that pace.
    pub fn failures_of(&self, pace: Backoff) -> u32 {
        match pace {
            Backoff::Api => self.refusals,
            Backoff::Operation | Backoff::Storage | Backoff::Hopeless => self.failures,
        }
    }

    /// Notes how often it failed by now.
    pub fn note_failure(&mut self, pace: Backoff, failures: u32) {
        match pace {
            Backoff::Api => self.refusals = failures,
            Backoff::Operation | Backoff::Storage | Backoff::Hopeless => self.failures = failures,
        }
    }
}

/// All keys that are not at rest: a queue in order of arrival, and timers.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    keys: FxHashMap<Work, Progress>,
    /// Looked at first: keys that go on after an answer, or that were offered something.
    first: VecDeque<Work>,
    queue: VecDeque<Work>,
    timers: BinaryHeap<Reverse<(Moment, Work)>>,
    now: Moment,
    /// What was counted, by rule set and kind.
    queues: FxHashMap<(usize, Kind), Queue>,
}

impl Agenda {
    /// Time has passed.
    pub fn advance(&mut self, now: Moment) {
        self.now = now;
    }

    /// What was counted of the keys of a rule set and a kind, and how many of them wait to be decided about.
    pub fn queue(&self, set: usize, kind: Kind) -> (Queue, usize) {
        let of_it = |work: &Work| work.set == set && work.key.kind == kind;
        let waiting = self.keys.iter().filter(|(work, progress)| of_it(work) && progress.state == State::Queued);
        (self.queues.get(&(set, kind)).copied().unwrap_or_default(), waiting.count())
    }

    fn counts(&mut self, work: &Work) -> &mut Queue {
        self.queues.entry((work.set, work.key.kind)).or_default()
    }

    /// Notes that a key is decided about after a failure.
    pub fn note_retry(&mut self, work: &Work) {
        self.counts(work).retries += 1;
    }

    pub fn get_mut(&mut self, work: &Work) -> Option<&mut Progress> {
        self.keys.get_mut(work)
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Puts a key in the queue, unless it is there or under way. A change ends its back-off; a resync does not.
    /// Returns whether it had any effect.
    pub fn wake(&mut self, work: Work, cause: Cause) -> bool {
        let Some(progress) = self.keys.get_mut(&work) else {
            let by_resync = cause == Cause::Resync;
            let since = self.now;
            self.counts(&work).adds += 1;
            self.keys.insert(work.clone(), Progress { by_resync, since, ..Progress::default() });
            self.queue.push_back(work);
            return true;
        };
        if cause == Cause::Resync {
            return false;
        }
        progress.live_reads.forget_passing();
        (progress.refusals, progress.failures) = (0, 0);
        progress.by_resync = false;
        match progress.state {
            State::Sent | State::Parked => {
                progress.woken = true;
                false
            }
            State::Queued => false,
            State::Due(..) => {
                progress.state = State::Queued;
                (progress.since, progress.began) = (self.now, None);
                self.counts(&work).adds += 1;
                self.queue.push_back(work);
                true
            }
        }
    }

    /// Notes that a list which a key waits for is sent: it shows all that changed before.
    pub fn list_departs(&mut self, work: &Work) {
        if let Some(progress) = self.keys.get_mut(work) {
            progress.woken = false;
        }
    }

    /// Puts a key before all others.
    pub fn hurry(&mut self, work: Work) {
        let progress = self.progress(&work);
        progress.state = State::Queued;
        progress.woken = false;
        self.first.push_back(work);
    }

    /// Lets a key rest after its request, unless something changed meanwhile.
    pub fn rest_or_hurry(&mut self, work: Work) {
        if self.keys.get(&work).is_some_and(|progress| progress.woken) {
            self.hurry(work);
        } else {
            self.rest(&work);
        }
    }

    /// Puts a key before all others, to be looked at for an offer. A key that is under way, or waits after a failure, is left
    /// alone: it looks at all there is when its time comes.
    pub fn schedule_for_hand_off(&mut self, work: Work) {
        let progress = self.progress(&work);
        if progress.state == State::Queued {
            progress.live_reads.forget_passing();
            self.first.push_front(work);
        }
    }

    /// Puts a key before all others, ahead of even those.
    pub fn hurry_ahead(&mut self, work: Work) {
        self.progress(&work).state = State::Queued;
        self.first.push_front(work);
    }

    fn progress(&mut self, work: &Work) -> &mut Progress {
        let since = self.now;
        self.keys.entry(work.clone()).or_insert_with(|| Progress { since, ..Progress::default() })
    }

    /// The next key to look at. Entries whose key went another way meanwhile are passed over.
    pub fn next(&mut self) -> Option<Work> {
        loop {
            let work = self.first.pop_front().or_else(|| self.queue.pop_front())?;
            let Some(progress) = self.keys.get_mut(&work).filter(|progress| progress.state == State::Queued) else {
                continue;
            };
            if progress.began.is_none() {
                let waited = self.now.since(progress.since);
                progress.began = Some(self.now);
                self.counts(&work).waited.take_in(waited);
            }
            return Some(work);
        }
    }

    /// Has a key looked at again at a moment.
    pub fn due(&mut self, work: &Work, moment: Moment, keep_findings: bool) {
        if let Some(progress) = self.keys.get_mut(work) {
            progress.state = State::Due(moment, keep_findings);
            self.timers.push(Reverse((moment, work.clone())));
        }
    }

    /// Queues the keys that are due by now.
    pub fn ripen(&mut self, now: Moment) {
        while self.timers.peek().is_some_and(|Reverse((moment, _))| *moment <= now) {
            let Some(Reverse((moment, work))) = self.timers.pop() else { return };
            let Some(progress) = self.keys.get_mut(&work) else { continue };
            if let State::Due(due, keeps) = progress.state
                && due == moment
            {
                if keeps {
                    progress.live_reads.note_pause();
                    progress.live_reads.forget_passing();
                }
                progress.state = State::Queued;
                (progress.since, progress.began) = (now, None);
                self.counts(&work).adds += 1;
                self.queue.push_back(work);
            }
        }
    }

    /// When the next key is due.
    pub fn next_due(&self) -> Option<Moment> {
        self.timers.peek().map(|Reverse((moment, _))| *moment)
    }

    /// Lets a key rest.
    pub fn rest(&mut self, work: &Work) {
        if let Some(began) = self.keys.remove(work).and_then(|progress| progress.began) {
            let worked = self.now.since(began);
            self.counts(work).worked.take_in(worked);
        }
    }

    /// Lets all keys rest that have nothing under way.
    pub fn clear(&mut self) {
        self.keys.retain(|_, progress| progress.state == State::Sent);
        self.first.clear();
        self.queue.clear();
        self.timers.clear();
    }
}
