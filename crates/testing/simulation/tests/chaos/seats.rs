//! Engines, and what is under way between them and the world.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bindery_binder::{Binder, Config as BinderConfig};
use bindery_engine::{Answer, Config, Engine, Moment, RequestId};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_provisioner::Provisioner;
use bindery_rules_api::{Event, Request, RuleSet};
use bindery_scheduler::Scheduler;
use bindery_simulation::Told;

use crate::storage;

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cast {
    /// The controllers.
    Controllers,
    /// The controllers, and the scheduler.
    WithScheduler,
    /// A provisioner.
    Provisioner,
    /// All of them.
    All,
}

impl Cast {
    pub fn has_controllers(self) -> bool {
        self != Cast::Provisioner
    }

    pub fn has_scheduler(self) -> bool {
        matches!(self, Cast::WithScheduler | Cast::All)
    }

    pub fn has_provisioner(self) -> bool {
        matches!(self, Cast::Provisioner | Cast::All)
    }
}

/// An engine, and what is under way between it and the world. All engines lead: nothing may depend on there being one.
pub struct Seat {
    pub cast: Cast,
    /// Which of all engines sits there.
    pub life: usize,
    pub engine: Engine,
    pub open: BTreeMap<RequestId, Request>,
    /// Requests that were carried out, and whose answers have not arrived.
    pub late: Vec<(RequestId, Request, Answer)>,
    /// What the watches have yet to tell.
    pub untold: VecDeque<Told>,
    pub tick_at: Option<Moment>,
    /// What was published since the engine was started.
    pub told: Vec<Event>,
}

impl Seat {
    pub fn new(cast: Cast, life: usize) -> Seat {
        Seat {
            cast,
            life,
            engine: engine(cast, life),
            open: BTreeMap::new(),
            late: Vec::new(),
            untold: VecDeque::new(),
            tick_at: None,
            told: Vec::new(),
        }
    }
}

/// No resync comes to the rescue before all has come to rest by itself.
pub const RESYNC: Duration = Duration::from_secs(3600);

fn engine(cast: Cast, life: usize) -> Engine {
    let mut rules: Vec<Box<dyn RuleSet + Send>> = Vec::new();
    if cast.has_scheduler() {
        rules.push(Box::new(Scheduler::default()));
    }
    if cast.has_controllers() {
        let config = BinderConfig { host_path_provisioner: true, ..BinderConfig::default() };
        let controllers: [Box<dyn RuleSet + Send>; 6] = [
            Box::new(Binder::new(config)),
            Box::new(Ephemeral),
            Box::new(ClaimProtection::default()),
            Box::new(VolumeProtection),
            Box::new(AttributesClassProtection),
            Box::new(Expander),
        ];
        rules.extend(controllers);
    }
    if cast.has_provisioner() {
        rules.push(Box::new(Provisioner::new(storage::config(life))));
    }
    Engine::new(Config { resync: RESYNC, resync_rarely: RESYNC, ..Config::default() }, rules)
}
