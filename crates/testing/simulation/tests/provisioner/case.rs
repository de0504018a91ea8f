//! A case of the provisioner's tables.

use std::collections::BTreeSet;

use bindery_binder::Binder;
use bindery_model::{Claim, Kind, Object, finalizer};
use bindery_provisioner::{Config, Provisioner};
use bindery_rules_api::RuleSet;
use bindery_simulation::run::{Report, Restart, Run};
use bindery_simulation::storage::StorageBackend;
use bindery_simulation::two_leaders::TwoLeaders;
use bindery_simulation::{SimulatedCluster, notation};

/// A state, what the storage response, what happens, and the state in the end.
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
    goes_on: bool,
    is_for_one: bool,
}

/// How the provisioner of most cases is set up.
pub fn config() -> Config {
    Config { makes_blocks: true, ..Config::new("csi.example.com") }
}

/// A case of a provisioner alone.
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
        goes_on: false,
        is_for_one: false,
    }
}

impl Case {
    /// The state at the start.
    pub fn before(mut self, lines: &'static str) -> Case {
        self.before = lines;
        self
    }

    /// The state in the end: claims and volumes, all of them.
    pub fn end(mut self, lines: &'static str) -> Case {
        self.end = lines;
        self
    }

    /// Nothing changes.
    pub fn unchanged(self) -> Case {
        let before = self.before;
        self.end(before)
    }

    /// How the provisioner is set up.
    pub fn config(mut self, change: fn(&mut Config)) -> Case {
        self.config = change;
        self
    }

    /// What the storage holds, and says.
    pub fn storage(mut self, change: fn(&mut StorageBackend)) -> Case {
        self.storage = change;
        self
    }

    /// What happens once all is quiet. May be called several times.
    pub fn then(mut self, happens: fn(&mut SimulatedCluster)) -> Case {
        self.then.push(happens);
        self
    }

    /// What the API server answers, once, instead of doing what it is asked, or after doing it.
    pub fn error(mut self, error: bindery_simulation::InjectedError) -> Case {
        self.errors.push(error);
        self
    }

    /// What is published in all, where nothing is restarted: `Type Reason`, and the beginning of the message.
    pub fn events(mut self, events: &'static [&'static str]) -> Case {
        self.events = Some(events);
        self
    }

    /// The binder works beside it.
    pub fn with_binder(mut self) -> Case {
        self.has_binder = true;
        self
    }

    /// It is tried for ever: there is no rest in the end.
    pub fn goes_on(mut self) -> Case {
        self.goes_on = true;
        self
    }

    /// It is not for two engines: what each of them hears from the storage differs.
    pub fn for_one(mut self) -> Case {
        self.is_for_one = true;
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

/// Checks a case in all ways. Returns the rules that applied, or what is wrong.
pub fn check(case: &Case) -> Result<BTreeSet<&'static str>, String> {
    let (effects, report) = alone(case, Restart::Never)?;
    if let Some(expected) = case.events {
        let text = |notice: &bindery_rules_api::Event| {
            format!("{} {} {}", notice.event_type.as_str(), notice.reason.as_str(), notice.message)
        };
        let found: Vec<String> = report.events.iter().map(text).collect();
        let matches = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
        fail_unless(matches, case, "events", || format!("found: {found:#?}\nexpected: {expected:#?}"))?;
    }
    let mut rules = report.rules;
    for effect in 1..=effects.min(40) {
        rules.extend(alone(case, Restart::AfterEffect(effect))?.1.rules);
    }
    if !case.is_for_one {
        let mut two_leaders = TwoLeaders::start(case.cluster(), &|| case.rules());
        two_leaders.until_stable();
        for happens in &case.then {
            happens(&mut two_leaders.cluster);
            two_leaders.until_stable();
        }
        compare(case, "two engines", &two_leaders.cluster)?;
        rules.extend(two_leaders.report.rules);
    }
    Ok(rules)
}

fn alone(case: &Case, restart: Restart) -> Result<(usize, Report), String> {
    let rules = || case.rules();
    let mut run = Run::start(case.cluster(), &rules, restart);
    run.until_stable();
    for happens in &case.then {
        happens(&mut run.cluster);
        run.until_stable();
    }
    let way = format!("restart {restart:?}");
    compare(case, &way, &run.cluster)?;
    let effects = run.cluster.effects;
    if !case.goes_on {
        run.until_stable();
        fail_unless(run.cluster.effects == effects, case, &way, || {
            format!("it does not come to rest: {:#?}", run.cluster.history)
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
        format!("asked for something else: {conflicting_names:?}\nhistory:\n    {}", history())
    })?;
    let forgotten = forgotten(cluster);
    fail_unless(forgotten.is_empty(), case, way, || format!("forgotten: {forgotten:?}\nhistory:\n    {}", history()))
}

/// What the storage holds, and what no volume shows, nor any claim that is watched over.
fn forgotten(cluster: &SimulatedCluster) -> Vec<String> {
    let handles: BTreeSet<&str> =
        cluster.objects().filter_map(|(_, object)| object["spec"]["csi"]["volumeHandle"].as_str()).collect();
    let (_, claims) = cluster.list(Kind::Claim);
    let is_open = |name: &str| {
        let is_held = |claim: &Claim| claim.finalizers.iter().any(|name| name == finalizer::PROVISIONING);
        let claims =
            claims.iter().filter_map(|object| if let Object::Claim(claim) = object { Some(claim) } else { None });
        claims.into_iter().any(|claim| name.ends_with(claim.meta.uid.as_str()) && is_held(claim))
    };
    let holds = cluster.storage.iter().flat_map(|storage| &storage.handles);
    let lost = holds.filter(|(name, handle)| !handles.contains(handle.as_str()) && !is_open(name));
    lost.map(|(_, handle)| handle.clone()).collect()
}

fn fail_unless(ok: bool, case: &Case, way: &str, why: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(format!("--- {} ({way})\n{}", case.name, why())) }
}
