//! Deciding about queued keys, and acting on the verdicts.

use bindery_model::ObjectKey;
use bindery_rules_api::{Action, Backoff, Event, LiveReads, Measure, Request, Rule, Verdict};

use super::Engine;
use crate::queue::Work;
use crate::{Decided, Measured, Output, backoff};

impl Engine {
    /// Decides about keys in order, while the gate admits requests, and about at most a slice of
    /// them. Keys that wait for an operation come first when one may start.
    pub(super) fn run(&mut self) {
        self.resync_if_due();
        self.queue.enqueue_due(self.now, self.config.decisions_max);
        for work in self.queue.take_resumed() {
            self.resume(&work);
        }
        self.send_held();
        self.continue_sweeps();
        let mut left = self.config.decisions_max;
        while left > 0 && self.is_active() && self.gate.admits_request(self.now) {
            left -= 1;
            if let Some(work) = self.gate.next_for_operation() {
                self.resume(&work);
                self.queue.enqueue_next(work);
            }
            let Some(work) = self.queue.next() else { break };
            // Another key's request is changing this object: wait for the answer.
            if self.in_flight.is_locked(&work.key) {
                self.wait_for(work.key.clone(), work);
                continue;
            }
            self.decide(work);
        }
        self.send_lists();
        self.announce_tick();
    }

    pub(super) fn decide(&mut self, work: Work) {
        let Some(progress) = self.queue.get_mut(&work) else { return };
        let by_resync = progress.by_resync;
        let mut verdict = self.sets[work.set].decide(&self.known, &work.key, &progress.live_reads);
        if let Some(missing) =
            unproven(&verdict, &progress.live_reads).filter(|_| self.published.is_new(&work, &verdict.events))
        {
            verdict = Verdict::request(verdict.rule, Request::Read(missing));
        }
        let step = step(&verdict.action);
        progress.step = step.or(Some(verdict.rule));
        self.stats.count(verdict.rule);
        if let Some(step) = step.filter(|step| *step != verdict.rule) {
            self.stats.count(step);
        }
        let mut events = std::mem::take(&mut verdict.events);
        if let Action::Retry(backoff) = verdict.action {
            let failures = progress.failures_of(backoff).saturating_add(1);
            let retry_in = Some(backoff::delay(&self.config, backoff, failures, &work));
            events.iter_mut().for_each(|event| event.retry_in = retry_in);
        }
        let has_published = self.publish_new(&work, &verdict, events);
        if by_resync && (has_published || verdict.action != Action::Idle) {
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
            Action::Idle => self.queue.set_idle(&work),
            Action::Request(request) => self.request(work, request),
            Action::HandOff(to) => self.hand_off(work, to),
            Action::Retry(backoff) => self.retry(&work, backoff),
            Action::Pause(duration) => self.schedule(&work, self.now + duration, true),
        }
    }

    /// Publishes the events of a verdict unless they repeat the last ones. Returns whether it did.
    pub(super) fn publish_new(&mut self, work: &Work, verdict: &Verdict, events: Vec<Event>) -> bool {
        if events.is_empty() {
            // The condition that the last events reported is over.
            if verdict.action == Action::Idle {
                self.published.forget(work);
            }
            return false;
        }
        if !self.published.is_new(work, &events) {
            self.stats.events_suppressed += events.len() as u64;
            return false;
        }
        self.published.note(work, &events);
        for event in events {
            self.publish(work.set, event);
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

    /// Decides about another key first, then about this one again.
    pub(super) fn hand_off(&mut self, work: Work, to: ObjectKey) {
        let receiver = Work { set: work.set, key: to.clone() };
        if let Some(progress) = self.queue.get_mut(&work) {
            progress.live_reads.note_hand_off(to);
        }
        self.queue.enqueue_next(work);
        self.queue.enqueue_for_hand_off(receiver);
    }

    /// Decides again from the start after a back-off.
    pub(super) fn retry(&mut self, work: &Work, backoff: Backoff) {
        let Some(progress) = self.queue.get_mut(work) else { return };
        let failures = progress.failures_of(backoff).saturating_add(1);
        progress.note_failure(backoff, failures);
        progress.live_reads = Default::default();
        if std::mem::take(&mut progress.woken) {
            return self.queue.enqueue_first(work.clone());
        }
        let due = self.now + backoff::delay(&self.config, backoff, failures, work);
        self.queue.note_retry(work);
        self.schedule(work, due, false);
    }

    pub(super) fn announce_tick(&mut self) {
        let resyncs = self.resync_at.iter().enumerate().filter(|(set, _)| !self.is_sweeping(*set));
        let resync = resyncs.map(|(_, at)| *at).min().filter(|_| self.is_active());
        let at_once = self.has_more_to_do().then_some(self.now);
        let resume = self.gate.paused_until(self.now);
        let next = self.queue.next_due().into_iter().chain(resync).chain(at_once).chain(resume).min();
        if next != self.tick_at {
            self.tick_at = next;
            self.out.extend(next.map(Output::TickAt));
        }
    }
}

/// An object that an event reports as missing and that was not read live. The cache may lag behind.
fn unproven(verdict: &Verdict, live_reads: &LiveReads) -> Option<ObjectKey> {
    let mut missing = verdict.events.iter().filter_map(|event| event.missing.as_ref());
    missing.find(|missing| !live_reads.has_read(missing)).cloned()
}

/// The rule that names an action's step, if it has one.
fn step(action: &Action) -> Option<&'static Rule> {
    match action {
        Action::Request(Request::Write(write)) => Some(write.purpose),
        Action::Request(Request::Create(create)) => Some(create.purpose),
        Action::Request(Request::Bind(bind)) => Some(bind.purpose),
        Action::Request(Request::Delete(delete)) => Some(delete.purpose),
        Action::Request(Request::Read(_) | Request::List(_) | Request::RunOperation(_)) => None,
        Action::Idle | Action::HandOff(_) | Action::Retry(_) | Action::Pause(_) => None,
    }
}
