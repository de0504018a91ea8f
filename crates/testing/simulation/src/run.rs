//! Runs rules in a cluster: one sync of one key, or an engine until nothing happens anymore.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bindery_cache::Cache;
use bindery_engine::{Answer, Config, Engine, Input, Moment, Output, RequestError, RequestId};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{Action, Event, Failure, LiveReads, OperationOutput, Request, RuleSet, Task};

use crate::{EngineApi, SimulatedCluster};

/// What happened while rules ran.
#[derive(Debug, Default, Clone)]
pub struct Report {
    /// The rules that applied, and the steps that were sent.
    pub rules: BTreeSet<&'static str>,
    /// The published events, in order.
    pub events: Vec<Event>,
}

impl Report {
    /// Adds the report of another run.
    pub fn merge(&mut self, other: Report) {
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

/// A cache with the objects of the cluster, without those that no watch event has delivered yet.
pub fn cache_of(cluster: &SimulatedCluster, unseen: &[ObjectKey]) -> Cache {
    let mut known = Cache::new(bindery_matching::INDEX_POLICY);
    for kind in Kind::ALL {
        let (version, mut objects) = cluster.list(kind);
        objects.retain(|object| !unseen.contains(&object.key()));
        known.listed(kind, version, objects);
    }
    known
}

/// Decides about one key until there is nothing left to do, as one sync of the upstream
/// controllers. No other key is decided about.
pub fn sync_once(cluster: &mut SimulatedCluster, known: &mut Cache, rules: &dyn RuleSet, key: &ObjectKey) -> Report {
    let mut report = Report::default();
    let mut live_reads = LiveReads::default();
    // Far more steps than any sync needs.
    for _ in 0..100 {
        let verdict = rules.decide(known, key, &live_reads);
        report.rule(verdict.rule);
        if report.events.last() != verdict.events.last() || verdict.events.len() > 1 {
            report.events.extend(verdict.events);
        }
        match verdict.action {
            Action::Idle | Action::Retry(_) => return report,
            Action::Pause(_) => live_reads.note_pause(),
            // Other keys are not decided about here.
            Action::HandOff(claim) => live_reads.note_hand_off(claim),
            Action::Request(request) => {
                report.step(&request);
                let answer = cluster.answer(&request);
                if !apply_answer(known, &mut live_reads, &mut report, request, answer) {
                    return report;
                }
            }
        }
    }
    panic!("a sync of {key} does not end: {:#?}", cluster.history);
}

/// Applies an answer to the cache; `false` when the sync ends with it.
fn apply_answer(
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
            // A new volume belongs to another key, but a pod may need further claims.
            return matches!(create.task, Task::CreateClaim(_));
        }
        (Request::Create(create), Answer::Rejected(refusal)) => {
            let outcome = match &refusal {
                RequestError::AlreadyExists => {
                    report.events.extend(create.then);
                    Ok(OperationOutput::default())
                }
                RequestError::Lost | RequestError::Unknown(..) => Err(Failure::unknown(refusal.to_string())),
                RequestError::RetryAfter(..) => return false,
                RequestError::Conflict | RequestError::NotFound | RequestError::Error(..) => {
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

/// When the engine is replaced by a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Never.
    Never,
    /// Once, after this many effects, before the last answer is delivered.
    AfterEffect(usize),
}

/// Creates the rule sets of a new engine.
pub type Rules<'a> = &'a dyn Fn() -> Vec<Box<dyn RuleSet + Send>>;

/// The rule sets of the lifecycle controllers.
pub fn lifecycle_controllers() -> Vec<Box<dyn RuleSet + Send>> {
    // The recorded states do not contain the `Unused` condition.
    let claims = ClaimProtection { reports_unused: false };
    vec![
        Box::new(Ephemeral),
        Box::new(claims),
        Box::new(VolumeProtection),
        Box::new(AttributesClassProtection),
        Box::new(Expander),
    ]
}

/// An engine in a cluster.
pub struct Run<'a, W = SimulatedCluster> {
    /// The cluster.
    pub cluster: W,
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

impl<'a, W: EngineApi> Run<'a, W> {
    /// Starts an engine that has listed everything and is the leader.
    pub fn start(cluster: W, rules: Rules<'a>, restart: Restart) -> Run<'a, W> {
        Run::start_with(Config::default(), cluster, rules, restart)
    }

    /// The same with a configuration.
    pub fn start_with(config: Config, cluster: W, rules: Rules<'a>, restart: Restart) -> Run<'a, W> {
        let mut run = Run {
            cluster,
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
            let (version, objects) = self.cluster.list(kind);
            self.handle(Input::Listed { kind, version, objects });
        }
        self.handle(Input::Leader(true));
    }

    /// Replaces the engine. Answers to the old one are lost.
    pub fn replace_engine(&mut self) {
        self.restart = Restart::Never;
        self.inbox.clear();
        self.tick_at = None;
        self.engine = Engine::new(self.config.clone(), (self.rules)());
        self.list();
    }

    /// Passes an input to the engine, and records its outputs.
    pub fn handle(&mut self, input: Input) {
        for output in self.engine.handle(self.now, input) {
            match output {
                Output::Send(id, request) => self.inbox.push_back((id, request)),
                Output::Publish(event) => self.report.events.push(event),
                Output::TickAt(moment) => self.tick_at = Some(moment),
                Output::Decided(decided) => {
                    self.report.rule(decided.rule);
                    decided.step.into_iter().for_each(|step| self.report.rule(step));
                }
                Output::Measured(_) | Output::Rejected(_) => {}
            }
        }
    }

    /// Delivers answers and watch events until none are left. Time does not pass.
    pub fn until_idle(&mut self) {
        self.process(true);
    }

    /// Delivers answers, but no watch events, until none are left.
    pub fn until_idle_without_watch(&mut self) {
        self.process(false);
    }

    fn process(&mut self, watches: bool) {
        for _ in 0..100_000 {
            if let Some(event) = watches.then(|| self.cluster.next_watch_event()).flatten() {
                self.handle(event.into());
            } else if let Some((id, request)) = self.inbox.pop_front() {
                let answer = self.cluster.answer(&request);
                if let Restart::AfterEffect(effects) = self.restart
                    && self.cluster.effects() >= effects
                {
                    self.replace_engine();
                } else {
                    self.handle(Input::Answered(id, answer));
                }
            } else if self.tick_at.is_some_and(|tick_at| tick_at <= self.now) {
                // The engine continues at once.
                self.tick_at = None;
                self.handle(Input::Tick);
            } else {
                return;
            }
        }
        let history = self.cluster.history();
        panic!("the engine does not become idle: {:#?}", &history[..50.min(history.len())]);
    }

    /// Advances the time to the next tick.
    pub fn tick(&mut self) {
        self.now = self.tick_at.unwrap_or(self.now + Duration::from_secs(1)).max(self.now);
        self.cluster.set_time(self.now);
        self.handle(Input::Tick);
        self.until_idle();
    }

    /// Runs until idle, and then for ten minutes with resyncs and retries.
    pub fn until_stable(&mut self) {
        self.until_idle();
        let end = self.now + Duration::from_secs(600);
        while self.now < end {
            self.tick();
        }
    }

    /// Runs everything that is due within this duration.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.until_idle();
        while self.tick_at.is_some_and(|moment| moment <= end) {
            self.tick();
        }
    }

    /// The time of the next tick that the engine has requested.
    pub fn next_tick(&self) -> Option<Moment> {
        self.tick_at
    }

    /// The current time.
    pub fn now(&self) -> Moment {
        self.now
    }
}
