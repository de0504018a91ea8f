//! How far each key has come: what waits to be decided, and what is known of it meanwhile.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bindery_verdict::Findings;
use bindery_volumes::ObjectKey;
use rustc_hash::FxHashMap;

use crate::Moment;

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
    pub findings: Findings,
    /// Failures in a row.
    pub failures: u32,
    /// Whether only a resync asked for this look.
    pub by_resync: bool,
    /// Whether something changed while a request was under way.
    pub woken: bool,
}

/// All keys that are not at rest: a queue in order of arrival, and timers.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    keys: FxHashMap<Work, Progress>,
    /// Looked at first: keys that go on after an answer, or that were offered something.
    first: VecDeque<Work>,
    queue: VecDeque<Work>,
    timers: BinaryHeap<Reverse<(Moment, Work)>>,
}

impl Agenda {
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
            self.keys.insert(work.clone(), Progress { by_resync, ..Progress::default() });
            self.queue.push_back(work);
            return true;
        };
        if cause == Cause::Resync {
            return false;
        }
        progress.findings.forget_passing();
        progress.failures = 0;
        progress.by_resync = false;
        match progress.state {
            State::Sent => {
                progress.woken = true;
                false
            }
            State::Queued | State::Parked => false,
            State::Due(..) => {
                progress.state = State::Queued;
                self.queue.push_back(work);
                true
            }
        }
    }

    /// Puts a key before all others.
    pub fn hurry(&mut self, work: Work) {
        let progress = self.keys.entry(work.clone()).or_default();
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
    pub fn hurry_for_offer(&mut self, work: Work) {
        let progress = self.keys.entry(work.clone()).or_default();
        if progress.state == State::Queued {
            progress.findings.forget_passing();
            self.first.push_front(work);
        }
    }

    /// Puts a key before all others, ahead of even those.
    pub fn hurry_ahead(&mut self, work: Work) {
        self.keys.entry(work.clone()).or_default().state = State::Queued;
        self.first.push_front(work);
    }

    /// The next key to look at. Entries whose key went another way meanwhile are passed over.
    pub fn next(&mut self) -> Option<Work> {
        loop {
            let work = self.first.pop_front().or_else(|| self.queue.pop_front())?;
            if self.keys.get(&work).is_some_and(|progress| progress.state == State::Queued) {
                return Some(work);
            }
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
                    progress.findings.note_pause();
                    progress.findings.forget_passing();
                }
                progress.state = State::Queued;
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
        self.keys.remove(work);
    }

    /// Lets all keys rest that have nothing under way.
    pub fn clear(&mut self) {
        self.keys.retain(|_, progress| progress.state == State::Sent);
        self.first.clear();
        self.queue.clear();
        self.timers.clear();
    }
}
