//! The participants of a chaos run: engines with their open requests and pending watch events.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bindery_binder::{Binder, Config as BinderConfig};
use bindery_engine::{Answer, Config, Engine, Moment, RequestId};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_provisioner::Provisioner;
use bindery_rules_api::{Event, Request, RuleSet};
use bindery_scheduler::Scheduler;
use bindery_simulation::WatchEvent;

use crate::storage_faults;

/// The rule sets of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Binder and lifecycle controllers.
    Controllers,
    /// The controllers and the scheduler.
    WithScheduler,
    /// The provisioner.
    Provisioner,
    /// The controllers, the scheduler and the provisioner.
    All,
}

impl Role {
    pub fn has_controllers(self) -> bool {
        self != Role::Provisioner
    }

    pub fn has_scheduler(self) -> bool {
        matches!(self, Role::WithScheduler | Role::All)
    }

    pub fn has_provisioner(self) -> bool {
        matches!(self, Role::Provisioner | Role::All)
    }
}

/// How many requests and operations an engine may have in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limits {
    /// More than any run needs.
    None,
    /// Two requests and one operation.
    Low,
    /// One of each.
    One,
}

impl Limits {
    /// The most requests and operations.
    fn counts(self) -> Option<(usize, usize)> {
        match self {
            Limits::None => None,
            Limits::Low => Some((2, 1)),
            Limits::One => Some((1, 1)),
        }
    }
}

/// An engine and its connection to the cluster. All engines act as leader: nothing may depend on
/// there being only one.
pub struct Participant {
    pub role: Role,
    pub limits: Limits,
    /// The number of the engine: every restart gets a new one.
    pub incarnation: usize,
    pub engine: Engine,
    pub open: BTreeMap<RequestId, Request>,
    /// Requests that were carried out, but whose answers were not delivered yet.
    pub late: Vec<(RequestId, Request, Answer)>,
    /// Watch events that were not delivered yet.
    pub pending_events: VecDeque<WatchEvent>,
    pub tick_at: Option<Moment>,
    /// The events published since the engine was started.
    pub published: Vec<Event>,
}

impl Participant {
    pub fn new(role: Role, incarnation: usize, limits: Limits) -> Participant {
        Participant {
            role,
            limits,
            incarnation,
            engine: engine(role, incarnation, limits),
            open: BTreeMap::new(),
            late: Vec::new(),
            pending_events: VecDeque::new(),
            tick_at: None,
            published: Vec::new(),
        }
    }
}

/// No resync occurs before the cluster is stable: every change must wake the keys that it concerns.
pub const RESYNC: Duration = Duration::from_secs(3600);

fn engine(role: Role, incarnation: usize, limits: Limits) -> Engine {
    let mut rules: Vec<Box<dyn RuleSet + Send>> = Vec::new();
    if role.has_scheduler() {
        rules.push(Box::new(Scheduler::default()));
    }
    if role.has_controllers() {
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
    if role.has_provisioner() {
        rules.push(Box::new(Provisioner::new(storage_faults::config(incarnation))));
    }
    let mut config = Config { resync: RESYNC, resync_rarely: RESYNC, ..Config::default() };
    if let Some(counts) = limits.counts() {
        (config.requests_max, config.operations_max) = counts;
    }
    Engine::new(config, rules)
}
