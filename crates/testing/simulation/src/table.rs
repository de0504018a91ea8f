//! Table tests: a state, what change, the state after. Each case is checked in several ways.

use std::collections::BTreeSet;

use bindery_binder::{Binder, Config};
use bindery_engine::RequestError;
use bindery_model::{Kind, ObjectKey};
use bindery_rules_api::{Failure, FailureEffect, OperationOutput, RuleSet, Task};

use crate::run::{Report, Restart, Run, cache_of, sync_once};
use crate::two_leaders::TwoLeaders;
use crate::{InjectedError, SimulatedCluster, notation};

/// The rule sets of a case.
pub trait Setup: Clone {
    /// The rule sets for a new engine.
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

/// A test case: a state, the object to sync, and the state after.
#[derive(Clone)]
pub struct Case<C> {
    /// Upstream's number, and a description.
    name: &'static str,
    /// The key of the single sync; `None` when only the final state is checked.
    sync: Option<ObjectKey>,
    before: &'static str,
    after: Option<&'static str>,
    stable: Option<&'static str>,
    pods: Option<&'static [&'static str]>,
    events: Option<&'static [&'static str]>,
    unseen: Vec<ObjectKey>,
    unseen_change: Option<fn(&mut SimulatedCluster)>,
    then: Vec<fn(&mut SimulatedCluster)>,
    script: Vec<(Task, Vec<Result<OperationOutput, Failure>>)>,
    errors: Vec<InjectedError>,
    requests: Option<&'static [&'static str]>,
    late: &'static str,
    has_two_leaders: bool,
    config: C,
}

impl<C: Setup> Case<C> {
    /// A case, with the key of the single sync; `None` when only the final state is checked.
    pub fn new(name: &'static str, sync: Option<ObjectKey>, config: C) -> Case<C> {
        Case {
            name,
            sync,
            before: "",
            after: None,
            stable: None,
            pods: None,
            events: None,
            unseen: Vec::new(),
            unseen_change: None,
            then: Vec::new(),
            script: Vec::new(),
            errors: Vec::new(),
            requests: None,
            late: "",
            has_two_leaders: false,
            config,
        }
    }

    /// The initial state.
    pub fn before(mut self, lines: &'static str) -> Case<C> {
        self.before = lines;
        self
    }

    /// All claims and volumes after one sync. Unless [`Case::stable`] is set, it is also the final
    /// state.
    pub fn after(mut self, lines: &'static str) -> Case<C> {
        self.after = Some(lines);
        self
    }

    /// The state after one sync, and the final state, are the initial state.
    pub fn unchanged(self) -> Case<C> {
        let before = self.before;
        self.after(before)
    }

    /// The final state, if it is not the state after one sync.
    pub fn stable(mut self, lines: &'static str) -> Case<C> {
        self.stable = Some(lines);
        self
    }

    /// The nodes of the pods in the final state: the beginning of each line of
    /// [`notation::pod_nodes`].
    pub fn pods(mut self, pods: &'static [&'static str]) -> Case<C> {
        self.pods = Some(pods);
        self
    }

    /// The events of one sync, or of the whole run if only the final state is checked. Each is
    /// `Type Reason`, optionally followed by the beginning of its message.
    pub fn events(mut self, events: &'static [&'static str]) -> Case<C> {
        self.events = Some(events);
        self
    }

    /// Objects that no watch event has delivered yet.
    pub fn unseen(mut self, keys: &[ObjectKey]) -> Case<C> {
        self.unseen = keys.to_vec();
        self
    }

    /// A change just before the sync that no watch event has delivered yet.
    pub fn unseen_change(mut self, change: fn(&mut SimulatedCluster)) -> Case<C> {
        self.unseen_change = Some(change);
        self
    }

    /// A change once the cluster is stable. May be called several times.
    pub fn then(mut self, change: fn(&mut SimulatedCluster)) -> Case<C> {
        self.then.push(change);
        self
    }

    /// The outcomes of the operations of a task, in order. Further operations succeed.
    pub fn script(mut self, task: Task, outcomes: &[Result<(), &str>]) -> Case<C> {
        let outcomes =
            outcomes.iter().map(|outcome| outcome.map(|()| OperationOutput::default()).map_err(Failure::new)).collect();
        self.script.push((task, outcomes));
        self
    }

    /// The first operation of a task fails because the storage is in use. Further operations
    /// succeed.
    pub fn script_in_use(mut self, task: Task, error: &str) -> Case<C> {
        let failure = Failure::new(error).with(FailureEffect::InUse);
        self.script.push((task, vec![Err(failure)]));
        self
    }

    /// An error that the API server returns once.
    pub fn error(mut self, verb: &'static str, kind: Kind, error: RequestError) -> Case<C> {
        self.errors.push(InjectedError { verb, kind, error, is_applied: false });
        self
    }

    /// The answer to one request is lost, although it was carried out.
    pub fn lost_answer(mut self, verb: &'static str, kind: Kind) -> Case<C> {
        self.errors.push(InjectedError { verb, kind, error: RequestError::Lost, is_applied: true });
        self
    }

    /// The requests of a run without restarts: the beginning of each, in order.
    pub fn requests(mut self, requests: &'static [&'static str]) -> Case<C> {
        self.requests = Some(requests);
        self
    }

    /// Objects that exist from the start, but are watched only once the engine is idle.
    pub fn late(mut self, lines: &'static str) -> Case<C> {
        self.late = lines;
        self
    }

    /// The case is also checked with two engines that both act as leader.
    pub fn with_two_leaders(mut self) -> Case<C> {
        self.has_two_leaders = true;
        self
    }

    /// Changes the configuration of the rule sets.
    pub fn config(mut self, change: fn(&mut C)) -> Case<C> {
        change(&mut self.config);
        self
    }

    fn cluster(&self) -> SimulatedCluster {
        let mut cluster = notation::parse(self.before);
        cluster.script =
            self.script.iter().map(|(task, outcomes)| (*task, outcomes.iter().cloned().collect())).collect();
        cluster.errors = self.errors.iter().cloned().collect();
        cluster
    }
}

/// Checks a case with one sync, until stable, with a restart after every effect, and on request
/// with two leaders. Returns the rules that applied, or the difference.
pub fn check<C: Setup>(case: &Case<C>) -> Result<BTreeSet<&'static str>, String> {
    let mut rules = BTreeSet::new();
    if let Some(key) = &case.sync {
        rules.extend(once(case, key)?.rules);
    }
    let end = case.stable.or(case.after);
    assert!(end.is_some() || case.pods.is_some(), "a case has a final state");
    let (effects, report) = until_stable(case, Restart::Never, end)?;
    if case.sync.is_none() {
        check_events(case, "until stable", &report)?;
    }
    if case.has_two_leaders {
        rules.extend(check_two_leaders(case, end)?.rules);
    }
    rules.extend(report.rules);
    for effect in 1..=effects {
        rules.extend(until_stable(case, Restart::AfterEffect(effect), end)?.1.rules);
    }
    Ok(rules)
}

fn once<C: Setup>(case: &Case<C>, key: &ObjectKey) -> Result<Report, String> {
    let mut cluster = case.cluster();
    let mut known = cache_of(&cluster, &case.unseen);
    if let Some(change) = case.unseen_change {
        change(&mut cluster);
    }
    notation::add(&mut cluster, case.late);
    let mut report = Report::default();
    for set in case.config.rules().iter().filter(|set| set.profile().decides().any(|kind| kind == key.kind)) {
        report.merge(sync_once(&mut cluster, &mut known, set.as_ref(), key));
    }
    compare(case, "once", &cluster, case.after.expect("a case has a state after one sync"))?;
    check_events(case, "once", &report)?;
    Ok(report)
}

fn until_stable<C: Setup>(case: &Case<C>, restart: Restart, end: Option<&str>) -> Result<(usize, Report), String> {
    let rules = || case.config.rules();
    let mut cluster = case.cluster();
    if let Some(change) = case.unseen_change {
        change(&mut cluster);
    }
    let mut run = Run::start(cluster, &rules, restart);
    if !case.late.is_empty() {
        notation::add(&mut run.cluster, case.late);
        run.until_idle_without_watch();
    }
    run.until_stable();
    for change in &case.then {
        change(&mut run.cluster);
        run.until_stable();
    }
    let way = format!("until stable, restart {restart:?}");
    compare_end(case, &way, &run.cluster, end)?;
    if restart == Restart::Never {
        check_requests(case, &way, &run.cluster)?;
    }
    // Promise L6: a stable cluster causes no further writes and no events.
    let (effects, events) = (run.cluster.effects, run.report.events.len());
    run.until_stable();
    let is_stable = run.cluster.effects == effects && run.report.events.len() == events;
    let tail = run.cluster.history.iter().rev().take(8).collect::<Vec<_>>();
    fail_unless(is_stable, case, &way, || format!("it does not become stable: {tail:#?}"))?;
    // A resync that finds work has found a missed wake.
    let finds = run.engine.stats().resync_finds;
    fail_unless(finds == 0, case, &way, || format!("a resync found {finds} missed changes: {tail:#?}"))?;
    Ok((effects, run.report))
}

/// Both engines decide about everything and receive the watch events of both.
fn check_two_leaders<C: Setup>(case: &Case<C>, end: Option<&str>) -> Result<Report, String> {
    let mut cluster = case.cluster();
    if let Some(change) = case.unseen_change {
        change(&mut cluster);
    }
    notation::add(&mut cluster, case.late);
    let mut two_leaders = TwoLeaders::start(cluster, &|| case.config.rules());
    two_leaders.until_stable();
    for change in &case.then {
        change(&mut two_leaders.cluster);
        two_leaders.until_stable();
    }
    compare_end(case, "two engines", &two_leaders.cluster, end)?;
    let effects = two_leaders.cluster.effects;
    two_leaders.until_stable();
    fail_unless(two_leaders.cluster.effects == effects, case, "two engines", || "they do not become stable".into())?;
    Ok(two_leaders.report)
}

fn check_requests<C: Setup>(case: &Case<C>, way: &str, cluster: &SimulatedCluster) -> Result<(), String> {
    let Some(expected) = case.requests else { return Ok(()) };
    let found = &cluster.history;
    let matches = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
    fail_unless(matches, case, way, || format!("requests found: {found:#?}\nexpected: {expected:#?}"))
}

fn compare<C: Setup>(case: &Case<C>, way: &str, cluster: &SimulatedCluster, expected: &str) -> Result<(), String> {
    let (found, expected) = (notation::render(cluster), notation::normalize(expected));
    fail_unless(found == expected, case, way, || {
        let history = cluster.history.join("\n    ");
        format!("found:\n{found}\nexpected:\n{expected}\nhistory:\n    {history}")
    })
}

fn compare_end<C: Setup>(
    case: &Case<C>,
    way: &str,
    cluster: &SimulatedCluster,
    end: Option<&str>,
) -> Result<(), String> {
    end.map_or(Ok(()), |end| compare(case, way, cluster, end))?;
    let Some(expected) = case.pods else { return Ok(()) };
    let found = notation::pod_nodes(cluster);
    let matches = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
    fail_unless(matches, case, way, || {
        let history = cluster.history.join("\n    ");
        format!("pods found: {found:#?}\nexpected: {expected:#?}\nhistory:\n    {history}")
    })
}

fn check_events<C: Setup>(case: &Case<C>, way: &str, report: &Report) -> Result<(), String> {
    let Some(expected) = case.events else { return Ok(()) };
    let found: Vec<String> = report
        .events
        .iter()
        .map(|event| format!("{} {} {}", event.event_type.as_str(), event.reason.as_str(), event.message))
        .collect();
    let matches = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
    fail_unless(matches, case, way, || format!("events found: {found:#?}\nexpected: {expected:#?}"))
}

fn fail_unless<C: Setup>(ok: bool, case: &Case<C>, way: &str, why: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(format!("--- {} ({way})\n{}", case.name, why())) }
}
