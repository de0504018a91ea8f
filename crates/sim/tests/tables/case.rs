//! A case of a table, and the one function that checks it.

use std::collections::BTreeSet;

use bindery_binder::{Binder, Config};
use bindery_engine::Refusal;
use bindery_sim::run::{Report, Restart, Run, mirror_of, sync_once};
use bindery_sim::{Injected, World, notation};
use bindery_verdict::{Failure, RuleSet, Task};
use bindery_volumes::{ClaimKey, Kind, ObjectKey};

/// A state, what is looked at, and the state after.
#[derive(Clone)]
pub struct Case {
    /// Upstream's number, and what it is about.
    name: &'static str,
    /// What is looked at in the first way of running it; `None` when only the end counts.
    sync: Option<ObjectKey>,
    before: &'static str,
    after: Option<&'static str>,
    stable: Option<&'static str>,
    events: Option<&'static [&'static str]>,
    unseen: Vec<ObjectKey>,
    meanwhile: Option<fn(&mut World)>,
    then: Vec<fn(&mut World)>,
    script: Vec<(Task, Vec<Result<(), Failure>>)>,
    errors: Vec<Injected>,
    config: Config,
}

/// A case that looks at a claim.
pub fn claim(name: &'static str, claim: &str) -> Case {
    Case::new(name, Some(claim_key(claim)))
}

/// A case that looks at a volume.
pub fn volume(name: &'static str, volume: &str) -> Case {
    Case::new(name, Some(ObjectKey::volume(volume)))
}

/// A case in which only the end counts.
pub fn multi(name: &'static str) -> Case {
    Case::new(name, None)
}

/// The key of a claim in the default namespace.
pub fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

impl Case {
    fn new(name: &'static str, sync: Option<ObjectKey>) -> Case {
        Case {
            name,
            sync,
            before: "",
            after: None,
            stable: None,
            events: None,
            unseen: Vec::new(),
            meanwhile: None,
            then: Vec::new(),
            script: Vec::new(),
            errors: Vec::new(),
            // As upstream's tests: the one in-tree provisioner works.
            config: Config { host_path_provisioner: true, ..Config::default() },
        }
    }

    /// The state at the start.
    pub fn before(mut self, lines: &'static str) -> Case {
        self.before = lines;
        self
    }

    /// The state after one look: claims and volumes only, all of them. Unless [`Case::stable`] says otherwise, it is also the
    /// state when nothing happens any more.
    pub fn after(mut self, lines: &'static str) -> Case {
        self.after = Some(lines);
        self
    }

    /// Nothing changes.
    pub fn unchanged(self) -> Case {
        let before = self.before;
        self.after(before)
    }

    /// The state when nothing happens any more, where that is another than after one look.
    pub fn stable(mut self, lines: &'static str) -> Case {
        self.stable = Some(lines);
        self
    }

    /// What one look publishes, each as `Type Reason`, optionally followed by the beginning of its message.
    /// In a case in which only the end counts: what is published in all.
    pub fn events(mut self, events: &'static [&'static str]) -> Case {
        self.events = Some(events);
        self
    }

    /// Objects that exist, and that word has not come of.
    pub fn unseen(mut self, keys: &[ObjectKey]) -> Case {
        self.unseen = keys.to_vec();
        self
    }

    /// What happens in the world just before the look, and what word has not come of.
    pub fn meanwhile(mut self, happens: fn(&mut World)) -> Case {
        self.meanwhile = Some(happens);
        self
    }

    /// What happens in the world once all is quiet. May be called several times.
    pub fn then(mut self, happens: fn(&mut World)) -> Case {
        self.then.push(happens);
        self
    }

    /// How operations of a task go, one after the other; `Err` with the error. Those after the last go well.
    pub fn script(mut self, task: Task, outcomes: &[Result<(), &str>]) -> Case {
        let outcomes = outcomes.iter().map(|outcome| outcome.map_err(Failure::new)).collect();
        self.script.push((task, outcomes));
        self
    }

    /// The first operation of a task fails: the storage is still in use. Those after it go well.
    pub fn script_in_use(mut self, task: Task, error: &str) -> Case {
        let failure = Failure { in_use: true, ..Failure::new(error) };
        self.script.push((task, vec![Err(failure)]));
        self
    }

    /// An error that the API server answers with, once.
    pub fn error(mut self, verb: &'static str, kind: Kind, refusal: Refusal) -> Case {
        self.errors.push(Injected { verb, kind, refusal, is_done: false });
        self
    }

    /// The API server does what it is asked, once, and its answer is lost.
    pub fn lost_answer(mut self, verb: &'static str, kind: Kind) -> Case {
        self.errors.push(Injected { verb, kind, refusal: Refusal::Lost, is_done: true });
        self
    }

    /// How the binder is set up.
    pub fn config(mut self, change: fn(&mut Config)) -> Case {
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

/// Checks a case in all three ways. Returns the rules that applied, or what is wrong.
pub fn check(case: &Case) -> Result<BTreeSet<&'static str>, String> {
    let mut rules = BTreeSet::new();
    if let Some(key) = &case.sync {
        rules.extend(once(case, key)?.rules);
    }
    let end = case.stable.or(case.after).expect("a case says how it ends");
    let (effects, report) = until_stable(case, Restart::Never, end)?;
    if case.sync.is_none() {
        check_events(case, "until stable", &report)?;
    }
    rules.extend(report.rules);
    for effect in 1..=effects {
        rules.extend(until_stable(case, Restart::After(effect), end)?.1.rules);
    }
    Ok(rules)
}

fn once(case: &Case, key: &ObjectKey) -> Result<Report, String> {
    let mut world = case.world();
    let mut known = mirror_of(&world, &case.unseen);
    if let Some(happens) = case.meanwhile {
        happens(&mut world);
    }
    let report = sync_once(&mut world, &mut known, &Binder::new(case.config.clone()), key);
    compare(case, "once", &world, case.after.expect("a case says how one look ends"))?;
    check_events(case, "once", &report)?;
    Ok(report)
}

fn until_stable(case: &Case, restart: Restart, end: &str) -> Result<(usize, Report), String> {
    let config = case.config.clone();
    let rules = move || -> Vec<Box<dyn RuleSet + Send>> { vec![Box::new(Binder::new(config.clone()))] };
    let mut world = case.world();
    if let Some(happens) = case.meanwhile {
        happens(&mut world);
    }
    let mut run = Run::start(world, &rules, restart);
    run.until_stable();
    for happens in &case.then {
        happens(&mut run.world);
        run.until_stable();
    }
    let way = format!("until stable, restart {restart:?}");
    compare(case, &way, &run.world, end)?;
    // Promise L6: no more effects, and no more events.
    let (effects, notices) = (run.world.effects, run.report.notices.len());
    run.until_stable();
    let is_quiet = run.world.effects == effects && run.report.notices.len() == notices;
    let tail = run.world.history.iter().rev().take(8).collect::<Vec<_>>();
    fail_unless(is_quiet, case, &way, || format!("it does not come to rest: {tail:#?}"))?;
    // A resync that finds something has found a missed wake.
    let finds = run.engine.stats().resync_finds;
    fail_unless(finds == 0, case, &way, || format!("a resync found {finds} things to do: {tail:#?}"))?;
    Ok((effects, run.report))
}

fn compare(case: &Case, way: &str, world: &World, expected: &str) -> Result<(), String> {
    let (found, expected) = (notation::render(world), notation::normalize(expected));
    fail_unless(found == expected, case, way, || {
        let history = world.history.join("\n    ");
        format!("found:\n{found}\nexpected:\n{expected}\nhistory:\n    {history}")
    })
}

fn check_events(case: &Case, way: &str, report: &Report) -> Result<(), String> {
    let Some(expected) = case.events else { return Ok(()) };
    let found: Vec<String> = report
        .notices
        .iter()
        .map(|notice| format!("{} {} {}", notice.event_type.as_str(), notice.reason.as_str(), notice.message))
        .collect();
    let matches = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
    fail_unless(matches, case, way, || format!("events found: {found:#?}\nexpected: {expected:#?}"))
}

fn fail_unless(ok: bool, case: &Case, way: &str, why: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(format!("--- {} ({way})\n{}", case.name, why())) }
}
