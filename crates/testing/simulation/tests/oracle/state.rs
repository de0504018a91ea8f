//! A recorded state, carried out in a world.

use std::collections::BTreeSet;
use std::time::Duration;

use bindery_binder::Binder;
use bindery_engine::Config;
use bindery_rules_api::{Event as Published, RuleSet};
use bindery_simulation::cluster::Cluster;
use bindery_simulation::oracle::memory::{act, begin};
use bindery_simulation::oracle::{self, Event, Recorded};
use bindery_simulation::run::{Restart, Run, companions};
use serde_json::Value;

/// How long everything is left to itself after each action: some resyncs, where there are any, and many retries.
const SETTLE: Duration = Duration::from_secs(40);

/// How long at the end: whatever would still change after ten minutes is a defect.
const SETTLE_LAST: Duration = Duration::from_secs(600);

/// So long that it never comes.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// How a state is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By one engine that never looks at everything again: what concerns it must wake it.
    Straight,
    /// The same, by an engine that is replaced after so many effects, before word of the last one comes back.
    RestartAfter(usize),
    /// By a new engine before and after every action, each of which looks at everything again and again.
    NewEngineEachTime,
}

/// What a state was brought to.
pub struct End<W> {
    /// The cluster.
    pub world: W,
    /// What is left in it, in the form of the recording.
    pub objects: Value,
    /// What was published.
    pub events: Vec<Published>,
}

/// Carries out a state.
pub fn carry_out<W: Cluster>(recorded: &Recorded, way: Way) -> End<W> {
    let (world, mut ledger) = begin::<W>(recorded);
    let rules = || -> Vec<Box<dyn RuleSet + Send>> {
        let binder: Box<dyn RuleSet + Send> = Box::new(Binder::default());
        std::iter::once(binder).chain(companions()).collect()
    };
    let restart = if let Way::RestartAfter(effects) = way { Restart::FailureEffect(effects) } else { Restart::Never };
    let mut config = Config::default();
    if way != Way::NewEngineEachTime {
        (config.resync, config.resync_rarely) = (NEVER, NEVER);
    }
    let mut run = Run::start_with(config, world, &rules, restart);
    run.settle(SETTLE);
    for action in recorded.actions() {
        if way == Way::NewEngineEachTime {
            run.replace_engine();
            run.settle(SETTLE);
        }
        act(recorded, &action, &mut run.world, &mut ledger);
        if way == Way::NewEngineEachTime {
            run.replace_engine();
        }
        run.settle(SETTLE);
    }
    run.settle(SETTLE_LAST);
    let left = run.world.objects();
    let objects = recorded.end(left.iter().map(|(key, object)| (key, object)), &ledger);
    End { world: run.world, objects, events: run.report.events }
}

impl<W: Cluster> End<W> {
    /// The events that were published.
    pub fn events(&self) -> BTreeSet<Event> {
        let event = |notice: &Published| {
            let about = &notice.about;
            let kind = about.kind.as_str();
            oracle::event([kind, &about.name, notice.event_type.as_str(), notice.reason.as_str(), &notice.message])
        };
        self.events.iter().filter_map(event).collect()
    }
}
