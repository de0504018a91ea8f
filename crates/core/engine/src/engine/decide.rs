//! Deciding: keys in order, each by its rule set, and what follows from the verdict.

use bindery_model::ObjectKey;
use bindery_rules_api::{Action, Backoff, Event, LiveReads, Measure, Request, Rule, Verdict};

use super::Engine;
use crate::progress::Work;
use crate::{Decided, Measured, Output, backoff};

impl Engine {
    /// Decides about keys in order, as long as there is room for what they ask for.
    pub(super) fn run(&mut self) {
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
        self.send_lists();
        self.announce_tick();
    }

    pub(super) fn decide(&mut self, work: Work) {
        let Some(progress) = self.agenda.get_mut(&work) else { return };
        let by_resync = progress.by_resync;
        let mut verdict = self.sets[work.set].decide(&self.known, &work.key, &progress.live_reads);
        if let Some(missing) =
            unproven(&verdict, &progress.live_reads).filter(|_| self.told.is_new(&work, &verdict.events))
        {
            verdict = Verdict::request(verdict.rule, Request::Read(missing));
        }
        let step = step(&verdict.action);
        self.stats.count(verdict.rule);
        if let Some(step) = step.filter(|step| *step != verdict.rule) {
            self.stats.count(step);
        }
        let mut events = std::mem::take(&mut verdict.events);
        if let Action::Retry(pace) = verdict.action {
            let again_in = Some(backoff::delay(&self.config, pace, progress.failures_of(pace).saturating_add(1)));
            events.iter_mut().for_each(|notice| notice.again_in = again_in);
        }
        let told = self.tell(&work, &verdict, events);
        if by_resync && (told || verdict.action != Action::Settle) {
            self.stats.resync_finds += 1;
        }
        if let Some(measure) = verdict.measure.take() {
            self.measure(&work.key, measure);
        }
        self.out.push(Output::Decided(Decided {
            set: self.sets[work.set].profile().name,
            key: work.key.clone(),
            rule: verdict.rule,
            step,
            note: verdict.note.take(),
        }));
        self.act(work, verdict.action);
    }

    pub(super) fn act(&mut self, work: Work, action: Action) {
        match action {
            Action::Settle => self.agenda.rest(&work),
            Action::Request(request) => self.request(work, request),
            Action::HandOff(to) => self.offer(work, to),
            Action::Retry(pace) => self.retry(&work, pace),
            Action::Pause(duration) => self.agenda.due(&work, self.now + duration, true),
        }
    }

    /// Publishes what a verdict has to say, if it is news. Returns whether it was.
    pub(super) fn tell(&mut self, work: &Work, verdict: &Verdict, events: Vec<Event>) -> bool {
        if events.is_empty() {
            // At rest with nothing to say: what was said before is over.
            if verdict.action == Action::Settle {
                self.told.forget(work);
            }
            return false;
        }
        if !self.told.is_new(work, &events) {
            self.stats.notices_kept_back += events.len() as u64;
            return false;
        }
        self.told.note(work, &events);
        for notice in events {
            self.publish(work.set, notice);
        }
        true
    }

    pub(super) fn measure(&mut self, key: &ObjectKey, measure: Measure) {
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
                    let took = Some(now.since(began));
                    self.out.push(Output::Measured(Measured { what, plugin, took }));
                }
            }
            Measure::Drop(what) => {
                self.timings.remove(&(what, key.clone()));
            }
        }
    }

    /// Has another key decided about first, then this one again.
    pub(super) fn offer(&mut self, work: Work, to: ObjectKey) {
        let taker = Work { set: work.set, key: to.clone() };
        if let Some(progress) = self.agenda.get_mut(&work) {
            progress.live_reads.note_hand_off(to);
        }
        self.agenda.hurry_ahead(work);
        self.agenda.schedule_for_hand_off(taker);
    }

    /// Looks again after a while, from the start.
    pub(super) fn retry(&mut self, work: &Work, pace: Backoff) {
        let Some(progress) = self.agenda.get_mut(work) else { return };
        let failures = progress.failures_of(pace).saturating_add(1);
        progress.note_failure(pace, failures);
        progress.live_reads = Default::default();
        if std::mem::take(&mut progress.woken) {
            return self.agenda.hurry(work.clone());
        }
        let due = self.now + backoff::delay(&self.config, pace, failures);
        self.agenda.note_retry(work);
        self.agenda.due(work, due, false);
    }

    pub(super) fn announce_tick(&mut self) {
        let resync = self.resync_at.iter().min().copied().filter(|_| self.is_active());
        let next = self.agenda.next_due().into_iter().chain(resync).min();
        if next != self.tick_at {
            self.tick_at = next;
            self.out.extend(next.map(Output::TickAt));
        }
    }
}

/// An object that is said to be missing, and was not looked for live: word of it may only be late, and then it is not missing.
fn unproven(verdict: &Verdict, live_reads: &LiveReads) -> Option<ObjectKey> {
    let mut missing = verdict.events.iter().filter_map(|notice| notice.missing.as_ref());
    missing.find(|missing| !live_reads.has_read(missing)).cloned()
}

/// Which step an action is, if it sends something that has a name.
fn step(action: &Action) -> Option<&'static Rule> {
    match action {
        Action::Request(Request::Write(write)) => Some(write.purpose),
        Action::Request(Request::Create(create)) => Some(create.purpose),
        Action::Request(Request::Bind(bind)) => Some(bind.purpose),
        Action::Request(Request::Delete(delete)) => Some(delete.purpose),
        Action::Request(Request::Read(_) | Request::List(_) | Request::RunOperation(_)) => None,
        Action::Settle | Action::HandOff(_) | Action::Retry(_) | Action::Pause(_) => None,
    }
}
