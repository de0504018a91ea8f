//! An engine with an API server whose responses and watch events arrive in an order that the input
//! chooses.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bindery_binder::{Binder, Config as BinderConfig};
use bindery_engine::{Answer, Config, Engine, Input, Moment, Output, RequestError, RequestId};
use bindery_simulation::SimulatedCluster;
use bindery_simulation::run::lifecycle_controllers;
use bindery_rules_api::{Request, RuleSet};
use bindery_model::{Kind, Object, ObjectKey};
use serde_json::Value;

/// For how many steps the input chooses what happens next.
const CHOSEN_STEPS: usize = 150;
/// The maximum number of steps until the engine is idle afterwards. A dozen objects need a few
/// hundred.
const IDLE_STEPS_MAX: usize = 5_000;

pub struct Cluster {
    cluster: SimulatedCluster,
    engine: Engine,
    open: BTreeMap<RequestId, Request>,
    later: VecDeque<(Kind, Value)>,
    now: Moment,
}

impl Cluster {
    /// Runs an engine with these objects until it is idle.
    pub fn run(documents: Vec<(Kind, Value, bool)>, choices: &[u8]) {
        // Enables host-path provisioning, so that its rules are covered.
        let config = BinderConfig { host_path_provisioner: true, ..BinderConfig::default() };
        let binder: Box<dyn RuleSet + Send> = Box::new(Binder::new(config));
        let engine = Engine::new(Config::default(), std::iter::once(binder).chain(lifecycle_controllers()).collect());
        let mut cluster = Cluster {
            cluster: SimulatedCluster::default(),
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
        cluster.run_until_idle();
    }

    /// Creates, changes or deletes an object, as its document says.
    fn put(&mut self, kind: Kind, mut json: Value) {
        let Ok(object) = Object::from_json(kind, json.to_string().as_bytes()) else { return };
        let key = object.key();
        if self.cluster.get(&key).is_some() && !json["metadata"]["deletionTimestamp"].is_null() {
            self.cluster.delete(&key);
        } else {
            // An API server gives every object a unique UID; all guarantees depend on it.
            let uid = json["metadata"]["uid"].as_str().unwrap_or_default();
            let is_taken = |(other, object): (&ObjectKey, &Value)| *other != key && object["metadata"]["uid"] == uid;
            if uid.is_empty() || self.cluster.objects().any(is_taken) {
                json["metadata"]["uid"] = key.to_string().into();
            }
            self.cluster.put(kind, json);
        }
    }

    fn start(&mut self) {
        self.cluster.pending_events.clear();
        for kind in Kind::ALL {
            let (version, objects) = self.cluster.list(kind);
            self.deliver(Input::Listed { kind, version, objects });
        }
        self.deliver(Input::Leader(true));
    }

    fn deliver(&mut self, input: Input) {
        for output in self.engine.handle(self.now, input) {
            if let Output::Send(id, request) = output {
                let changed = |request: &Request| request.locks_target().then(|| request.target());
                if let Some(target) = changed(&request) {
                    let is_free = !self.open.values().filter_map(changed).any(|other| other == target);
                    assert!(is_free, "two requests change {target} at once");
                }
                self.open.insert(id, request);
            }
        }
    }

    /// Carries out a choice, if possible.
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
        let answer = self.cluster.answer(&request);
        self.deliver(Input::Answered(id, answer));
        true
    }

    /// Loses the response to a request that may or may not have been carried out.
    fn lose(&mut self, choice: u8) -> bool {
        let Some((id, request)) = self.take(choice) else { return false };
        if choice & 64 != 0 {
            self.cluster.answer(&request);
        }
        let is_operation = matches!(request, Request::RunOperation(_));
        let error = if is_operation { RequestError::Error(500, "it failed".into()) } else { RequestError::Lost };
        self.deliver(Input::Answered(id, Answer::Rejected(error)));
        true
    }

    fn take(&mut self, choice: u8) -> Option<(RequestId, Request)> {
        let index = usize::from(choice / 8) % self.open.len().max(1);
        let id = *self.open.keys().nth(index)?;
        self.open.remove_entry(&id)
    }

    /// Delivers one watch event, if there is one.
    fn watch(&mut self) -> bool {
        let Some(event) = self.cluster.pending_events.pop_front() else { return false };
        self.deliver(event.into());
        true
    }

    /// Applies one of the later changes, if there is one left.
    fn change(&mut self) -> bool {
        let Some((kind, json)) = self.later.pop_front() else { return false };
        self.put(kind, json);
        true
    }

    /// Advances time.
    fn tick(&mut self) -> bool {
        self.now = self.now + Duration::from_secs(5);
        self.deliver(Input::Tick);
        true
    }

    /// Continues without faults. Time stands still, so an engine that does not become idle never
    /// would.
    fn run_until_idle(&mut self) {
        for _ in 0..IDLE_STEPS_MAX {
            if !self.change() && !self.watch() && !self.answer(0) {
                return;
            }
        }
        panic!("the engine does not become idle: {:#?}", self.cluster.history.iter().rev().take(40).collect::<Vec<_>>());
    }
}
