//! The engine: handles an input, decides about every key that it affects, and returns outputs.

mod answers;
mod decide;
mod digest;
mod lists;
mod rejections;
mod requests;
mod slices;

use std::collections::VecDeque;
use std::sync::Arc;

use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::{Event, LiveReads, RuleSet, Timed, Verdict};
use rustc_hash::FxHashMap;

use self::slices::{PartialList, Sweep};
use crate::gate::Gate;
use crate::in_flight::InFlight;
use crate::published_events::PublishedEvents;
use crate::queue::{Cause, Work, WorkQueue};
use crate::{Config, Input, Moment, Output, Queue, Stats};

/// Calls rule sets and tracks their requests.
#[derive(Clone)]
pub struct Engine {
    config: Config,
    sets: Arc<[Box<dyn RuleSet + Send>]>,
    known: Cache,
    /// The kinds that rule sets watch.
    watched: Vec<Kind>,
    /// Those of them that were not listed yet.
    unlisted: Vec<Kind>,
    /// Lists that are not stored completely, in order; at most one of each kind.
    partial_lists: VecDeque<PartialList>,
    is_leader: bool,
    queue: WorkQueue,
    /// What is yet to be enqueued, in order.
    sweeps: VecDeque<Sweep>,
    gate: Gate,
    in_flight: InFlight,
    published: PublishedEvents,
    timings: FxHashMap<(Timed, ObjectKey), (Name, Moment)>,
    stats: Stats,
    now: Moment,
    /// When each rule set is resynced.
    resync_at: Vec<Moment>,
    tick_at: Option<Moment>,
    /// The key of the request that the current input rejected, and the index of the output.
    rejected: Option<(Work, usize)>,
    out: Vec<Output>,
}

// === Inputs and queries ===

impl Engine {
    /// An engine with an empty cache, which is not the leader.
    pub fn new(config: Config, sets: Vec<Box<dyn RuleSet + Send>>) -> Engine {
        let mut watched: Vec<Kind> = sets.iter().flat_map(|set| set.profile().watches).copied().collect();
        watched.sort();
        watched.dedup();
        let policy = sets.iter().find_map(|set| set.index_policy());
        Engine {
            resync_at: vec![Moment::default(); sets.len()],
            gate: Gate::new(&config),
            config,
            sets: sets.into(),
            known: Cache::new(policy.unwrap_or(IndexPolicy::NONE)),
            unlisted: watched.clone(),
            watched,
            partial_lists: VecDeque::new(),
            is_leader: false,
            queue: WorkQueue::default(),
            sweeps: VecDeque::new(),
            in_flight: InFlight::default(),
            published: PublishedEvents::default(),
            timings: FxHashMap::default(),
            stats: Stats::default(),
            now: Moment::default(),
            tick_at: None,
            rejected: None,
            out: Vec::new(),
        }
    }

    /// Spreads delays by a random number, as [`Config::jitter_seed`] does.
    #[must_use]
    pub fn with_jitter(mut self, seed: u64) -> Engine {
        self.config.jitter_seed = Some(seed);
        self.gate.set_jitter(seed);
        self
    }

    /// Handles an input and returns what to do. The same inputs give the same outputs.
    pub fn handle(&mut self, now: Moment, input: Input) -> Vec<Output> {
        self.now = self.now.max(now);
        self.queue.advance(self.now);
        if matches!(input, Input::Tick) {
            // It is requested again, even for the same time, if it is needed.
            self.tick_at = self.tick_at.filter(|tick_at| *tick_at > self.now);
        }
        self.apply(input);
        self.continue_list();
        self.run();
        self.complete_rejection();
        std::mem::take(&mut self.out)
    }

    fn apply(&mut self, input: Input) {
        let Some(input) = self.keep_until_listed(input) else { return };
        match input {
            Input::Listed { kind, version, objects } => self.listed(kind, version, objects),
            Input::Watched(object) => {
                let change = self.known.watched(object);
                self.changed(change, Cause::Change, None);
            }
            Input::Deleted { key, version } => {
                let change = self.known.watched_deleted(&key, version);
                self.changed(change, Cause::Change, None);
            }
            Input::Bookmark { kind, version } => self.known.watched_up_to(kind, version),
            Input::Answered(id, answer) => self.answered(id, answer),
            Input::Tick => {}
            Input::Leader(is_leader) => self.set_leader(is_leader),
        }
    }

    /// The cache of the cluster's objects.
    pub fn known(&self) -> &Cache {
        &self.known
    }

    /// The names of its rule sets.
    pub fn controllers(&self) -> impl Iterator<Item = &'static str> {
        self.sets.iter().map(|set| set.profile().name)
    }

    /// The kinds that must be watched for it.
    pub fn watches(&self) -> &[Kind] {
        &self.watched
    }

    /// The counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Whether every watched kind was listed.
    pub fn is_synced(&self) -> bool {
        self.unlisted.is_empty()
    }

    /// Whether this instance is the leader.
    pub fn is_leader(&self) -> bool {
        self.is_leader
    }

    /// Whether decisions are made: every kind was listed, and this instance is the leader.
    pub fn is_active(&self) -> bool {
        self.is_leader() && self.is_synced()
    }

    /// The number of keys that are not idle.
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    /// The queues by name, with their counters and the number of waiting keys.
    pub fn queues(&self) -> impl Iterator<Item = (&'static str, Queue, usize)> {
        let sets = self.sets.iter().enumerate();
        sets.flat_map(move |(set, rules)| {
            rules.profile().queues.iter().map(move |&(kind, name)| {
                let (queue, waiting) = self.queue.queue(set, kind);
                (name, queue, waiting)
            })
        })
    }

    /// The verdict of each rule set if it decided about an object now.
    pub fn would_decide(&self, key: &ObjectKey) -> impl Iterator<Item = (&'static str, Verdict)> {
        let sets = self.sets.iter().filter(|set| set.profile().decides().any(|kind| kind == key.kind));
        sets.map(|set| (set.profile().name, set.decide(&self.known, key, &LiveReads::default())))
    }

    /// The number of requests and of operations in flight.
    pub fn in_flight(&self) -> (usize, usize) {
        (self.gate.requests(), self.gate.operations())
    }

    /// The most requests that may be in flight now: less than [`Config::requests_max`] while the
    /// API server is overloaded.
    pub fn request_window(&self) -> usize {
        self.gate.window()
    }

    /// Whether a duration is being measured for an object.
    pub fn is_timing(&self, what: Timed, key: &ObjectKey) -> bool {
        self.timings.contains_key(&(what, key.clone()))
    }
}

// === Handling inputs ===

impl Engine {
    fn set_leader(&mut self, is_leader: bool) {
        if std::mem::replace(&mut self.is_leader, is_leader) == is_leader {
            return;
        }
        self.queue.clear();
        self.sweeps.clear();
        self.in_flight.clear_waiting();
        self.gate.clear_waiting();
        self.known.resume_all();
        // Of objects that are deleted while another instance leads, nothing must stay behind.
        self.published.clear();
        self.timings.clear();
        if self.is_active() {
            self.sweep_everything();
        }
    }

    /// Wakes the keys that a change affects, except the one that made it, which is decided about
    /// anyway.
    fn changed(&mut self, change: Option<Change>, cause: Cause, made_by: Option<&Work>) {
        let Some(change) = change else { return };
        if !self.is_active() {
            return;
        }
        let Engine { sets, known, queue, stats, .. } = self;
        for (set, rules) in sets.iter().enumerate() {
            rules.wake(known, &change, &mut |key| {
                let work = Work { set, key };
                if Some(&work) != made_by && queue.wake(work, cause) {
                    stats.wakes += 1;
                }
            });
        }
    }

    /// Publishes an event of a rule set.
    fn publish(&mut self, set: usize, mut event: Event) {
        event.component = self.sets[set].profile().component;
        self.out.push(Output::Publish(event));
    }
}
