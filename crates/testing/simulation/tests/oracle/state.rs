//! Replays a recorded state in a cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use bindery_binder::Binder;
use bindery_engine::Config;
use bindery_rules_api::{Event as Published, RuleSet};
use bindery_simulation::oracle::memory::{act, begin};
use bindery_simulation::oracle::{self, Event, Recorded};
use bindery_simulation::run::{Restart, Run, lifecycle_controllers};
use bindery_simulation::user_api::UserApi;
use serde_json::Value;

/// The time between actions: several resyncs, if enabled, and many retries.
const SETTLE: Duration = Duration::from_secs(40);

/// The time at the end: a change after ten minutes would be a defect.
const SETTLE_LAST: Duration = Duration::from_secs(600);

/// Longer than any run.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// How a state is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By one engine without resyncs: every change must wake the keys that it concerns.
    Straight,
    /// The same, but the engine is replaced after this many effects, before the last answer
    /// arrives.
    RestartAfter(usize),
    /// By a new engine before and after every action, with resyncs.
    NewEngineEachTime,
}

/// The result of replaying a state.
pub struct End<W> {
    /// The cluster.
    pub cluster: W,
    /// The final state in the form of the recording.
    pub objects: Value,
    /// The published events.
    pub events: Vec<Published>,
}

/// Replays a state.
pub fn carry_out<W: UserApi>(recorded: &Recorded, way: Way) -> End<W> {
    let (cluster, mut ledger) = begin::<W>(recorded);
    let rules = || -> Vec<Box<dyn RuleSet + Send>> {
        let binder: Box<dyn RuleSet + Send> = Box::new(Binder::default());
        std::iter::once(binder).chain(lifecycle_controllers()).collect()
    };
    let restart = if let Way::RestartAfter(effects) = way { Restart::AfterEffect(effects) } else { Restart::Never };
    let mut config = Config::default();
    if way != Way::NewEngineEachTime {
        (config.resync, config.resync_rarely) = (NEVER, NEVER);
    }
    let mut run = Run::start_with(config, cluster, &rules, restart);
    run.run_for(SETTLE);
    for action in recorded.actions() {
        if way == Way::NewEngineEachTime {
            run.replace_engine();
            run.run_for(SETTLE);
        }
        act(recorded, &action, &mut run.cluster, &mut ledger);
        if way == Way::NewEngineEachTime {
            run.replace_engine();
        }
        run.run_for(SETTLE);
    }
    run.run_for(SETTLE_LAST);
    let left = run.cluster.objects();
    let objects = recorded.end(left.iter().map(|(key, object)| (key, object)), &ledger);
    End { cluster: run.cluster, objects, events: run.report.events }
}

impl<W: UserApi> End<W> {
    /// The published events in the form of the recording.
    pub fn events(&self) -> BTreeSet<Event> {
        let event = |published: &Published| {
            let about = &published.about;
            let kind = about.kind.as_str();
            oracle::event([
                kind,
                &about.name,
                published.event_type.as_str(),
                published.reason.as_str(),
                &published.message,
            ])
        };
        self.events.iter().filter_map(event).collect()
    }
}
