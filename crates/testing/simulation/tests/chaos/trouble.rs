//! A world with an engine in it, and the troubles that befall them.

use std::time::Duration;

use bindery_engine::{Answer, Input, Moment, Output, RequestError, RequestId};
use bindery_model::{ClaimKey, Kind, Name, ObjectKey};
use bindery_rules_api::{Event, Request};
use bindery_simulation::provisioner::Asked;
use bindery_simulation::storage::Backend;
use bindery_simulation::{notation, provisioner};
use serde_json::{Value, json};

use crate::ledger::Ledger;
use crate::past::Past;
use crate::seats::{Cast, RESYNC, Seat};
use crate::storage::{self, Adrift, Drivers, StorageTrouble, was_untried};
use crate::{guards, places, promises};

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
    Watch(u8),
    /// The watch of one kind tells one thing: each kind is told of in order, and one may be far behind another.
    WatchKind(u8),
    /// Time passes.
    Tick,
    /// An engine is replaced.
    Restart(u8),
    /// Everything is listed again.
    ListAgain(u8),
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
    /// The external provisioner makes a volume that it is asked for.
    Provision(u8),
    /// The external provisioner cannot make a volume that it is asked for.
    FailToProvision(u8),
    /// A node is closed for new pods, or opened again.
    Cordon(u8),
    /// Something happens to a storage, or to who has to do with it.
    Storage(StorageTrouble),
}

pub struct World {
    pub world: bindery_simulation::World,
    past: Past,
    pub seats: Vec<Seat>,
    /// What takes its time, or went on when nobody waited for it any more.
    pub adrift: Vec<Adrift>,
    pub ledger: Ledger,
    pub drivers: Drivers,
    /// How many engines there were.
    lives: usize,
    now: Duration,
    uids: u32,
    is_started: bool,
    /// Whether a pod was given a node and the answer was lost. Who then fails to read the pod as well takes the room for free
    /// until the watch tells, as upstream does: nothing but the kubelet keeps two pods from the same room.
    pub has_lost_a_bind: bool,
    /// Everything that came out of the engines, in order.
    pub trace: Vec<String>,
}

/// How long it may take to come to rest: long enough for every back-off to pass.
const REST: Duration = Duration::from_secs(600);

pub fn pick<T>(items: &[T], number: u8) -> Option<&T> {
    items.get(usize::from(number) % items.len().max(1))
}

/// Takes the foreign finalizer off an object, which goes then if nothing else holds it back.
fn take_off(world: &mut bindery_simulation::World, key: &ObjectKey) {
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

/// The provisioner never uses a name twice.
fn make(world: &mut bindery_simulation::World, asked: &Asked) {
    provisioner::make(world, asked, &format!("made-{}", asked.uid));
}

impl World {
    /// A world with so many engines in it, which begins with what is always there and with these lines.
    pub fn start(casts: &[Cast], always: &str, lines: &[&str]) -> World {
        let mut world = World {
            world: notation::parse(always),
            past: Past::default(),
            seats: casts.iter().map(|cast| Seat::new(*cast, 0)).collect(),
            adrift: Vec::new(),
            ledger: Ledger::default(),
            drivers: Drivers::One,
            lives: 0,
            now: Duration::ZERO,
            uids: 0,
            is_started: false,
            has_lost_a_bind: false,
            trace: Vec::new(),
        };
        if world.provisioners() > 0 {
            world.world.storage = Some(Backend::default());
        }
        for line in lines {
            world.create(line);
        }
        world.is_started = true;
        world.note();
        for seat in 0..casts.len() {
            world.restart(seat);
        }
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
        self.bring_along(key, &mut object);
        self.world.put(key.kind, object);
    }

    /// How many provisioners there are.
    pub fn provisioners(&self) -> usize {
        self.seats.iter().filter(|seat| seat.cast.has_provisioner()).count()
    }

    fn has_scheduler(&self) -> bool {
        self.seats.iter().any(|seat| seat.cast.has_scheduler())
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
            Kind::Class
            | Kind::AttributesClass
            | Kind::Node
            | Kind::CsiNode
            | Kind::CsiDriver
            | Kind::Capacity
            | Kind::Attachment => false,
        }
    }

    fn claims_of(&self, pod: &Value) -> Vec<ObjectKey> {
        let key = |(name, _): (String, bool)| ClaimKey::new("default", name).into();
        guards::claims_of(pod).into_iter().map(key).collect()
    }

    pub fn restart(&mut self, seat: usize) {
        self.lives += 1;
        self.seats[seat] = Seat::new(self.seats[seat].cast, self.lives);
        self.list(seat);
        self.tell(seat, Input::Leader(true));
    }

    fn list(&mut self, seat: usize) {
        self.spread();
        self.seats[seat].untold.clear();
        for kind in Kind::ALL {
            let (version, objects) = self.world.list(kind);
            self.tell(seat, Input::Listed { kind, version, objects });
        }
    }

    /// Everybody is to be told of what happened.
    fn spread(&mut self) {
        for told in std::mem::take(&mut self.world.untold) {
            self.seats.iter_mut().for_each(|seat| seat.untold.push_back(told.clone()));
        }
    }

    pub fn tell(&mut self, seat: usize, input: Input) {
        let seat = &mut self.seats[seat];
        for output in seat.engine.handle(Moment(self.now), input) {
            self.trace.push(format!("{output:?}"));
            match output {
                Output::Send(id, request) => {
                    promises::one_at_a_time(seat.open.values().chain(seat.late.iter().map(|late| &late.1)), &request);
                    promises::no_second_volume(seat.engine.known(), &request);
                    places::sent(seat.engine.known(), &self.world, &request);
                    seat.open.insert(id, request);
                }
                Output::TickAt(moment) => seat.tick_at = Some(moment),
                Output::Publish(notice) => seat.told.push(notice),
                Output::Decided(_) | Output::Measured(_) => {}
            }
        }
    }

    /// Carries out a request of a seat, and checks the promises over it.
    pub fn carry_out(&mut self, seat: usize, request: &Request) -> Answer {
        if let Some(answer) = self.held_up(seat, request) {
            return answer;
        }
        let before = self.world.clone();
        let answer = self.world.answer(request);
        self.note();
        self.note_call(&before, seat, request, &answer);
        if !matches!(&answer, Answer::Rejected(_)) && !was_untried(&answer) {
            promises::check(&before, &self.world, request, &self.past);
            places::carried_out(&before, &self.world, request, &mut self.past);
            if self.seats.len() == 1 && !self.has_lost_a_bind {
                places::there_is_room(&self.world, request);
            }
        }
        answer
    }

    /// Takes one of the requests of all engines.
    pub fn take_request(
        &mut self,
        number: u8,
        is_meant: impl Fn(&Request) -> bool,
    ) -> Option<(usize, RequestId, Request)> {
        let seats = self.seats.iter().enumerate();
        let open = seats.flat_map(|(at, seat)| seat.open.iter().map(move |(id, request)| (at, *id, request)));
        let ids: Vec<(usize, RequestId)> =
            open.filter(|(.., request)| is_meant(request)).map(|(at, id, _)| (at, id)).collect();
        let (seat, id) = *pick(&ids, number)?;
        let request = self.seats[seat].open.remove(&id).expect("it is open");
        Some((seat, id, request))
    }

    fn request(&mut self, number: u8, then: impl FnOnce(&mut World, usize, &Request) -> Answer) {
        if let Some((seat, id, request)) = self.take_request(number, |_| true) {
            let answer = then(self, seat, &request);
            self.heard(seat, &request, &answer);
            self.tell(seat, Input::Answered(id, answer));
        }
    }

    pub fn seat(&self, number: u8) -> usize {
        usize::from(number) % self.seats.len()
    }

    pub fn user(&mut self, number: u8, kinds: &[Kind], then: impl FnOnce(&mut bindery_simulation::World, &ObjectKey)) {
        let keys: Vec<ObjectKey> =
            self.world.objects().map(|(key, _)| key.clone()).filter(|key| kinds.contains(&key.kind)).collect();
        if let Some(key) = pick(&keys, number) {
            then(&mut self.world, key);
        }
    }

    pub fn suffer(&mut self, trouble: &Trouble) {
        match trouble {
            Trouble::Answer(n) => self.request(*n, |world, seat, request| world.carry_out(seat, request)),
            Trouble::AnswerLate(n) => {
                if let Some((seat, id, request)) = self.take_request(*n, |_| true) {
                    let answer = self.carry_out(seat, &request);
                    self.seats[seat].late.push((id, request, answer));
                }
            }
            Trouble::Deliver(n) => self.deliver(*n),
            Trouble::LoseAnswer(n) => self.request(*n, |world, seat, request| {
                world.carry_out(seat, request);
                world.has_lost_a_bind |= matches!(request, Request::Bind(_));
                Answer::Rejected(RequestError::Lost)
            }),
            Trouble::LoseRequest(n) => self.request(*n, |_, _, _| Answer::Rejected(RequestError::Lost)),
            Trouble::Refuse(n) => self.request(*n, |_, _, _| Answer::Rejected(RequestError::Error("no".into()))),
            Trouble::Watch(n) => self.watch(self.seat(*n)),
            Trouble::WatchKind(n) => self.watch_kind(*n),
            Trouble::Tick => self.tick(),
            Trouble::Restart(n) => self.restart(self.seat(*n)),
            Trouble::ListAgain(n) => self.list(self.seat(*n)),
            Trouble::Create(line) => self.create(line),
            Trouble::Delete(n) => {
                let kinds = [Kind::Claim, Kind::Volume, Kind::Pod, Kind::AttributesClass, Kind::Node, Kind::Class];
                // Classes are deleted where there is somebody whom that concerns.
                let kinds = if self.provisioners() > 0 { &kinds[..] } else { &kinds[..5] };
                self.user(*n, kinds, |world, key| {
                    if !storage::is_awaited(world, key) {
                        world.delete(key);
                    }
                });
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
            Trouble::Provision(n) => self.provisioner(*n, make),
            Trouble::FailToProvision(n) => self.provisioner(*n, provisioner::refuse),
            Trouble::Cordon(n) => self.user(*n, &[Kind::Node], |world, key| {
                let is_open = world.get(key).is_some_and(|node| node["spec"]["unschedulable"] != true);
                world.edit(key, json!({"spec": {"unschedulable": is_open}}));
            }),
            Trouble::Storage(trouble) => self.suffer_storage(trouble),
        }
        self.note();
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
        self.collect_drivers();
        let owner = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"].as_str().map(str::to_owned);
        let lives = |uid: &str| self.world.objects().any(|(_, object)| object["metadata"]["uid"] == uid);
        let is_orphan = |object: &Value| owner(object).is_some_and(|uid| !lives(&uid));
        let orphans = self.world.objects().filter(|(_, object)| is_orphan(object));
        for key in orphans.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.world.delete(&key);
        }
    }

    fn deliver(&mut self, number: u8) {
        let seats: Vec<usize> = (0..self.seats.len()).filter(|seat| !self.seats[*seat].late.is_empty()).collect();
        if let Some(&seat) = pick(&seats, number) {
            let late = &mut self.seats[seat].late;
            let (id, request, answer) = late.remove(usize::from(number) / 2 % late.len());
            self.heard(seat, &request, &answer);
            self.tell(seat, Input::Answered(id, answer));
        }
    }

    fn watch(&mut self, seat: usize) {
        self.spread();
        if let Some(told) = self.seats[seat].untold.pop_front() {
            self.tell(seat, told.into());
        }
    }

    fn watch_kind(&mut self, number: u8) {
        self.spread();
        let seat = self.seat(number);
        let untold = &mut self.seats[seat].untold;
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| untold.iter().any(|t| t.kind() == *kind)).collect();
        let at = pick(&kinds, number / 2).and_then(|kind| untold.iter().position(|told| told.kind() == *kind));
        if let Some(told) = at.and_then(|at| untold.remove(at)) {
            self.tell(seat, told.into());
        }
    }

    fn tick(&mut self) {
        // As far as the next tick, and a minute at most.
        let minute = self.now + Duration::from_secs(60);
        let next = self.seats.iter().filter_map(|seat| seat.tick_at).min();
        self.now = next.map_or(minute, |moment| moment.0.min(minute)).max(self.now);
        for seat in 0..self.seats.len() {
            let is_due = self.seats[seat].tick_at.is_none_or(|moment| moment.0 <= self.now);
            if is_due || next.is_none_or(|moment| moment.0 > self.now) {
                self.tell(seat, Input::Tick);
            }
        }
    }

    /// Without a scheduler nothing that waits for a consumer may ever be bound.
    fn note(&mut self) {
        if self.has_scheduler() {
            self.past.note(&self.world);
        }
        if self.provisioners() > 0 {
            self.ledger.look(&self.world);
        }
    }

    fn provisioner(&mut self, number: u8, then: impl FnOnce(&mut bindery_simulation::World, &Asked)) {
        if let Some(asked) = pick(&provisioner::asked(&self.world), number) {
            then(&mut self.world, asked);
        }
    }

    /// The faults stop: everything is told and answered, time passes, and the provisioner makes what it can.
    pub fn heal(&mut self) {
        self.calm();
        self.go_on_for(REST);
        if self.provisioners() > 0 {
            return;
        }
        while let Some(asked) = provisioner::asked(&self.world).first() {
            let node = ObjectKey::cluster(Kind::Node, Name::from(asked.node.as_str()));
            if self.world.get(&node).is_some() {
                make(&mut self.world, asked);
            } else {
                provisioner::refuse(&mut self.world, asked);
            }
            self.go_on_for(REST);
        }
    }

    fn go_on_for(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..20_000 {
            self.spread();
            let has_untold = |seat: &Seat| !seat.untold.is_empty();
            if self.seats.iter().any(|seat| !seat.late.is_empty()) {
                self.deliver(0);
            } else if let Some(seat) = self.seats.iter().position(has_untold) {
                self.watch(seat);
            } else if self.seats.iter().any(|seat| !seat.open.is_empty()) {
                self.request(0, |world, seat, request| world.carry_out(seat, request));
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
        let told: Vec<Event> = self.seats.iter().flat_map(|seat| seat.told.iter().cloned()).collect();
        guards::nothing_left(&self.world, &told);
        if self.provisioners() > 0 {
            let lives: Vec<usize> = self.seats.iter().map(|seat| seat.life).collect();
            self.ledger.nothing_left(&self.world, &lives);
        }
        if self.has_scheduler() {
            places::nothing_left(&self.world);
            self.bring_up_to_date();
        } else {
            let finds = self.seats.iter().map(|seat| seat.engine.stats().resync_finds);
            assert_eq!(finds.sum::<u64>(), 0, "a resync found what no change had woken");
        }
        let counts = |world: &World| {
            let stats = world.seats.iter().map(|seat| seat.engine.stats());
            let sent: Vec<(u64, u64)> = stats.map(|stats| (stats.sent, stats.resync_finds)).collect();
            (world.world.effects, sent)
        };
        let (before, told) = (counts(self), self.trace.len());
        self.go_on_for(3 * RESYNC);
        assert!(self.seats.iter().all(|seat| seat.engine.stats().resyncs > 1));
        let since = &self.trace[told..];
        assert_eq!(counts(self), before, "it is not quiet, or a resync found what no change had woken: {since:#?}");
    }

    /// A pod that waits is woken by what can help it, not by what stands against it in addition: the first resync may find that
    /// the reason it was told is out of date. Nothing else is found.
    fn bring_up_to_date(&mut self) {
        let now = |world: &World| {
            let undated = |(key, object): (&ObjectKey, &Value)| {
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = Value::Null;
                if key.kind == Kind::Pod {
                    object["status"]["conditions"] = Value::Null;
                }
                (key.clone(), object)
            };
            world.world.objects().map(undated).collect::<Vec<_>>()
        };
        let before = now(self);
        self.go_on_for(RESYNC);
        assert_eq!(now(self), before, "a resync found what no change had woken");
    }
}
