//! Table cases of the provisioner.

use std::collections::BTreeSet;

use bindery_binder::Binder;
use bindery_model::{Kind, ObjectKey};
use bindery_provisioner::{Config, Provisioner};
use bindery_rules_api::RuleSet;
use bindery_simulation::run::{Report, Restart, Run};
use bindery_simulation::storage::StorageBackend;
use bindery_simulation::two_leaders::TwoLeaders;
use bindery_simulation::{SimulatedCluster, notation};

/// A state, the responses of the storage backend, changes, and the final state.
pub struct Case {
    name: &'static str,
    before: &'static str,
    end: &'static str,
    config: fn(&mut Config),
    storage: fn(&mut StorageBackend),
    then: Vec<fn(&mut SimulatedCluster)>,
    events: Option<&'static [&'static str]>,
    errors: Vec<bindery_simulation::InjectedError>,
    has_binder: bool,
    retries_forever: bool,
    has_one_leader: bool,
    leaves_record: bool,
}

/// The default configuration of the provisioner.
pub fn config() -> Config {
    Config { supports_block: true, ..Config::new("csi.example.com") }
}

/// A case with a provisioner only.
pub fn case(name: &'static str) -> Case {
    Case {
        name,
        before: "",
        end: "",
        config: |_| {},
        storage: |_| {},
        then: Vec::new(),
        events: None,
        errors: Vec::new(),
        has_binder: false,
        retries_forever: false,
        has_one_leader: false,
        leaves_record: false,
    }
}

impl Case {
    /// The initial state.
    pub fn before(mut self, lines: &'static str) -> Case {
        self.before = lines;
        self
    }

    /// All claims and volumes of the final state.
    pub fn end(mut self, lines: &'static str) -> Case {
        self.end = lines;
        self
    }

    /// The final state is the initial state.
    pub fn unchanged(self) -> Case {
        let before = self.before;
        self.end(before)
    }

    /// Changes the configuration of the provisioner.
    pub fn config(mut self, change: fn(&mut Config)) -> Case {
        self.config = change;
        self
    }

    /// Sets up the storage backend and its responses.
    pub fn storage(mut self, change: fn(&mut StorageBackend)) -> Case {
        self.storage = change;
        self
    }

    /// Changes once the cluster is stable. May be called several times.
    pub fn then(mut self, change: fn(&mut SimulatedCluster)) -> Case {
        self.then.push(change);
        self
    }

    /// An error that the API server returns once.
    pub fn error(mut self, error: bindery_simulation::InjectedError) -> Case {
        self.errors.push(error);
        self
    }

    /// All events of a run without restarts: `Type Reason` and the beginning of the message.
    pub fn events(mut self, events: &'static [&'static str]) -> Case {
        self.events = Some(events);
        self
    }

    /// The binder runs as well.
    pub fn with_binder(mut self) -> Case {
        self.has_binder = true;
        self
    }

    /// The operation is retried forever: the cluster does not become stable.
    pub fn retries_forever(mut self) -> Case {
        self.retries_forever = true;
        self
    }

    /// The case is not run with two leaders, because the storage backend answers them differently.
    pub fn with_one_leader(mut self) -> Case {
        self.has_one_leader = true;
        self
    }

    /// A record is left at the end.
    pub fn leaves_record(mut self) -> Case {
        self.leaves_record = true;
        self
    }

    fn cluster(&self) -> SimulatedCluster {
        let mut cluster = notation::parse(self.before);
        let mut storage = StorageBackend::default();
        for (key, volume) in cluster.objects().filter(|(key, _)| key.kind == Kind::Volume) {
            if let Some(handle) = volume["spec"]["csi"]["volumeHandle"].as_str() {
                storage.handles.insert(key.name.to_string(), handle.to_owned());
            }
        }
        (self.storage)(&mut storage);
        cluster.storage = Some(storage);
        cluster.errors = self.errors.iter().cloned().collect();
        cluster
    }

    fn rules(&self) -> Vec<Box<dyn RuleSet + Send>> {
        let mut config = config();
        (self.config)(&mut config);
        let mut sets: Vec<Box<dyn RuleSet + Send>> = vec![Box::new(Provisioner::new(config))];
        if self.has_binder {
            sets.push(Box::new(Binder::new(bindery_binder::Config::default())));
        }
        sets
    }
}

/// Checks a case until stable, with restarts, and with two leaders. Returns the rules that applied.
pub fn check(case: &Case) -> Result<BTreeSet<&'static str>, String> {
    let (effects, report) = run_one(case, Restart::Never)?;
    if let Some(expected) = case.events {
        let text = |event: &bindery_rules_api::Event| {
            format!("{} {} {}", event.event_type.as_str(), event.reason.as_str(), event.message)
        };
        let found: Vec<String> = report.events.iter().map(text).collect();
        let matches = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
        fail_unless(matches, case, "events", || format!("found: {found:#?}\nexpected: {expected:#?}"))?;
    }
    let mut rules = report.rules;
    for effect in 1..=effects.min(40) {
        rules.extend(run_one(case, Restart::AfterEffect(effect))?.1.rules);
    }
    if !case.has_one_leader {
        let mut two_leaders = TwoLeaders::start(case.cluster(), &|| case.rules());
        two_leaders.until_stable();
        for change in &case.then {
            change(&mut two_leaders.cluster);
            two_leaders.until_stable();
        }
        compare(case, "two engines", &two_leaders.cluster)?;
        rules.extend(two_leaders.report.rules);
    }
    Ok(rules)
}

fn run_one(case: &Case, restart: Restart) -> Result<(usize, Report), String> {
    let rules = || case.rules();
    let mut run = Run::start(case.cluster(), &rules, restart);
    run.until_stable();
    for change in &case.then {
        change(&mut run.cluster);
        run.until_stable();
    }
    let way = format!("restart {restart:?}");
    compare(case, &way, &run.cluster)?;
    let effects = run.cluster.effects;
    if !case.retries_forever {
        run.until_stable();
        fail_unless(run.cluster.effects == effects, case, &way, || {
            format!("it does not become stable: {:#?}", run.cluster.history)
        })?;
    }
    Ok((effects, run.report))
}

fn compare(case: &Case, way: &str, cluster: &SimulatedCluster) -> Result<(), String> {
    let history = || cluster.history.join("\n    ");
    let (found, expected) = (notation::render(cluster), notation::normalize(case.end));
    fail_unless(found == expected, case, way, || {
        format!("found:\n{found}\nexpected:\n{expected}\nhistory:\n    {}", history())
    })?;
    let conflicting_names = cluster.storage.iter().flat_map(|storage| &storage.conflicting_names).collect::<Vec<_>>();
    fail_unless(conflicting_names.is_empty(), case, way, || {
        format!("requested with other parameters: {conflicting_names:?}\nhistory:\n    {}", history())
    })?;
    let records = cluster.objects().filter(|(key, _)| key.kind == Kind::Record);
    let records: Vec<&ObjectKey> = records.map(|(key, _)| key).collect();
    fail_unless(records.is_empty() || case.leaves_record, case, way, || {
        format!("records are left: {records:?}\nhistory:\n    {}", history())
    })?;
    let leaked = leaked(cluster);
    fail_unless(leaked.is_empty(), case, way, || format!("leaked: {leaked:?}\nhistory:\n    {}", history()))
}

/// Storage that neither a volume nor a record refers to.
fn leaked(cluster: &SimulatedCluster) -> Vec<String> {
    let handles: BTreeSet<&str> =
        cluster.objects().filter_map(|(_, object)| object["spec"]["csi"]["volumeHandle"].as_str()).collect();
    let is_recorded = |name: &str| cluster.get(&ObjectKey::record(name.trim_start_matches("pvc-"))).is_some();
    let stored = cluster.storage.iter().flat_map(|storage| &storage.handles);
    let lost = stored.filter(|(name, handle)| !handles.contains(handle.as_str()) && !is_recorded(name));
    lost.map(|(_, handle)| handle.clone()).collect()
}

fn fail_unless(ok: bool, case: &Case, way: &str, why: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(format!("--- {} ({way})\n{}", case.name, why())) }
}
