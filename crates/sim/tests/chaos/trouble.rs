//! A world with an engine in it, and the troubles that befall them.

use std::collections::BTreeMap;
use std::time::Duration;

use bindery_binder::{Binder, Config as BinderConfig};
use bindery_companions::{AttributesClassProtection, ClaimProtection, Ephemeral, Expander, VolumeProtection};
use bindery_engine::{Answer, Config, Engine, Input, Moment, Output, Refusal, RequestId};
use bindery_sim::notation;
use bindery_verdict::{Notice, Request, RuleSet};
use bindery_volumes::{ClaimKey, Kind, Name, ObjectKey};
use serde_json::{Value, json};

use crate::{guards, promises};

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
    /// The watches tell what happened first.
    Watch,
    /// The watch of one kind tells one thing: each kind is told of in order, and one may be far behind another.
    WatchKind(u8),
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
    /// A scheduler gives a pod a node, unless one of its claims is missing or being deleted.
    Schedule(u8),
    /// A pod ends.
    EndPod(u8),
    /// A user deletes a pod, which is given some time.
    DeletePod(u8),
    /// A node lets go of a pod that is being deleted.
    LetGoOfPod(u8),
    /// Claims whose pods are gone are deleted.
    CollectGarbage,
    /// Whoever put a foreign finalizer on an object takes it off.
    TakeOffFinalizer(u8),
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
    /// What was published since the engine was started.
    told: Vec<Notice>,
    /// Everything that came out of the engine, in order.
    pub trace: Vec<String>,
}

/// No resync comes to the rescue before all has come to rest by itself.
const RESYNC: Duration = Duration::from_secs(3600);

/// How long it may take to come to rest: long enough for every back-off to pass.
const REST: Duration = Duration::from_secs(600);

fn engine() -> Engine {
    let config = BinderConfig { host_path_provisioner: true, ..BinderConfig::default() };
    let rules: Vec<Box<dyn RuleSet + Send>> = vec![
        Box::new(Binder::new(config)),
        Box::new(Ephemeral),
        Box::new(ClaimProtection::default()),
        Box::new(VolumeProtection),
        Box::new(AttributesClassProtection),
        Box::new(Expander),
    ];
    Engine::new(Config { resync: RESYNC, resync_rarely: RESYNC, ..Config::default() }, rules)
}

fn pick<T>(items: &[T], number: u8) -> Option<&T> {
    items.get(usize::from(number) % items.len().max(1))
}

/// Takes the foreign finalizer off an object, which goes then if nothing else holds it back.
fn take_off(world: &mut bindery_sim::World, key: &ObjectKey) {
    let Some(object) = world.get(key) else { return };
    let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let left: Vec<Value> = finalizers.iter().filter(|name| **name != "example.com/mine").cloned().collect();
    if left.len() == finalizers.len() {
        return;
    }
    let is_over = left.is_empty() && guards::is_deleting(object);
    world.edit(key, json!({"metadata": {"finalizers": left}}));
    if is_over {
        world.remove(key);
    }
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
            told: Vec::new(),
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
        if self.world.get(key).is_some() || self.is_started && self.holds_what_goes(key, object) {
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

    /// Whether an object would come to hold something that is being deleted: users and schedulers do not do that, and nobody could
    /// make sure of it who has to let go of it.
    fn holds_what_goes(&self, key: &ObjectKey, object: &Value) -> bool {
        let is_going = |key: &ObjectKey| self.world.get(key).is_some_and(guards::is_deleting);
        match key.kind {
            Kind::Pod => self.claims_of(object).iter().any(is_going),
            Kind::Claim | Kind::Volume => {
                let class = object["spec"]["volumeAttributesClassName"].as_str().unwrap_or_default();
                is_going(&ObjectKey::cluster(Kind::AttributesClass, Name::from(class)))
            }
            Kind::Class | Kind::AttributesClass | Kind::Node => false,
        }
    }

    fn claims_of(&self, pod: &Value) -> Vec<ObjectKey> {
        let key = |(name, _): (String, bool)| ClaimKey::new("default", name).into();
        guards::claims_of(pod).into_iter().map(key).collect()
    }

    fn restart(&mut self) {
        self.told.clear();
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
                Output::Publish(notice) => self.told.push(notice),
                Output::Decided(_) | Output::Measured(_) => {}
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
            Trouble::WatchKind(n) => self.watch_kind(*n),
            Trouble::Tick => self.tick(),
            Trouble::Restart => self.restart(),
            Trouble::ListAgain => self.list(),
            Trouble::Create(line) => self.create(line),
            Trouble::Delete(n) => {
                let kinds = [Kind::Claim, Kind::Volume, Kind::Pod, Kind::AttributesClass];
                self.user(*n, &kinds, |world, key| world.delete(key));
            }
            Trouble::ClearClaimRef(n) => self.user(*n, &[Kind::Volume], |world, key| {
                world.edit(key, json!({"spec": {"claimRef": null}}));
            }),
            Trouble::Annotate(n) => self.user(*n, &[Kind::Claim, Kind::Volume], |world, key| {
                world.edit(key, json!({"metadata": {"annotations": {"note": format!("{n}")}}}));
            }),
            Trouble::Schedule(n) => self.schedule(*n),
            Trouble::EndPod(n) => self.user(*n, &[Kind::Pod], |world, key| {
                world.edit(key, json!({"status": {"phase": "Succeeded"}}));
            }),
            Trouble::DeletePod(n) => self.user(*n, &[Kind::Pod], |world, key| {
                // The time that it is given never grows.
                if !world.get(key).is_some_and(guards::is_deleting) {
                    let deleted =
                        json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30});
                    world.edit(key, json!({"metadata": deleted}));
                }
            }),
            Trouble::LetGoOfPod(n) => self.user(*n, &[Kind::Pod], |world, key| {
                if world.get(key).is_some_and(guards::is_deleting) {
                    world.edit(key, json!({"metadata": {"deletionGracePeriodSeconds": 0}}));
                }
            }),
            Trouble::CollectGarbage => self.collect_garbage(),
            Trouble::TakeOffFinalizer(n) => {
                self.user(*n, &[Kind::Claim, Kind::Volume, Kind::AttributesClass], take_off);
            }
        }
    }

    fn schedule(&mut self, number: u8) {
        let waits = |pod: &Value| pod["spec"]["nodeName"].is_null() && !guards::is_deleting(pod);
        let can_go = |claim: &ObjectKey| self.world.get(claim).is_some_and(|claim| !guards::is_deleting(claim));
        let pods = self.world.objects().filter(|(key, pod)| key.kind == Kind::Pod && waits(pod));
        let ready: Vec<ObjectKey> =
            pods.filter(|(_, pod)| self.claims_of(pod).iter().all(can_go)).map(|(key, _)| key.clone()).collect();
        if let Some(key) = pick(&ready, number) {
            self.world.edit(key, json!({"spec": {"nodeName": "n"}}));
        }
    }

    fn collect_garbage(&mut self) {
        let owner = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"].as_str().map(str::to_owned);
        let lives = |uid: &str| self.world.objects().any(|(_, object)| object["metadata"]["uid"] == uid);
        let is_orphan = |object: &Value| owner(object).is_some_and(|uid| !lives(&uid));
        let orphans = self.world.objects().filter(|(_, object)| is_orphan(object));
        for key in orphans.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.world.delete(&key);
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

    fn watch_kind(&mut self, number: u8) {
        let untold = &self.world.untold;
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| untold.iter().any(|t| t.kind() == *kind)).collect();
        let at = pick(&kinds, number).and_then(|kind| untold.iter().position(|told| told.kind() == *kind));
        if let Some(told) = at.and_then(|at| self.world.untold.remove(at)) {
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
        guards::nothing_left(&self.world, &self.told);
        let (effects, sent) = (self.world.effects, self.engine.stats().sent);
        self.go_on_for(3 * RESYNC);
        assert!(self.engine.stats().resyncs > 1);
        assert_eq!(self.engine.stats().resync_finds, 0, "a resync found something that no change had woken");
        assert_eq!((self.world.effects, self.engine.stats().sent), (effects, sent), "it is not quiet");
    }
}
