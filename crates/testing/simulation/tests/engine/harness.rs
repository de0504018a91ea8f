//! Drives an engine input by input.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_binder::Binder;
use bindery_engine::{Answer, Config, Decided, Engine, Input, Moment, Output, Rejection, RequestError, RequestId};
use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_rules_api::{Event, Request, RuleSet};
use bindery_simulation::{SimulatedCluster, notation};

/// An engine with a cluster and a clock that advance only on request.
pub struct Harness {
    pub engine: Engine,
    pub cluster: SimulatedCluster,
    pub now: Duration,
    /// Requests that were sent, but not answered.
    pub open: BTreeMap<RequestId, Request>,
    pub decided: Vec<Decided>,
    pub events: Vec<Event>,
    pub rejections: Vec<Rejection>,
    pub tick_at: Option<Duration>,
}

pub fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

impl Harness {
    pub fn idle(state: &str, config: Config) -> Harness {
        Harness::hosting(Box::new(Binder::default()), state, config)
    }

    /// An engine with other rules than the binder's.
    pub fn hosting(rules: Box<dyn RuleSet + Send>, state: &str, config: Config) -> Harness {
        Harness {
            engine: Engine::new(config, vec![rules]),
            cluster: notation::parse(state),
            now: Duration::ZERO,
            open: BTreeMap::new(),
            decided: Vec::new(),
            events: Vec::new(),
            rejections: Vec::new(),
            tick_at: None,
        }
    }

    pub fn start(state: &str) -> Harness {
        Harness::with(state, Config::default())
    }

    pub fn with(state: &str, config: Config) -> Harness {
        let mut harness = Harness::idle(state, config);
        harness.list_all();
        harness.handle(Input::Leader(true));
        harness
    }

    pub fn list_all(&mut self) {
        self.cluster.pending_events.clear();
        for kind in Kind::ALL {
            let (version, objects) = self.cluster.list(kind);
            self.handle(Input::Listed { kind, version, objects });
        }
    }

    /// Passes an input, and the ticks by which the engine continues at once.
    pub fn handle(&mut self, input: Input) {
        let mut continues = self.call(input);
        while continues {
            continues = self.call(Input::Tick);
        }
    }

    /// Passes an input. Returns whether the engine asks to be called again at once.
    pub fn call(&mut self, input: Input) -> bool {
        let mut continues = false;
        for output in self.engine.handle(Moment(self.now), input) {
            match output {
                Output::Send(id, request) => {
                    if !matches!(request, Request::Read(_) | Request::List(_)) {
                        let target = request.target();
                        let is_free = self
                            .open
                            .values()
                            .all(|open| matches!(open, Request::Read(_) | Request::List(_)) || open.target() != target);
                        assert!(is_free, "two requests change {target} at once");
                    }
                    self.open.insert(id, request);
                }
                Output::Publish(event) => self.events.push(event),
                Output::Decided(decided) => self.decided.push(decided),
                Output::TickAt(moment) => {
                    continues = moment.0 <= self.now;
                    self.tick_at = Some(moment.0);
                }
                Output::Rejected(rejection) => self.rejections.push(rejection),
                Output::Measured(_) => {}
            }
        }
        continues
    }

    /// Adds objects to the cluster, and delivers their watch events.
    pub fn add(&mut self, lines: &str) {
        notation::add(&mut self.cluster, lines);
        self.watch();
    }

    /// Delivers all pending watch events.
    pub fn watch(&mut self) {
        while let Some(event) = self.cluster.pending_events.pop_front() {
            self.handle(event.into());
        }
    }

    pub fn tick(&mut self, after: Duration) {
        self.now += after;
        self.handle(Input::Tick);
    }

    /// The only open request.
    pub fn only(&self) -> (RequestId, Request) {
        assert_eq!(self.open.len(), 1, "expected one open request: {:?}", self.open);
        let (id, request) = self.open.iter().next().expect("one");
        (*id, request.clone())
    }

    /// The step of the only open request.
    pub fn step(&self) -> &'static str {
        match self.only().1 {
            Request::Write(write) => write.purpose.name,
            Request::Read(_) => "read",
            Request::List(_) => "list",
            Request::Bind(_) => "bind",
            Request::Create(_) | Request::Delete(_) | Request::RunOperation(_) => "other",
        }
    }

    pub fn reject(&mut self, error: RequestError) {
        let (id, _) = self.only();
        self.open.remove(&id);
        self.handle(Input::Answered(id, Answer::Rejected(error)));
    }

    /// Carries out a request, and delivers the answer.
    pub fn answer(&mut self, id: RequestId) {
        let request = self.open.remove(&id).expect("an open request");
        let answer = self.cluster.answer(&request);
        self.handle(Input::Answered(id, answer));
    }

    pub fn answer_only(&mut self) {
        self.answer(self.only().0);
    }

    pub fn answer_all(&mut self) {
        while let Some((&id, _)) = self.open.iter().next() {
            self.answer(id);
            self.watch();
        }
    }

    /// The keys that were decided about since the last call.
    pub fn decided_keys(&mut self) -> Vec<String> {
        let mut keys: Vec<String> = self.decided.drain(..).map(|decided| decided.key.name.to_string()).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    pub fn rendered(&self) -> String {
        notation::render(&self.cluster)
    }
}

pub const PAIR: &str = "pv v 1Gi Available
                    pvc c#u 1Gi Pending";
pub const PAIR_BOUND: &str = "pv v 1Gi Bound ->c#u bbc
                          pvc c#u 1Gi Bound vol=v bbc bc";

/// Pairs of claims and volumes of the same size.
pub fn many(pairs: usize) -> String {
    (0..pairs).map(|n| format!("pv v{n:02} 1Gi Available\npvc c{n:02}#u{n} 1Gi Pending\n")).collect()
}

/// Claims that wait for different things.
pub const WAITING: &str = "sc  slow example.com/slow
                       sc  late example.com/late wffc
                       pvc a#1 1Gi Pending class=fast
                       pvc b#2 1Gi Pending class=fast
                       pvc c#3 1Gi Pending class=slow
                       pvc d#4 1Gi Pending class=late
                       pvc e#5 9Gi Pending class=
                       pvc f#6 5Gi Pending class=
                       pvc g#7 1Gi Pending vol=v7
                       pvc h#8 1Gi Pending
                       pv  w 1Gi Bound ->x#9 bbc";

/// A rejection by the API server.
pub const REJECTED: fn() -> RequestError = || RequestError::Error(500, "no".into());
