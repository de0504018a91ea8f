//! A world with an engine in it, and the troubles that befall them.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_binder::{Binder, Config as BinderConfig};
use bindery_engine::{Answer, Config, Engine, Input, Moment, Output, Refusal, RequestId};
use bindery_sim::notation;
use bindery_verdict::Request;
use bindery_volumes::{Kind, ObjectKey};
use serde_json::json;

use crate::promises;

/// Something that happens. Numbers pick one of what there is.
#[derive(Debug, Clone)]
pub enum Trouble {
    /// A request is answered.
    Answer(u8),
    /// A request is carried out, and its answer takes its time.
    AnswerLate(u8),
    /// A late answer arrives.
    Deliver(u8),
    /// A request is carried out, and its answer lost.
    LoseAnswer(u8),
    /// A request is lost.
    LoseRequest(u8),
    /// A request is refused.
    Refuse(u8),
    /// The watch tells one thing.
    Watch,
    /// Time passes.
    Tick,
    /// The engine is replaced.
    Restart,
    /// Everything is listed again.
    ListAgain,
    /// A user creates something, if there is nothing of that name.
    Create(&'static str),
    /// A user deletes something.
    Delete(u8),
    /// A user takes a volume from its claim.
    ClearClaimRef(u8),
    /// A user adds an annotation that nobody reads.
    Annotate(u8),
}

pub struct World {
    world: bindery_sim::World,
    engine: Engine,
    open: BTreeMap<RequestId, Request>,
    /// Requests that were carried out, and whose answers have not arrived.
    late: Vec<(RequestId, Request, Answer)>,
    now: Duration,
    tick_at: Option<Moment>,
    uids: u32,
    is_started: bool,
    /// Everything that came out of the engine, in order.
    pub trace: Vec<String>,
}

/// No resync comes to the rescue before all has come to rest by itself.
const RESYNC: Duration = Duration::from_secs(3600);

/// How long it may take to come to rest: long enough for every back-off to pass.
const REST: Duration = Duration::from_secs(600);

fn engine() -> Engine {
    let config = BinderConfig { host_path_provisioner: true, ..BinderConfig::default() };
    Engine::new(Config { resync: RESYNC, ..Config::default() }, vec![Box::new(Binder::new(config))])
}

fn pick<T>(items: &[T], number: u8) -> Option<&T> {
    items.get(usize::from(number) % items.len().max(1))
}

impl World {
    pub fn start(classes: &str, lines: &[&str]) -> World {
        let mut world = World {
            world: notation::parse(classes),
            engine: engine(),
            open: BTreeMap::new(),
            late: Vec::new(),
            now: Duration::ZERO,
            tick_at: None,
            uids: 0,
            is_started: false,
            trace: Vec::new(),
        };
        for line in lines {
            world.create(line);
        }
        world.is_started = true;
        world.restart();
        world
    }

    fn create(&mut self, line: &str) {
        let made = notation::parse(line);
        let (key, object) = made.objects().next().expect("a line is an object");
        if self.world.get(key).is_some() {
            return;
        }
        // A UID is never used twice: whatever comes later is another object.
        let mut object = object.clone();
        if self.is_started {
            self.uids += 1;
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            object["metadata"]["uid"] = format!("{uid}-{}", self.uids).into();
        }
        self.world.put(key.kind, object);
    }

    fn restart(&mut self) {
        self.open.clear();
        self.late.clear();
        self.engine = engine();
        self.tick_at = None;
        self.list();
        self.tell(Input::Leading(true));
    }

    fn list(&mut self) {
        self.world.untold.clear();
        for kind in Kind::ALL {
            let (version, objects) = self.world.list(kind);
            self.tell(Input::Listed { kind, version, objects });
        }
    }

    fn tell(&mut self, input: Input) {
        for output in self.engine.handle(Moment(self.now), input) {
            self.trace.push(format!("{output:?}"));
            match output {
                Output::Send(id, request) => {
                    promises::one_at_a_time(self.open.values().chain(self.late.iter().map(|late| &late.1)), &request);
                    promises::no_second_volume(self.engine.known(), &request);
                    self.open.insert(id, request);
                }
                Output::TickAt(moment) => self.tick_at = Some(moment),
                Output::Publish(_) | Output::Decided(_) | Output::Measured(_) => {}
            }
        }
    }

    /// Carries out a request, and checks the promises over it.
    fn carry_out(&mut self, request: &Request) -> Answer {
        let before = self.world.clone();
        let answer = self.world.answer(request);
        promises::check(&before, &self.world, request, &answer);
        answer
    }

    fn request(&mut self, number: u8, then: impl FnOnce(&mut World, &Request) -> Answer) {
        let ids: Vec<RequestId> = self.open.keys().copied().collect();
        if let Some(id) = pick(&ids, number) {
            let request = self.open.remove(id).expect("it is open");
            let answer = then(self, &request);
            self.tell(Input::Answered(*id, answer));
        }
    }

    fn user(&mut self, number: u8, kinds: &[Kind], then: impl FnOnce(&mut bindery_sim::World, &ObjectKey)) {
        let keys: Vec<ObjectKey> =
            self.world.objects().map(|(key, _)| key.clone()).filter(|key| kinds.contains(&key.kind)).collect();
        if let Some(key) = pick(&keys, number) {
            then(&mut self.world, key);
        }
    }

    pub fn suffer(&mut self, trouble: &Trouble) {
        match trouble {
            Trouble::Answer(n) => self.request(*n, |world, request| world.carry_out(request)),
            Trouble::AnswerLate(n) => {
                let ids: Vec<RequestId> = self.open.keys().copied().collect();
                if let Some(id) = pick(&ids, *n) {
                    let request = self.open.remove(id).expect("it is open");
                    let answer = self.carry_out(&request);
                    self.late.push((*id, request, answer));
                }
            }
            Trouble::Deliver(n) => self.deliver(*n),
            Trouble::LoseAnswer(n) => self.request(*n, |world, request| {
                world.carry_out(request);
                Answer::Refused(Refusal::Lost)
            }),
            Trouble::LoseRequest(n) => self.request(*n, |_, _| Answer::Refused(Refusal::Lost)),
            Trouble::Refuse(n) => self.request(*n, |_, _| Answer::Refused(Refusal::Error("no".into()))),
            Trouble::Watch => self.watch(),
            Trouble::Tick => self.tick(),
            Trouble::Restart => self.restart(),
            Trouble::ListAgain => self.list(),
            Trouble::Create(line) => self.create(line),
            Trouble::Delete(n) => {
                self.user(*n, &[Kind::Claim, Kind::Volume, Kind::Pod], |world, key| world.delete(key))
            }
            Trouble::ClearClaimRef(n) => self.user(*n, &[Kind::Volume], |world, key| {
                world.edit(key, json!({"spec": {"claimRef": null}}));
            }),
            Trouble::Annotate(n) => self.user(*n, &[Kind::Claim, Kind::Volume], |world, key| {
                world.edit(key, json!({"metadata": {"annotations": {"note": format!("{n}")}}}));
            }),
        }
    }

    fn deliver(&mut self, number: u8) {
        if !self.late.is_empty() {
            let (id, _, answer) = self.late.remove(usize::from(number) % self.late.len());
            self.tell(Input::Answered(id, answer));
        }
    }

    fn watch(&mut self) {
        if let Some(told) = self.world.untold.pop_front() {
            self.tell(told.into());
        }
    }

    fn tick(&mut self) {
        // As far as the next tick, and a minute at most.
        let minute = self.now + Duration::from_secs(60);
        self.now = self.tick_at.map_or(minute, |moment| moment.0.min(minute)).max(self.now);
        self.tell(Input::Tick);
    }

    /// The faults stop: everything is told and answered, and time passes.
    pub fn heal(&mut self) {
        self.go_on_for(REST);
    }

    fn go_on_for(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..20_000 {
            if !self.late.is_empty() {
                self.deliver(0);
            } else if !self.world.untold.is_empty() {
                self.watch();
            } else if let Some(&id) = self.open.keys().next() {
                let request = self.open.remove(&id).expect("it is open");
                let answer = self.carry_out(&request);
                self.tell(Input::Answered(id, answer));
            } else if self.now < end {
                self.tick();
            } else {
                return;
            }
        }
        panic!("it does not come to rest: {:#?}", &self.trace[self.trace.len() - 40..]);
    }

    /// Nothing is left to do, nothing happens any more, and resyncs find nothing.
    pub fn assert_rest(&mut self) {
        promises::nothing_left(&self.world);
        let (effects, sent) = (self.world.effects, self.engine.stats().sent);
        self.go_on_for(3 * RESYNC);
        assert!(self.engine.stats().resyncs > 1);
        assert_eq!(self.engine.stats().resync_finds, 0, "a resync found something that no change had woken");
        assert_eq!((self.world.effects, self.engine.stats().sent), (effects, sent), "it is not quiet");
    }
}
