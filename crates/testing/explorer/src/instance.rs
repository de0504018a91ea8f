//! An instance of a controller: its engine, its requests, and the watch events on their way to it.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use bindery_engine::{Answer, Config, Engine, Input, Moment, Output, RequestId};
use bindery_model::hash::{digest, digest_unordered};
use bindery_model::{Kind, Object};
use bindery_rules_api::{Request, RuleSet};
use serde_json::Value;

use crate::promises;
use crate::server::{Event, Server};

/// Creates the rule sets of an instance. The argument is different for every instance, and after
/// every restart.
pub type Rules = Arc<dyn Fn(usize) -> Vec<Box<dyn RuleSet + Send>> + Send + Sync>;

/// The objects that a call of the storage was started with.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// The class of the claim.
    pub class: Option<Value>,
    /// The volume whose storage is deleted.
    pub volume: Option<Value>,
}

/// How far a request has come.
#[derive(Debug, Clone)]
pub enum Stage {
    /// It was sent.
    Sent,
    /// The storage is running it.
    Started(Arc<Call>),
    /// It was carried out, and the answer is on its way.
    Answered(Arc<Answer>, u64),
}

impl Stage {
    /// The stage of a request that was carried out.
    pub fn answered(answer: Answer) -> Stage {
        let version = |object: &Object| (object.key(), object.meta().version);
        let digest = match &answer {
            Answer::Written(object) => digest((0, version(object))),
            Answer::Deleted(object) => digest((1, object.as_ref().map(version))),
            Answer::Read(object) => digest((2, object.as_ref().map(version))),
            Answer::Listed(objects) => digest((3, objects.iter().map(version).collect::<Vec<_>>())),
            Answer::Done(outcome) => digest((4, format!("{outcome:?}"))),
            Answer::Rejected(error) => digest((5, format!("{error:?}"))),
        };
        Stage::Answered(Arc::new(answer), digest)
    }

    /// Identifies the stage.
    pub fn digest(&self) -> (u8, u64) {
        match self {
            Stage::Sent => (0, 0),
            Stage::Started(call) => (1, digest(format!("{call:?}"))),
            Stage::Answered(_, digest) => (2, *digest),
        }
    }
}

/// A request that was not answered yet.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The request.
    pub request: Arc<Request>,
    /// Identifies the request.
    pub digest: u64,
    /// How far it has come.
    pub stage: Stage,
    /// The number of changes on the API server until then.
    pub since: u64,
}

/// An instance.
#[derive(Clone)]
pub struct Instance {
    /// Its engine.
    pub engine: Engine,
    /// Its requests that were not answered yet.
    pub open: BTreeMap<RequestId, OpenRequest>,
    /// Watch events that were not delivered yet: each kind has a watch of its own, and no watch is
    /// faster or slower than another for certain.
    pub watches: BTreeMap<Kind, VecDeque<Arc<Event>>>,
    now: Moment,
    tick_at: Option<Moment>,
}

/// Later than anything that happens in a world: no resync must be needed.
const NEVER: Duration = Duration::MAX;

impl Instance {
    /// Starts an instance, which lists everything and believes to be the leader.
    pub fn start(rules: &Rules, number: usize, server: &Server) -> Result<Instance, String> {
        let config = Config { resync: NEVER, resync_rarely: NEVER, ..Config::default() };
        let engine = Engine::new(config, rules(number));
        let kinds = engine.watches().to_vec();
        let mut instance = Instance {
            engine,
            open: BTreeMap::new(),
            watches: kinds.iter().map(|kind| (*kind, VecDeque::new())).collect(),
            now: Moment::default(),
            tick_at: None,
        };
        for kind in kinds {
            let (version, objects) = server.list(kind);
            instance.handle(Input::Listed { kind, version, objects }, server.changes)?;
        }
        instance.handle(Input::Leader(true), server.changes)?;
        Ok(instance)
    }

    /// Passes an input to the engine, and records what it sends after a number of changes.
    pub fn handle(&mut self, input: Input, since: u64) -> Result<(), String> {
        for output in self.engine.handle(self.now, input) {
            match output {
                Output::Send(id, request) => {
                    promises::check_sent(self.engine.known(), &request)?;
                    let digest = digest(format!("{request:?}"));
                    self.open.insert(id, OpenRequest { request: Arc::new(request), digest, stage: Stage::Sent, since });
                }
                Output::TickAt(moment) => self.tick_at = Some(moment).filter(|moment| moment.0 < NEVER),
                Output::Publish(_) | Output::Decided(_) | Output::Measured(_) | Output::Rejected(_) => {}
            }
        }
        Ok(())
    }

    /// A watch event, if the instance watches the kind.
    pub fn watch(&mut self, event: &Arc<Event>) {
        if let Some(watch) = self.watches.get_mut(&event.key.kind) {
            watch.push_back(event.clone());
        }
    }

    /// Whether the instance already knows what a watch event reports.
    pub fn knows(&self, event: &Event) -> bool {
        event.object.is_some() && self.engine.known().seen_version(&event.key).is_some_and(|seen| seen >= event.version)
    }

    /// Whether a timer is set.
    pub fn has_timer(&self) -> bool {
        self.tick_at.is_some()
    }

    /// The time of the next timer has come.
    pub fn tick(&mut self, since: u64) -> Result<(), String> {
        self.now = self.tick_at.take().unwrap_or(self.now);
        self.handle(Input::Tick, since)
    }

    /// Identifies the state after a number of changes, independently of request IDs and of the
    /// absolute time.
    pub fn digest(&self, changes: u64) -> u64 {
        let mut state = DefaultHasher::new();
        self.engine.digest(&|id| self.open.get(&id).map_or(0, |open| open.digest)).hash(&mut state);
        let open = self.open.values().map(|open| (open.digest, open.stage.digest(), changes - open.since));
        digest_unordered(open, &mut state);
        for (kind, events) in &self.watches {
            (kind, events.len()).hash(&mut state);
            for event in events {
                (&event.key, event.version, event.object.is_some(), changes - event.change).hash(&mut state);
            }
        }
        (self.tick_at.is_some()).hash(&mut state);
        state.finish()
    }
}
