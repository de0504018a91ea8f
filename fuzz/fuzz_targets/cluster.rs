//! An engine in a world, with answers and word of changes in an order that the input chooses.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bindery_binder::{Binder, Config as BinderConfig};
use bindery_engine::{Answer, Config, Engine, Input, Moment, Output, RequestError, RequestId};
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::{Request, RuleSet};
use bindery_simulation::World;
use bindery_simulation::run::companions;
use serde_json::Value;

/// How long the input chooses what happens next.
const CHOSEN_STEPS: usize = 150;
/// How many steps it may take to come to rest then. A dozen objects need some hundred.
const REST_STEPS: usize = 5_000;

pub struct Cluster {
    world: World,
    engine: Engine,
    open: BTreeMap<RequestId, Request>,
    later: VecDeque<(Kind, Value)>,
    now: Moment,
}

impl Cluster {
    /// Runs an engine among these objects, until it is at rest.
    pub fn run(documents: Vec<(Kind, Value, bool)>, choices: &[u8]) {
        // Dynamic provisioning on this host is on, so that its rules are reached too.
        let config = BinderConfig { host_path_provisioner: true, ..BinderConfig::default() };
        let binder: Box<dyn RuleSet + Send> = Box::new(Binder::new(config));
        let engine = Engine::new(Config::default(), std::iter::once(binder).chain(companions()).collect());
        let mut cluster = Cluster {
            world: World::default(),
            engine,
            open: BTreeMap::new(),
            later: VecDeque::new(),
            now: Moment::default(),
        };
        for (kind, json, is_later) in documents {
            if is_later {
                cluster.later.push_back((kind, json));
            } else {
                cluster.put(kind, json);
            }
        }
        cluster.start();
        for step in 0..CHOSEN_STEPS {
            let choice = choices.get(step * 7 % choices.len().max(1));
            cluster.step(choice.copied().unwrap_or_default());
        }
        cluster.rest();
    }

    /// Creates, changes or deletes an object, as its document says.
    fn put(&mut self, kind: Kind, mut json: Value) {
        let Ok(object) = Object::from_json(kind, json.to_string().as_bytes()) else { return };
        let key = object.key();
        if self.world.get(&key).is_some() && !json["metadata"]["deletionTimestamp"].is_null() {
            self.world.delete(&key);
        } else {
            // An API server gives every object a UID of its own: upon that all promises rest.
            let uid = json["metadata"]["uid"].as_str().unwrap_or_default();
            let is_taken = |(other, object): (&ObjectKey, &Value)| *other != key && object["metadata"]["uid"] == uid;
            if uid.is_empty() || self.world.objects().any(is_taken) {
                json["metadata"]["uid"] = key.to_string().into();
            }
            self.world.put(kind, json);
        }
    }

    fn start(&mut self) {
        self.world.untold.clear();
        for kind in Kind::ALL {
            let (version, objects) = self.world.list(kind);
            self.tell(Input::Listed { kind, version, objects });
        }
        self.tell(Input::Leader(true));
    }

    fn tell(&mut self, input: Input) {
        for output in self.engine.handle(self.now, input) {
            if let Output::Send(id, request) = output {
                let changed = |request: &Request| request.holds_target().then(|| request.target());
                if let Some(target) = changed(&request) {
                    let is_free = !self.open.values().filter_map(changed).any(|other| other == target);
                    assert!(is_free, "two requests change {target} at once");
                }
                self.open.insert(id, request);
            }
        }
    }

    /// Does what a choice says, if it can be done just now.
    fn step(&mut self, choice: u8) {
        let _ = match choice % 8 {
            0..=2 => self.answer(choice),
            3..=4 => self.watch(),
            5 => self.change(),
            6 => self.tick(),
            _ => self.lose(choice),
        };
    }

    /// Answers a request, if there is one.
    fn answer(&mut self, choice: u8) -> bool {
        let Some((id, request)) = self.take(choice) else { return false };
        let answer = self.world.answer(&request);
        self.tell(Input::Answered(id, answer));
        true
    }

    /// Carries out a request, or not, and loses the answer.
    fn lose(&mut self, choice: u8) -> bool {
        let Some((id, request)) = self.take(choice) else { return false };
        if choice & 64 != 0 {
            self.world.answer(&request);
        }
        let is_operation = matches!(request, Request::RunOperation(_));
        let refusal = if is_operation { RequestError::Error("it failed".into()) } else { RequestError::Lost };
        self.tell(Input::Answered(id, Answer::Refused(refusal)));
        true
    }

    fn take(&mut self, choice: u8) -> Option<(RequestId, Request)> {
        let place = usize::from(choice / 8) % self.open.len().max(1);
        let id = *self.open.keys().nth(place)?;
        self.open.remove_entry(&id)
    }

    /// Tells the engine of one change, if there is one that it was not told of.
    fn watch(&mut self) -> bool {
        let Some(told) = self.world.untold.pop_front() else { return false };
        self.tell(told.into());
        true
    }

    /// Makes one of the later changes, if there is one left.
    fn change(&mut self) -> bool {
        let Some((kind, json)) = self.later.pop_front() else { return false };
        self.put(kind, json);
        true
    }

    /// Lets time pass.
    fn tick(&mut self) -> bool {
        self.now = self.now + Duration::from_secs(5);
        self.tell(Input::Tick);
        true
    }

    /// Goes on without further trouble. Time stands still, so whatever still happens does so without end.
    fn rest(&mut self) {
        for _ in 0..REST_STEPS {
            if !self.change() && !self.watch() && !self.answer(0) {
                return;
            }
        }
        panic!("it does not come to rest: {:#?}", self.world.history.iter().rev().take(40).collect::<Vec<_>>());
    }
}
