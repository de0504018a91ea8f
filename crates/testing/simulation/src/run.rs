//! Running rules in a world: one key once, or an engine until it is quiet.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bindery_cache::Cache;
use bindery_engine::{Answer, Config, Engine, Input, Moment, Output, RequestError, RequestId};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{Action, Event, Failure, LiveReads, OperationOutput, Request, RuleSet, Task};

use crate::{Answerer, World};

/// What happened while rules ran.
#[derive(Debug, Default, Clone)]
pub struct Report {
    /// The rules that applied, and the steps that were sent.
    pub rules: BTreeSet<&'static str>,
    /// What was published, in order.
    pub events: Vec<Event>,
}

impl Report {
    /// Adds what happened in another run.
    pub fn take_in(&mut self, other: Report) {
        self.rules.extend(other.rules);
        self.events.extend(other.events);
    }

    pub(crate) fn rule(&mut self, rule: &'static bindery_rules_api::Rule) {
        self.rules.insert(rule.name);
    }

    fn step(&mut self, request: &Request) {
        match request {
            Request::Write(write) => self.rule(write.purpose),
            Request::Create(create) => self.rule(create.purpose),
            Request::Bind(bind) => self.rule(bind.purpose),
            Request::Delete(delete) => self.rule(delete.purpose),
            Request::Read(_) | Request::List(_) | Request::RunOperation(_) => {}
        }
    }
}

/// A mirror of the world, without the objects that word has not come of.
pub fn mirror_of(world: &World, unseen: &[ObjectKey]) -> Cache {
    let mut known = Cache::new(bindery_matching::INDEX_POLICY);
    for kind in Kind::ALL {
        let (version, mut objects) = world.list(kind);
        objects.retain(|object| !unseen.contains(&object.key()));
        known.listed(kind, version, objects);
    }
    known
}

/// Looks at one key, and goes on with it until it comes to rest: what upstream calls one sync. Nothing else is looked at.
pub fn sync_once(world: &mut World, known: &mut Cache, rules: &dyn RuleSet, key: &ObjectKey) -> Report {
    let mut report = Report::default();
    let mut live_reads = LiveReads::default();
    // Far more steps than any sync takes: a loop is a defect.
    for _ in 0..100 {
        let verdict = rules.decide(known, key, &live_reads);
        report.rule(verdict.rule);
        if report.events.last() != verdict.events.last() || verdict.events.len() > 1 {
            report.events.extend(verdict.events);
        }
        match verdict.action {
            Action::Idle | Action::Retry(_) => return report,
            Action::Pause(_) => live_reads.note_pause(),
            // Another key is none of this one's business.
            Action::HandOff(claim) => live_reads.note_hand_off(claim),
            Action::Request(request) => {
                report.step(&request);
                let answer = world.answer(&request);
                if !take_in(known, &mut live_reads, &mut report, request, answer) {
                    return report;
                }
            }
        }
    }
    panic!("a sync of {key} does not end: {:#?}", world.history);
}

/// Takes in an answer; `false` when the sync ends with it.
fn take_in(
    known: &mut Cache,
    live_reads: &mut LiveReads,
    report: &mut Report,
    request: Request,
    answer: Answer,
) -> bool {
    match (request, answer) {
        (Request::Write(write), Answer::Written(object)) => {
            known.answered(object);
            live_reads.clear_reads();
            report.events.extend(write.then);
        }
        (Request::Bind(bind), Answer::Written(object)) => {
            known.answered(object);
            live_reads.clear_reads();
            report.events.extend(bind.then);
        }
        (Request::Create(create), Answer::Written(object)) => {
            known.answered(object);
            live_reads.note_outcome(create.task, Ok(OperationOutput::default()));
            report.events.extend(create.then);
            // A volume that it made is another object's business; a pod may want another claim.
            return matches!(create.task, Task::CreateClaim(_));
        }
        (Request::Create(create), Answer::Rejected(refusal)) => {
            let outcome = match &refusal {
                RequestError::AlreadyExists => {
                    report.events.extend(create.then);
                    Ok(OperationOutput::default())
                }
                RequestError::Lost => Err(Failure::unknown(refusal.to_string())),
                RequestError::RetryAfter(..) => return false,
                RequestError::Conflict | RequestError::NotFound | RequestError::Error(_) => {
                    Err(Failure::new(refusal.to_string()))
                }
            };
            live_reads.clear_reads();
            live_reads.note_outcome(create.task, outcome);
        }
        (Request::Read(key), Answer::Read(found)) => {
            match &found {
                Some(object) => known.answered(object.clone()),
                None => known.answered_not_found(&key, known.seen_version(&key)),
            };
            live_reads.note_read(key, found);
        }
        (Request::List(listing), Answer::Listed(found)) => live_reads.note_list(listing, found.into()),
        (Request::Delete(_), Answer::Deleted(Some(object))) => {
            known.answered(object);
            live_reads.clear_reads();
        }
        (Request::RunOperation(operation), Answer::Done(outcome)) => {
            live_reads.clear_reads();
            live_reads.note_outcome(operation.task(), outcome);
        }
        (_, _) => return false,
    }
    true
}

/// When an engine is cut off from the world and another takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Never.
    Never,
    /// Once, after so many effects, before word of the last one comes back.
    FailureEffect(usize),
}

/// Makes the rule sets of an engine, as often as there is a new one.
pub type Rules<'a> = &'a dyn Fn() -> Vec<Box<dyn RuleSet + Send>>;

/// The controllers that work beside the binder.
pub fn companions() -> Vec<Box<dyn RuleSet + Send>> {
    // The states that were recorded know nothing of the `Unused` condition.
    let claims = ClaimProtection { reports_unused: false };
    vec![
        Box::new(Ephemeral),
        Box::new(claims),
        Box::new(VolumeProtection),
        Box::new(AttributesClassProtection),
        Box::new(Expander),
    ]
}

/// An engine in a world.
pub struct Run<'a, W = World> {
    /// The world.
    pub world: W,
    /// The engine.
    pub engine: Engine,
    /// What happened so far.
    pub report: Report,
    rules: Rules<'a>,
    config: Config,
    restart: Restart,
    inbox: VecDeque<(RequestId, Request)>,
    now: Moment,
    tick_at: Option<Moment>,
}

impl<'a, W: Answerer> Run<'a, W> {
    /// Starts an engine in a world: it lists everything, and leads.
    pub fn start(world: W, rules: Rules<'a>, restart: Restart) -> Run<'a, W> {
        Run::start_with(Config::default(), world, rules, restart)
    }

    /// Starts an engine that is set up in some way.
    pub fn start_with(config: Config, world: W, rules: Rules<'a>, restart: Restart) -> Run<'a, W> {
        let mut run = Run {
            world,
            engine: Engine::new(config.clone(), rules()),
            report: Report::default(),
            rules,
            config,
            restart,
            inbox: VecDeque::new(),
            now: Moment::default(),
            tick_at: None,
        };
        run.list();
        run
    }

    fn list(&mut self) {
        for kind in Kind::ALL {
            let (version, objects) = self.world.list(kind);
            self.tell(Input::Listed { kind, version, objects });
        }
        self.tell(Input::Leader(true));
    }

    /// Cuts the engine off, and has another take its place.
    pub fn replace_engine(&mut self) {
        self.restart = Restart::Never;
        self.inbox.clear();
        self.tick_at = None;
        self.engine = Engine::new(self.config.clone(), (self.rules)());
        self.list();
    }

    /// Tells the engine something.
    pub fn tell(&mut self, input: Input) {
        for output in self.engine.handle(self.now, input) {
            match output {
                Output::Send(id, request) => self.inbox.push_back((id, request)),
                Output::Publish(notice) => self.report.events.push(notice),
                Output::TickAt(moment) => self.tick_at = Some(moment),
                Output::Decided(decided) => {
                    self.report.rule(decided.rule);
                    decided.step.into_iter().for_each(|step| self.report.rule(step));
                }
                Output::Measured(_) => {}
            }
        }
    }

    /// Answers and tells until nothing is under way. Time does not pass.
    pub fn until_idle(&mut self) {
        self.go_on(true);
    }

    /// Answers until nothing is under way, while the watch says nothing.
    pub fn until_idle_without_watch(&mut self) {
        self.go_on(false);
    }

    fn go_on(&mut self, watches: bool) {
        for _ in 0..100_000 {
            if let Some(told) = watches.then(|| self.world.told()).flatten() {
                self.tell(told.into());
            } else if let Some((id, request)) = self.inbox.pop_front() {
                let answer = self.world.answer(&request);
                if let Restart::FailureEffect(effects) = self.restart
                    && self.world.effects() >= effects
                {
                    self.replace_engine();
                } else {
                    self.tell(Input::Answered(id, answer));
                }
            } else {
                return;
            }
        }
        let history = self.world.history();
        panic!("the engine does not come to rest: {:#?}", &history[..50.min(history.len())]);
    }

    /// Lets time pass, as far as the next tick.
    pub fn tick(&mut self) {
        self.now = self.tick_at.unwrap_or(self.now + Duration::from_secs(1)).max(self.now);
        self.world.pass(self.now);
        self.tell(Input::Tick);
        self.until_idle();
    }

    /// Goes on until nothing happens any more, ten minutes of resyncs and retries included.
    pub fn until_stable(&mut self) {
        self.until_idle();
        let end = self.now + Duration::from_secs(600);
        while self.now < end {
            self.tick();
        }
    }

    /// Goes on, with what is due within so long.
    pub fn settle(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.until_idle();
        while self.tick_at.is_some_and(|moment| moment <= end) {
            self.tick();
        }
    }

    /// When the engine has something to do next, if nothing happens before.
    pub fn next_tick(&self) -> Option<Moment> {
        self.tick_at
    }

    /// What time it is.
    pub fn now(&self) -> Moment {
        self.now
    }
}
