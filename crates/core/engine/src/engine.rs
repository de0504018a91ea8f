//! The engine: takes in what happened, decides about every key that it concerns, and says what to do.

mod answers;
mod decide;
mod lists;
mod requests;

use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_model::{Kind, Name, Object, ObjectKey};
use bindery_rules_api::{Event, LiveReads, RuleSet, Timed, Verdict};
use rustc_hash::FxHashMap;

use crate::flights::Flights;
use crate::progress::{Agenda, Cause, Work};
use crate::published_events::PublishedEvents;
use crate::{Config, Input, Moment, Output, Queue, Stats};

/// A host of rule sets.
pub struct Engine {
    config: Config,
    sets: Vec<Box<dyn RuleSet + Send>>,
    known: Cache,
    /// Kinds that rule sets look at.
    seen: Vec<Kind>,
    /// Those of them that were not listed yet.
    unlisted: Vec<Kind>,
    leading: bool,
    agenda: Agenda,
    flights: Flights,
    told: PublishedEvents,
    timings: FxHashMap<(Timed, ObjectKey), (Name, Moment)>,
    stats: Stats,
    now: Moment,
    /// When each rule set looks at everything again.
    resync_at: Vec<Moment>,
    tick_at: Option<Moment>,
    out: Vec<Output>,
}

// === What the outside asks ===

impl Engine {
    /// An engine with its rule sets. It knows nothing yet, and does not lead.
    pub fn new(config: Config, sets: Vec<Box<dyn RuleSet + Send>>) -> Engine {
        let mut seen: Vec<Kind> = sets.iter().flat_map(|set| set.profile().sees).copied().collect();
        seen.sort();
        seen.dedup();
        let policy = sets.iter().find_map(|set| set.index_policy());
        Engine {
            resync_at: vec![Moment::default(); sets.len()],
            config,
            sets,
            known: Cache::new(policy.unwrap_or(IndexPolicy::NONE)),
            unlisted: seen.clone(),
            seen,
            leading: false,
            agenda: Agenda::default(),
            flights: Flights::default(),
            told: PublishedEvents::default(),
            timings: FxHashMap::default(),
            stats: Stats::default(),
            now: Moment::default(),
            tick_at: None,
            out: Vec::new(),
        }
    }

    /// Takes in something that happened, and says what to do. The same inputs give the same outputs.
    pub fn handle(&mut self, now: Moment, input: Input) -> Vec<Output> {
        self.now = self.now.max(now);
        self.agenda.advance(self.now);
        match input {
            Input::Listed { kind, version, objects } => self.listed(kind, version, objects),
            Input::Watched(object) => {
                let change = self.known.watched(object);
                self.changed(change, None);
            }
            Input::Gone { key, version } => {
                let change = self.known.watched_deleted(&key, version);
                self.changed(change, None);
            }
            Input::Bookmark { kind, version } => self.known.watched_up_to(kind, version),
            Input::Answered(id, answer) => self.answered(id, answer),
            Input::Tick => {}
            Input::Leader(leading) => self.lead(leading),
        }
        self.run();
        std::mem::take(&mut self.out)
    }

    /// What is known of the cluster.
    pub fn known(&self) -> &Cache {
        &self.known
    }

    /// The names of its rule sets.
    pub fn controllers(&self) -> impl Iterator<Item = &'static str> {
        self.sets.iter().map(|set| set.profile().name)
    }

    /// The kinds of objects that it has to be told of.
    pub fn sees(&self) -> &[Kind] {
        &self.seen
    }

    /// What was counted.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Whether everything is known that rules look at.
    pub fn is_synced(&self) -> bool {
        self.unlisted.is_empty()
    }

    /// Whether this instance leads.
    pub fn is_leader(&self) -> bool {
        self.leading
    }

    /// Whether decisions are made: everything is known, and this instance leads.
    pub fn is_active(&self) -> bool {
        self.is_leader() && self.is_synced()
    }

    /// How many keys are not at rest.
    pub fn pending(&self) -> usize {
        self.agenda.len()
    }

    /// The queues, by name: what was counted, and how many keys wait to be decided about.
    pub fn queues(&self) -> impl Iterator<Item = (&'static str, Queue, usize)> {
        let sets = self.sets.iter().enumerate();
        sets.flat_map(move |(set, rules)| {
            rules.profile().queues.iter().map(move |&(kind, name)| {
                let (queue, waiting) = self.agenda.queue(set, kind);
                (name, queue, waiting)
            })
        })
    }

    /// What would be decided about an object now, if it were looked at: by rule set.
    pub fn would_decide(&self, key: &ObjectKey) -> impl Iterator<Item = (&'static str, Verdict)> {
        let sets = self.sets.iter().filter(|set| set.profile().decides().any(|kind| kind == key.kind));
        sets.map(|set| (set.profile().name, set.decide(&self.known, key, &LiveReads::default())))
    }

    /// How many requests and operations are under way.
    pub fn in_flight(&self) -> (usize, usize) {
        (self.flights.requests(), self.flights.operations())
    }

    /// Whether the duration of something is being measured for an object.
    pub fn is_timing(&self, what: Timed, key: &ObjectKey) -> bool {
        self.timings.contains_key(&(what, key.clone()))
    }
}

// === What happened ===

impl Engine {
    fn listed(&mut self, kind: Kind, version: u64, objects: Vec<Object>) {
        let was_active = self.is_active();
        let changes = self.known.listed(kind, version, objects);
        self.unlisted.retain(|unlisted| *unlisted != kind);
        if was_active {
            for change in changes {
                self.changed(Some(change), None);
            }
        } else if self.is_active() {
            self.look_at_everything(Cause::Change);
        }
    }

    fn lead(&mut self, leading: bool) {
        if std::mem::replace(&mut self.leading, leading) == leading {
            return;
        }
        self.agenda.clear();
        self.flights.clear_parked();
        if self.is_active() {
            self.look_at_everything(Cause::Change);
        }
    }

    /// Wakes the keys that a change concerns, except for the one that made it: that one looks again anyway.
    fn changed(&mut self, change: Option<Change>, made_by: Option<&Work>) {
        let Some(change) = change else { return };
        if !self.is_active() {
            return;
        }
        let Engine { sets, known, agenda, stats, .. } = self;
        for (set, rules) in sets.iter().enumerate() {
            rules.wake(known, &change, &mut |key| {
                let work = Work { set, key };
                if Some(&work) != made_by && agenda.wake(work, Cause::Change) {
                    stats.wakes += 1;
                }
            });
        }
    }

    /// Queues every key of every rule set.
    fn look_at_everything(&mut self, cause: Cause) {
        for set in 0..self.sets.len() {
            self.look_at_all_of(set, cause);
        }
    }

    /// Queues every key of a rule set, kind by kind, in order.
    fn look_at_all_of(&mut self, set: usize, cause: Cause) {
        for kind in self.sets[set].profile().decides() {
            let mut keys = self.known.keys(kind);
            keys.sort_unstable();
            for key in keys {
                self.agenda.wake(Work { set, key }, cause);
            }
        }
        self.resync_at[set] = self.now + self.config.resync_of(self.sets[set].profile().tempo);
    }

    fn resync_if_due(&mut self) {
        if !self.is_active() {
            return;
        }
        for set in 0..self.sets.len() {
            if self.now >= self.resync_at[set] {
                self.stats.resyncs += 1;
                self.look_at_all_of(set, Cause::Resync);
            }
        }
    }

    /// Publishes a notice of a rule set.
    fn publish(&mut self, set: usize, mut notice: Event) {
        notice.component = self.sets[set].profile().component;
        self.out.push(Output::Publish(notice));
    }
}
