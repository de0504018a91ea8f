//! The engine: takes in what happened, decides about every key that it concerns, and says what to do.

use std::sync::Arc;

use bindery_mirror::{Change, Mirror};
use bindery_verdict::{Action, Edit, Failure, Measure, Notice, Pace, Request, RuleSet, Timed, Verdict, Write};
use bindery_volumes::{ClaimKey, Kind, Name, Object, ObjectKey};
use rustc_hash::FxHashMap;

use crate::flights::{Flight, Flights};
use crate::progress::{Agenda, Cause, State, Work};
use crate::told::Told;
use crate::{Answer, Config, Decided, Input, Measured, Moment, Output, Refusal, RequestId, Stats, backoff};

/// A host of rule sets.
pub struct Engine {
    config: Config,
    sets: Vec<Box<dyn RuleSet + Send>>,
    known: Mirror,
    /// Kinds that rule sets look at and that were not listed yet.
    unlisted: Vec<Kind>,
    leading: bool,
    agenda: Agenda,
    flights: Flights,
    told: Told,
    timings: FxHashMap<(Timed, ObjectKey), (Name, Moment)>,
    stats: Stats,
    now: Moment,
    resync_at: Moment,
    tick_at: Option<Moment>,
    out: Vec<Output>,
}

// === What the outside asks ===

impl Engine {
    /// An engine with its rule sets. It knows nothing yet, and does not lead.
    pub fn new(config: Config, sets: Vec<Box<dyn RuleSet + Send>>) -> Engine {
        let mut unlisted: Vec<Kind> = sets.iter().flat_map(|set| set.sees()).copied().collect();
        unlisted.sort();
        unlisted.dedup();
        Engine {
            config,
            sets,
            known: Mirror::default(),
            unlisted,
            leading: false,
            agenda: Agenda::default(),
            flights: Flights::default(),
            told: Told::default(),
            timings: FxHashMap::default(),
            stats: Stats::default(),
            now: Moment::default(),
            resync_at: Moment::default(),
            tick_at: None,
            out: Vec::new(),
        }
    }

    /// Takes in something that happened, and says what to do. The same inputs give the same outputs.
    pub fn handle(&mut self, now: Moment, input: Input) -> Vec<Output> {
        self.now = self.now.max(now);
        match input {
            Input::Listed { kind, version, objects } => self.listed(kind, version, objects),
            Input::Watched(object) => {
                let change = self.known.watched(object);
                self.changed(change, None);
            }
            Input::Gone { key, version } => {
                let change = self.known.watched_gone(&key, version);
                self.changed(change, None);
            }
            Input::Bookmark { kind, version } => self.known.watched_up_to(kind, version),
            Input::Answered(id, answer) => self.answered(id, answer),
            Input::Tick => {}
            Input::Leading(leading) => self.lead(leading),
        }
        self.run();
        std::mem::take(&mut self.out)
    }

    /// What is known of the cluster.
    pub fn known(&self) -> &Mirror {
        &self.known
    }

    /// What was counted.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Whether everything is known that rules look at, and this instance leads: only then are decisions made.
    pub fn is_active(&self) -> bool {
        self.leading && self.unlisted.is_empty()
    }

    /// How many keys are not at rest.
    pub fn pending(&self) -> usize {
        self.agenda.len()
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

    /// Queues every key, kind by kind, in order.
    fn look_at_everything(&mut self, cause: Cause) {
        for set in 0..self.sets.len() {
            for &kind in self.sets[set].decides() {
                let mut keys = self.known.keys(kind);
                keys.sort_unstable();
                for key in keys {
                    self.agenda.wake(Work { set, key }, cause);
                }
            }
        }
        self.resync_at = self.now + self.config.resync;
    }

    fn resync_if_due(&mut self) {
        if self.is_active() && self.now >= self.resync_at {
            self.stats.resyncs += 1;
            self.look_at_everything(Cause::Resync);
        }
    }
}

// === Deciding ===

impl Engine {
    /// Decides about keys in order, as long as there is room for what they ask for.
    fn run(&mut self) {
        self.resync_if_due();
        self.agenda.ripen(self.now);
        while self.is_active() && self.flights.has_room(&self.config) {
            let Some(work) = self.agenda.next() else { break };
            // Another key changes this object just now: what becomes of it is known soon.
            if self.flights.is_busy(&work.key) {
                self.park(work.key.clone(), work);
                continue;
            }
            self.decide(work);
        }
        self.announce_tick();
    }

    fn decide(&mut self, work: Work) {
        let Some(progress) = self.agenda.get_mut(&work) else { return };
        let by_resync = progress.by_resync;
        let mut verdict = self.sets[work.set].decide(&self.known, &work.key, &progress.findings);
        self.stats.count(verdict.rule);
        let notices = std::mem::take(&mut verdict.notices);
        let told = self.tell(&work, &verdict, notices);
        if by_resync && (told || verdict.action != Action::Settle) {
            self.stats.resync_finds += 1;
        }
        if let Some(measure) = verdict.measure.take() {
            self.measure(&work.key, measure);
        }
        self.out.push(Output::Decided(Decided {
            set: self.sets[work.set].name(),
            key: work.key.clone(),
            rule: verdict.rule,
            step: step(&verdict.action),
            note: verdict.note.take(),
        }));
        self.act(work, verdict.action);
    }

    fn act(&mut self, work: Work, action: Action) {
        match action {
            Action::Settle => self.agenda.rest(&work),
            Action::Request(request) => self.request(work, request),
            Action::Offer(claim) => self.offer(work, claim),
            Action::Retry(pace) => self.retry(&work, pace),
            Action::Pause(duration) => self.agenda.due(&work, self.now + duration, true),
        }
    }

    /// Publishes what a verdict has to say, if it is news. Returns whether it was.
    fn tell(&mut self, work: &Work, verdict: &Verdict, notices: Vec<Notice>) -> bool {
        if notices.is_empty() {
            // At rest with nothing to say: what was said before is over.
            if verdict.action == Action::Settle {
                self.told.forget(work);
            }
            return false;
        }
        if !self.told.is_news(work, &notices) {
            self.stats.notices_kept_back += notices.len() as u64;
            return false;
        }
        self.out.extend(notices.into_iter().map(Output::Publish));
        true
    }

    fn measure(&mut self, key: &ObjectKey, measure: Measure) {
        let now = self.now;
        match measure {
            Measure::Begin(what, plugin) => {
                self.timings.entry((what, key.clone())).or_insert((plugin, now));
            }
            Measure::Fail(what) => {
                if let Some((plugin, _)) = self.timings.get(&(what, key.clone())) {
                    self.out.push(Output::Measured(Measured { what, plugin: plugin.clone(), took: None }));
                }
            }
            Measure::End(_) | Measure::Drop(_) if self.timings.is_empty() => {}
            Measure::End(what) => {
                if let Some((plugin, began)) = self.timings.remove(&(what, key.clone())) {
                    let took = Some(now.0.saturating_sub(began.0));
                    self.out.push(Output::Measured(Measured { what, plugin, took }));
                }
            }
            Measure::Drop(what) => {
                self.timings.remove(&(what, key.clone()));
            }
        }
    }

    /// Has another key decided about first, then this one again.
    fn offer(&mut self, work: Work, claim: ClaimKey) {
        let taker = Work { set: work.set, key: claim.clone().into() };
        if let Some(progress) = self.agenda.get_mut(&work) {
            progress.findings.note_offer(claim);
        }
        self.agenda.hurry_ahead(work);
        self.agenda.hurry_for_offer(taker);
    }

    /// Looks again after a while, from the start.
    fn retry(&mut self, work: &Work, pace: Pace) {
        let Some(progress) = self.agenda.get_mut(work) else { return };
        progress.failures = progress.failures.saturating_add(1);
        progress.findings = Default::default();
        if std::mem::take(&mut progress.woken) {
            return self.agenda.hurry(work.clone());
        }
        let due = self.now + backoff::delay(pace, progress.failures);
        self.agenda.due(work, due, false);
    }

    fn announce_tick(&mut self) {
        let resync = self.is_active().then_some(self.resync_at);
        let next = self.agenda.next_due().into_iter().chain(resync).min();
        if next != self.tick_at {
            self.tick_at = next;
            self.out.extend(next.map(Output::TickAt));
        }
    }
}

// === Requests ===

impl Engine {
    /// Sends a request, unless its object is being changed or there is no room for an operation: then the key waits.
    fn request(&mut self, work: Work, request: Request) {
        let target = request.target();
        match &request {
            request if request.holds_target() && self.flights.is_busy(&target) => {
                // What it means to do is shown to others meanwhile: a volume that it will reserve is not theirs.
                if let Request::Write(write) = request {
                    self.assume(write);
                }
                return self.park(target, work);
            }
            Request::Operate(_) if !self.flights.has_room_for_operation(&self.config) => {
                self.set_state(&work, State::Parked);
                return self.flights.park_for_operation(work);
            }
            Request::Write(write) => self.assume(write),
            Request::Create(_) | Request::Delete(_) | Request::Read(_) | Request::Operate(_) => {}
        }
        self.send(Flight { work, request, checks_version: None });
    }

    fn send(&mut self, flight: Flight) {
        self.set_state(&flight.work, State::Sent);
        if let Some(step) = step_of(&flight.request) {
            self.stats.count(step);
        }
        self.stats.sent += 1;
        let request = flight.request.clone();
        let id = self.flights.depart(flight);
        self.out.push(Output::Send(id, request));
    }

    fn park(&mut self, on: ObjectKey, work: Work) {
        self.set_state(&work, State::Parked);
        self.flights.park(on, work);
    }

    fn set_state(&mut self, work: &Work, state: State) {
        if let Some(progress) = self.agenda.get_mut(work) {
            progress.state = state;
        }
    }

    /// Shows an object as a write will make it.
    fn assume(&mut self, write: &Write) {
        let key = write.target();
        match write.edit() {
            Edit::Claim(edit) => self.assume_claim(key, |claim| edit.apply(claim)),
            Edit::ClaimStatus(edit) => self.assume_claim(key, |claim| edit.apply(claim)),
            Edit::Volume(edit) => self.assume_volume(key, |volume| edit.apply(volume)),
            Edit::VolumeStatus(edit) => self.assume_volume(key, |volume| edit.apply(volume)),
        }
    }

    fn assume_claim(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut bindery_volumes::Claim)) {
        if let Some(claim) = self.known.claim(&key.claim_key()) {
            let mut claim = claim.as_ref().clone();
            edit(&mut claim);
            self.known.assume_claim(Arc::new(claim));
        }
    }

    fn assume_volume(&mut self, key: &ObjectKey, edit: impl FnOnce(&mut bindery_volumes::Volume)) {
        if let Some(volume) = self.known.volume(&key.name) {
            let mut volume = volume.as_ref().clone();
            edit(&mut volume);
            self.known.assume_volume(Arc::new(volume));
        }
    }
}

// === Answers ===

impl Engine {
    fn answered(&mut self, id: RequestId, answer: Answer) {
        let Some(flight) = self.flights.arrive(id) else { return };
        let is_operation = matches!(flight.request, Request::Operate(_));
        let target = flight.request.target();
        self.land(flight, answer);
        if !self.flights.is_busy(&target) {
            for work in self.flights.unpark(&target) {
                self.agenda.hurry(work);
            }
        }
        if is_operation && let Some(work) = self.flights.unpark_for_operation() {
            self.agenda.hurry(work);
        }
    }

    /// Takes in an answer, and has its key looked at again.
    fn land(&mut self, flight: Flight, answer: Answer) {
        if let (_, Answer::Refused(refusal)) = (&flight.request, &answer) {
            self.stats.refused += 1;
            return self.refused(flight, refusal.clone());
        }
        let Flight { work, request, checks_version } = flight;
        match (request, answer) {
            (Request::Write(write), Answer::Written(object)) => {
                self.learn(&work, write.target(), Some(object));
                self.out.extend(write.then.into_iter().map(Output::Publish));
                self.go_on(work);
            }
            (Request::Create(create), Answer::Written(object)) => {
                self.learn(&work, &create.key, Some(object));
                self.created(work, create);
            }
            (Request::Read(key), Answer::Read(found)) => {
                self.learn(&work, &key, found.clone());
                match checks_version {
                    None => {
                        if let Some(progress) = self.agenda.get_mut(&work) {
                            progress.findings.note_read(key, found);
                        }
                        self.agenda.hurry(work);
                    }
                    Some(version) => self.checked(work, version, found),
                }
            }
            (Request::Operate(operation), Answer::Done(outcome)) => {
                self.note_outcome(&work, operation.task(), outcome);
                self.agenda.hurry(work);
            }
            (Request::Delete(_), Answer::Deleted(Some(object))) => {
                let key = object.key();
                self.learn(&work, &key, Some(object));
                self.go_on(work);
            }
            // The watch tells when it is gone; until then there is nothing to do.
            (Request::Delete(_), Answer::Deleted(None)) => self.agenda.rest_or_hurry(work),
            (request, answer) => {
                debug_assert!(false, "{answer:?} is no answer to {request:?}");
                self.give_back(&work, &request.target());
                self.retry(&work, Pace::Api);
            }
        }
    }

    /// Takes in what an answer says of an object, and wakes all whom it concerns.
    fn learn(&mut self, work: &Work, key: &ObjectKey, found: Option<Object>) {
        let change = match found {
            Some(object) => self.known.answered(object),
            None => self.known.answered_gone(key),
        };
        // Whoever was shown it as assumed looks again, unless it came just so and the change tells them anyway.
        let settled = self.known.settle(key);
        let settled = settled.filter(|settled| change.is_none() || settled.before != settled.after);
        self.changed(settled, Some(work));
        self.changed(change, Some(work));
        if !self.is_active() {
            self.agenda.rest(work);
        }
    }

    /// Shows an object as it was seen again, and has whoever was shown it as assumed look again.
    fn give_back(&mut self, work: &Work, key: &ObjectKey) {
        let settled = self.known.settle(key);
        self.changed(settled, Some(work));
    }

    fn created(&mut self, work: Work, create: bindery_verdict::Create) {
        self.out.extend(create.then.into_iter().map(Output::Publish));
        self.note_outcome(&work, create.task, Ok(()));
        self.agenda.hurry(work);
    }

    fn note_outcome(&mut self, work: &Work, task: bindery_verdict::Task, outcome: Result<(), Failure>) {
        if let Some(progress) = self.agenda.get_mut(work) {
            progress.findings.forget_passing();
            progress.findings.note_outcome(task, outcome);
        }
    }

    /// A step is done: the next is looked for at once.
    fn go_on(&mut self, work: Work) {
        if let Some(progress) = self.agenda.get_mut(&work) {
            progress.findings.forget_passing();
            progress.failures = 0;
            self.agenda.hurry(work);
        }
    }

    fn refused(&mut self, flight: Flight, refusal: Refusal) {
        let Flight { work, request, .. } = flight;
        match (request, refusal) {
            (Request::Create(create), Refusal::AlreadyExists) => self.created(work, create),
            (Request::Create(create), refusal) => {
                self.note_outcome(&work, create.task, Err(Failure::new(refusal.to_string())));
                self.agenda.hurry(work);
            }
            (Request::Operate(operation), refusal) => {
                self.note_outcome(&work, operation.task(), Err(Failure::new(refusal.to_string())));
                self.agenda.hurry(work);
            }
            // What is known is behind, or nobody knows what became of it: a live read tells.
            (Request::Write(write), Refusal::Conflict | Refusal::NotFound | Refusal::Lost) => {
                self.check(work, write.target().clone(), write.version());
            }
            (Request::Delete(delete), Refusal::Conflict | Refusal::NotFound | Refusal::Lost) => {
                let volume = delete.proof().volume();
                self.check(work, ObjectKey::volume(volume.name.clone()), volume.version);
            }
            (request, refusal) => {
                if let Request::Write(write) = &request
                    && let Some(regret) = &write.regret
                {
                    self.out.push(Output::Publish(regret.notice(&refusal.to_string())));
                }
                self.give_back(&work, &request.target());
                match refusal {
                    Refusal::Later(delay, _) => {
                        if let Some(progress) = self.agenda.get_mut(&work) {
                            progress.findings = Default::default();
                        }
                        self.agenda.due(&work, self.now + delay, false);
                    }
                    Refusal::Conflict
                    | Refusal::NotFound
                    | Refusal::AlreadyExists
                    | Refusal::Lost
                    | Refusal::Error(_) => self.retry(&work, Pace::Api),
                }
            }
        }
    }

    /// Reads an object whose write or deletion was refused. It stays as assumed until it is known what became of it.
    fn check(&mut self, work: Work, key: ObjectKey, version: u64) {
        self.send(Flight { work, request: Request::Read(key), checks_version: Some(version) });
    }

    /// Goes on after such a read: at once when there is news, else after a while.
    fn checked(&mut self, work: Work, version: u64, found: Option<Object>) {
        if found.is_some_and(|object| object.meta().version <= version) {
            return self.retry(&work, Pace::Api);
        }
        if let Some(progress) = self.agenda.get_mut(&work) {
            progress.findings.forget_passing();
            self.agenda.hurry(work);
        }
    }
}

/// Which step an action is, if it sends something that has a name.
fn step(action: &Action) -> Option<&'static bindery_verdict::Rule> {
    match action {
        Action::Request(request) => step_of(request),
        Action::Settle | Action::Offer(_) | Action::Retry(_) | Action::Pause(_) => None,
    }
}

fn step_of(request: &Request) -> Option<&'static bindery_verdict::Rule> {
    match request {
        Request::Write(write) => Some(write.purpose),
        Request::Create(create) => Some(create.purpose),
        Request::Delete(delete) => Some(delete.purpose),
        Request::Read(_) | Request::Operate(_) => None,
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Conflict => f.write_str("the object has been modified"),
            Refusal::NotFound => f.write_str("the object does not exist"),
            Refusal::AlreadyExists => f.write_str("the object already exists"),
            Refusal::Lost => f.write_str("no answer"),
            Refusal::Later(_, error) | Refusal::Error(error) => f.write_str(error),
        }
    }
}
