//! Tables of cases: a state, what happens, the state after. One function checks a case in all ways of running it.

use std::collections::BTreeSet;

use bindery_binder::{Binder, Config};
use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{Failure, FailureEffect, OperationOutput, RuleSet, Task};

use crate::run::{Report, Restart, Run, mirror_of, sync_once};
use crate::twins::Twins;
use crate::{Injected, World, notation};

/// Who decides in a case, and how it is set up.
pub trait Setup: Clone {
    /// The rule sets, as often as there is a new engine.
    fn rules(&self) -> Vec<Box<dyn RuleSet + Send>>;
}

/// The binder alone.
impl Setup for Config {
    fn rules(&self) -> Vec<Box<dyn RuleSet + Send>> {
        vec![Box::new(Binder::new(self.clone()))]
    }
}

/// Any rule sets.
impl Setup for fn() -> Vec<Box<dyn RuleSet + Send>> {
    fn rules(&self) -> Vec<Box<dyn RuleSet + Send>> {
        self()
    }
}

/// A state, what is looked at, and the state after.
#[derive(Clone)]
pub struct Case<C> {
    /// Upstream's number, and what it is about.
    name: &'static str,
    /// What is looked at in the first way of running it; `None` when only the end counts.
    sync: Option<ObjectKey>,
    before: &'static str,
    after: Option<&'static str>,
    stable: Option<&'static str>,
    places: Option<&'static [&'static str]>,
    events: Option<&'static [&'static str]>,
    unseen: Vec<ObjectKey>,
    meanwhile: Option<fn(&mut World)>,
    then: Vec<fn(&mut World)>,
    script: Vec<(Task, Vec<Result<OperationOutput, Failure>>)>,
    errors: Vec<Injected>,
    history: Option<&'static [&'static str]>,
    late: &'static str,
    is_for_two: bool,
    config: C,
}

impl<C: Setup> Case<C> {
    /// A case, with what is looked at in the first way of running it; `None` when only the end counts.
    pub fn new(name: &'static str, sync: Option<ObjectKey>, config: C) -> Case<C> {
        Case {
            name,
            sync,
            before: "",
            after: None,
            stable: None,
            places: None,
            events: None,
            unseen: Vec::new(),
            meanwhile: None,
            then: Vec::new(),
            script: Vec::new(),
            errors: Vec::new(),
            history: None,
            late: "",
            is_for_two: false,
            config,
        }
    }

    /// The state at the start.
    pub fn before(mut self, lines: &'static str) -> Case<C> {
        self.before = lines;
        self
    }

    /// The state after one look: claims and volumes only, all of them. Unless [`Case::stable`] says otherwise, it is also the
    /// state when nothing happens any more.
    pub fn after(mut self, lines: &'static str) -> Case<C> {
        self.after = Some(lines);
        self
    }

    /// Nothing changes.
    pub fn unchanged(self) -> Case<C> {
        let before = self.before;
        self.after(before)
    }

    /// The state when nothing happens any more, where that is another than after one look.
    pub fn stable(mut self, lines: &'static str) -> Case<C> {
        self.stable = Some(lines);
        self
    }

    /// Where the pods are when nothing happens any more, as [`notation::places`] has it: the beginning of each line.
    pub fn places(mut self, pods: &'static [&'static str]) -> Case<C> {
        self.places = Some(pods);
        self
    }

    /// What one look publishes, each as `Type Reason`, optionally followed by the beginning of its message.
    /// In a case in which only the end counts: what is published in all.
    pub fn events(mut self, events: &'static [&'static str]) -> Case<C> {
        self.events = Some(events);
        self
    }

    /// Objects that exist, and that word has not come of.
    pub fn unseen(mut self, keys: &[ObjectKey]) -> Case<C> {
        self.unseen = keys.to_vec();
        self
    }

    /// What happens in the world just before the look, and what word has not come of.
    pub fn meanwhile(mut self, happens: fn(&mut World)) -> Case<C> {
        self.meanwhile = Some(happens);
        self
    }

    /// What happens in the world once all is quiet. May be called several times.
    pub fn then(mut self, happens: fn(&mut World)) -> Case<C> {
        self.then.push(happens);
        self
    }

    /// How operations of a task go, one after the other; `Err` with the error. Those after the last go well.
    pub fn script(mut self, task: Task, outcomes: &[Result<(), &str>]) -> Case<C> {
        let outcomes =
            outcomes.iter().map(|outcome| outcome.map(|()| OperationOutput::default()).map_err(Failure::new)).collect();
        self.script.push((task, outcomes));
        self
    }

    /// The first operation of a task fails: the storage is still in use. Those after it go well.
    pub fn script_in_use(mut self, task: Task, error: &str) -> Case<C> {
        let failure = Failure::new(error).with(FailureEffect::InUse);
        self.script.push((task, vec![Err(failure)]));
        self
    }

    /// An error that the API server answers with, once.
    pub fn error(mut self, verb: &'static str, kind: Kind, refusal: RequestError) -> Case<C> {
        self.errors.push(Injected { verb, kind, refusal, is_done: false });
        self
    }

    /// The API server does what it is asked, once, and its answer is lost.
    pub fn lost_answer(mut self, verb: &'static str, kind: Kind) -> Case<C> {
        self.errors.push(Injected { verb, kind, refusal: RequestError::Lost, is_done: true });
        self
    }

    /// What is sent, in words: the beginning of each request, in order, where nothing is restarted.
    pub fn history(mut self, requests: &'static [&'static str]) -> Case<C> {
        self.history = Some(requests);
        self
    }

    /// What is there from the start, and what word comes of only when all is quiet.
    pub fn late(mut self, lines: &'static str) -> Case<C> {
        self.late = lines;
        self
    }

    /// Two engines that both lead come to the same end.
    pub fn for_two(mut self) -> Case<C> {
        self.is_for_two = true;
        self
    }

    /// How who decides is set up.
    pub fn config(mut self, change: fn(&mut C)) -> Case<C> {
        change(&mut self.config);
        self
    }

    fn world(&self) -> World {
        let mut world = notation::parse(self.before);
        world.script = self.script.iter().map(|(task, outcomes)| (*task, outcomes.iter().cloned().collect())).collect();
        world.errors = self.errors.iter().cloned().collect();
        world
    }
}

/// Checks a case in all ways: once, until stable, with a restart after every effect, and with two engines where it says so. Returns the rules that applied, or what is wrong.
pub fn check<C: Setup>(case: &Case<C>) -> Result<BTreeSet<&'static str>, String> {
    let mut rules = BTreeSet::new();
    if let Some(key) = &case.sync {
        rules.extend(once(case, key)?.rules);
    }
    let end = case.stable.or(case.after);
    assert!(end.is_some() || case.places.is_some(), "a case says how it ends");
    let (effects, report) = until_stable(case, Restart::Never, end)?;
    if case.sync.is_none() {
        check_events(case, "until stable", &report)?;
    }
    if case.is_for_two {
        rules.extend(with_two(case, end)?.rules);
    }
    rules.extend(report.rules);
    for effect in 1..=effects {
        rules.extend(until_stable(case, Restart::FailureEffect(effect), end)?.1.rules);
    }
    Ok(rules)
}

fn once<C: Setup>(case: &Case<C>, key: &ObjectKey) -> Result<Report, String> {
    let mut world = case.world();
    let mut known = mirror_of(&world, &case.unseen);
    if let Some(happens) = case.meanwhile {
        happens(&mut world);
    }
    notation::add(&mut world, case.late);
    let mut report = Report::default();
    for set in case.config.rules().iter().filter(|set| set.profile().decides().any(|kind| kind == key.kind)) {
        report.take_in(sync_once(&mut world, &mut known, set.as_ref(), key));
    }
    compare(case, "once", &world, case.after.expect("a case says how one look ends"))?;
    check_events(case, "once", &report)?;
    Ok(report)
}

fn until_stable<C: Setup>(case: &Case<C>, restart: Restart, end: Option<&str>) -> Result<(usize, Report), String> {
    let rules = || case.config.rules();
    let mut world = case.world();
    if let Some(happens) = case.meanwhile {
        happens(&mut world);
    }
    let mut run = Run::start(world, &rules, restart);
    if !case.late.is_empty() {
        notation::add(&mut run.world, case.late);
        run.until_idle_without_watch();
    }
    run.until_stable();
    for happens in &case.then {
        happens(&mut run.world);
        run.until_stable();
    }
    let way = format!("until stable, restart {restart:?}");
    compare_end(case, &way, &run.world, end)?;
    if restart == Restart::Never {
        check_history(case, &way, &run.world)?;
    }
    // Promise L6: no more effects, and no more events.
    let (effects, events) = (run.world.effects, run.report.events.len());
    run.until_stable();
    let is_quiet = run.world.effects == effects && run.report.events.len() == events;
    let tail = run.world.history.iter().rev().take(8).collect::<Vec<_>>();
    fail_unless(is_quiet, case, &way, || format!("it does not come to rest: {tail:#?}"))?;
    // A resync that finds something has found a missed wake.
    let finds = run.engine.stats().resync_finds;
    fail_unless(finds == 0, case, &way, || format!("a resync found {finds} things to do: {tail:#?}"))?;
    Ok((effects, run.report))
}

/// Both engines decide about everything, and hear of what the other did.
fn with_two<C: Setup>(case: &Case<C>, end: Option<&str>) -> Result<Report, String> {
    let mut world = case.world();
    if let Some(happens) = case.meanwhile {
        happens(&mut world);
    }
    notation::add(&mut world, case.late);
    let mut twins = Twins::start(world, &|| case.config.rules());
    twins.until_stable();
    for happens in &case.then {
        happens(&mut twins.world);
        twins.until_stable();
    }
    compare_end(case, "two engines", &twins.world, end)?;
    let effects = twins.world.effects;
    twins.until_stable();
    fail_unless(twins.world.effects == effects, case, "two engines", || "they do not come to rest".into())?;
    Ok(twins.report)
}

fn check_history<C: Setup>(case: &Case<C>, way: &str, world: &World) -> Result<(), String> {
    let Some(expected) = case.history else { return Ok(()) };
    let found = &world.history;
    let matches = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
    fail_unless(matches, case, way, || format!("requests found: {found:#?}\nexpected: {expected:#?}"))
}

fn compare<C: Setup>(case: &Case<C>, way: &str, world: &World, expected: &str) -> Result<(), String> {
    let (found, expected) = (notation::render(world), notation::normalize(expected));
    fail_unless(found == expected, case, way, || {
        let history = world.history.join("\n    ");
        format!("found:\n{found}\nexpected:\n{expected}\nhistory:\n    {history}")
    })
}

fn compare_end<C: Setup>(case: &Case<C>, way: &str, world: &World, end: Option<&str>) -> Result<(), String> {
    end.map_or(Ok(()), |end| compare(case, way, world, end))?;
    let Some(expected) = case.places else { return Ok(()) };
    let found = notation::places(world);
    let matches = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
    fail_unless(matches, case, way, || {
        let history = world.history.join("\n    ");
        format!("pods found: {found:#?}\nexpected: {expected:#?}\nhistory:\n    {history}")
    })
}

fn check_events<C: Setup>(case: &Case<C>, way: &str, report: &Report) -> Result<(), String> {
    let Some(expected) = case.events else { return Ok(()) };
    let found: Vec<String> = report
        .events
        .iter()
        .map(|notice| format!("{} {} {}", notice.event_type.as_str(), notice.reason.as_str(), notice.message))
        .collect();
    let matches = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
    fail_unless(matches, case, way, || format!("events found: {found:#?}\nexpected: {expected:#?}"))
}

fn fail_unless<C: Setup>(ok: bool, case: &Case<C>, way: &str, why: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(format!("--- {} ({way})\n{}", case.name, why())) }
}
