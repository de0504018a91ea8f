//! An engine driven by hand, input by input.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_binder::Binder;
use bindery_engine::{Answer, Config, Decided, Engine, Input, Moment, Output, RequestError, RequestId};
use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_rules_api::{Event, Request, RuleSet};
use bindery_simulation::{World, notation};

/// An engine, a world that answers only when told to, and a clock that moves only when told to.
pub struct Hand {
    pub engine: Engine,
    pub world: World,
    pub now: Duration,
    /// Requests that were sent and not answered.
    pub open: BTreeMap<RequestId, Request>,
    pub decided: Vec<Decided>,
    pub events: Vec<Event>,
}

pub fn claim_key(name: &str) -> ObjectKey {
    ClaimKey::new("default", name).into()
}

impl Hand {
    pub fn idle(state: &str, config: Config) -> Hand {
        Hand::hosting(Box::new(Binder::default()), state, config)
    }

    /// An engine with other rules than the binder's.
    pub fn hosting(rules: Box<dyn RuleSet + Send>, state: &str, config: Config) -> Hand {
        Hand {
            engine: Engine::new(config, vec![rules]),
            world: notation::parse(state),
            now: Duration::ZERO,
            open: BTreeMap::new(),
            decided: Vec::new(),
            events: Vec::new(),
        }
    }

    pub fn start(state: &str) -> Hand {
        Hand::with(state, Config::default())
    }

    pub fn with(state: &str, config: Config) -> Hand {
        let mut hand = Hand::idle(state, config);
        hand.list_all();
        hand.tell(Input::Leader(true));
        hand
    }

    pub fn list_all(&mut self) {
        self.world.untold.clear();
        for kind in Kind::ALL {
            let (version, objects) = self.world.list(kind);
            self.tell(Input::Listed { kind, version, objects });
        }
    }

    pub fn tell(&mut self, input: Input) {
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
                Output::Publish(notice) => self.events.push(notice),
                Output::Decided(decided) => self.decided.push(decided),
                Output::TickAt(_) | Output::Measured(_) => {}
            }
        }
    }

    /// Adds to the world, and has the watch tell of it.
    pub fn add(&mut self, lines: &str) {
        notation::add(&mut self.world, lines);
        self.watch();
    }

    /// Has the watch tell what it has not told yet.
    pub fn watch(&mut self) {
        while let Some(told) = self.world.untold.pop_front() {
            self.tell(told.into());
        }
    }

    pub fn tick(&mut self, after: Duration) {
        self.now += after;
        self.tell(Input::Tick);
    }

    /// The one open request.
    pub fn only(&self) -> (RequestId, Request) {
        assert_eq!(self.open.len(), 1, "one request is open: {:?}", self.open);
        let (id, request) = self.open.iter().next().expect("one");
        (*id, request.clone())
    }

    /// Which step the one open request is.
    pub fn step(&self) -> &'static str {
        match self.only().1 {
            Request::Write(write) => write.purpose.name,
            Request::Read(_) => "read",
            Request::List(_) => "list",
            Request::Bind(_) => "bind",
            Request::Create(_) | Request::Delete(_) | Request::RunOperation(_) => "other",
        }
    }

    pub fn refuse(&mut self, refusal: RequestError) {
        let (id, _) = self.only();
        self.open.remove(&id);
        self.tell(Input::Answered(id, Answer::Rejected(refusal)));
    }

    /// Has the world answer a request, and tells the answer.
    pub fn answer(&mut self, id: RequestId) {
        let request = self.open.remove(&id).expect("an open request");
        let answer = self.world.answer(&request);
        self.tell(Input::Answered(id, answer));
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
        notation::render(&self.world)
    }
}

pub const PAIR: &str = "pv v 1Gi Available
                    pvc c#u 1Gi Pending";
pub const PAIR_BOUND: &str = "pv v 1Gi Bound ->c#u bbc
                          pvc c#u 1Gi Bound vol=v bbc bc";

/// So many claims and volumes of one size.
pub fn many(pairs: usize) -> String {
    (0..pairs).map(|n| format!("pv v{n:02} 1Gi Available\npvc c{n:02}#u{n} 1Gi Pending\n")).collect()
}

/// Claims that wait for all kinds of things.
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

/// An API server that just says no.
pub const NO: fn() -> RequestError = || RequestError::Error("no".into());
