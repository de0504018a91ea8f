//! Troubles of a provisioner: a storage that says what it likes or nothing, calls that go on when nobody waits for them any more,
//! and users who change their minds about classes and volumes.

use bindery_engine::{Answer, Input, RequestId};
use bindery_model::finalizer::PROVISIONING;
use bindery_model::{Annotation, Kind, Name, ObjectKey};
use bindery_provisioner::{Config, TopologyConfig};
use bindery_rules_api::{Failure, FailureEffect, Operation, Request};
use bindery_simulation::storage::{Says, Seen};
use serde_json::{Value, json};

use crate::guards::{is_deleting, list};
use crate::ledger::{Caller, has_intent};
use crate::trouble::{World, pick};

/// Something that takes its time. It goes on when nobody waits for it any more: its engine is gone, or has given it up.
#[derive(Debug, Clone)]
pub struct Adrift {
    pub caller: Caller,
    pub request: Request,
    /// The number that its engine waits for.
    awaited: Option<RequestId>,
    /// The class, as it was when that began.
    class: Option<Value>,
    /// The volume behind which something is being removed, as it was when that began.
    volume: Option<Value>,
}

/// What happens to a storage, to what it is asked for, and to whoever asks. Numbers pick one of what there is.
#[derive(Debug, Clone)]
pub enum StorageTrouble {
    /// The storage answers a call so, at once or late.
    Says(u8, Says),
    /// A call reaches the storage, and takes its time.
    Begin(u8),
    /// A call of the storage is given up, and goes on.
    GiveUp(u8),
    /// An engine is replaced, and what it has sent goes on.
    Crash(u8),
    /// Something that took its time, or went on without anybody who waits for it, is done.
    Land(u8),
    /// It never is.
    Sink(u8),
    /// A user takes the intent off a claim, to have it go.
    LetGoOfClaim(u8),
    /// A class is made otherwise.
    EditClass(u8),
    /// A user changes whether a volume is retained.
    ChangePolicy(u8),
}

/// What is between provisioners and their storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drivers {
    /// One for all of them: it does one thing at a time under a name, as CSI wants it.
    One,
    /// One for each, and they do not know of each other.
    OneEach,
}

/// How the provisioners are set up: volumes are reachable from the one node that was chosen.
pub fn config(life: usize) -> Config {
    let topology = Some(TopologyConfig { strict: true, immediate: false });
    Config { instance: life.to_string().into(), supports_block: true, topology, ..Config::new("csi.example.com") }
}

/// The name under which a storage is asked to make or to remove something.
pub fn name_of(request: &Request) -> Option<&str> {
    let Request::RunOperation(operation) = request else { return None };
    match operation {
        operation if operation.is_in_tree() => None,
        Operation::CreateStorage(order, _) => Some(&order.volume),
        Operation::DiscardStorage(_, made) => made["metadata"]["name"].as_str(),
        Operation::DeleteStorage(proof, _) => Some(proof.name()),
        Operation::Prepare(_) | Operation::Recycle(_) => None,
    }
}

/// Whether an operation was not even tried.
pub fn was_untried(answer: &Answer) -> bool {
    matches!(answer, Answer::Done(Err(failure)) if failure.effect == FailureEffect::NotAttempted)
}

/// Whether a volume was made for a claim that has yet to get it. Users who delete such a one are told to delete its claim too:
/// until then neither goes, as with upstream.
pub fn is_awaited(world: &bindery_simulation::World, key: &ObjectKey) -> bool {
    let Some(volume) = world.get(key).filter(|_| key.kind == Kind::Volume && world.storage.is_some()) else {
        return false;
    };
    let owner = &volume["spec"]["claimRef"]["uid"];
    let awaits = |claim: &Value| claim["metadata"]["uid"] == *owner && claim["spec"]["volumeName"].is_null();
    world.objects().any(|(key, claim)| key.kind == Kind::Claim && awaits(claim))
}

fn is_for_storage(request: &Request) -> bool {
    name_of(request).is_some() || matches!(request, Request::RunOperation(Operation::Prepare(_)))
}

impl World {
    pub fn suffer_storage(&mut self, trouble: &StorageTrouble) {
        match trouble {
            StorageTrouble::Says(n, says) => self.storage_says(*n, says),
            StorageTrouble::Begin(n) => self.begin(*n),
            StorageTrouble::GiveUp(n) => self.give_up(*n),
            StorageTrouble::Crash(n) => self.crash(self.seat(*n)),
            StorageTrouble::Land(n) => self.land(*n),
            StorageTrouble::Sink(n) => self.sink(*n),
            StorageTrouble::LetGoOfClaim(n) => self.let_go_of_claim(*n),
            StorageTrouble::EditClass(n) => self.edit_class(*n),
            StorageTrouble::ChangePolicy(n) => self.change_policy(*n),
        }
    }

    /// What comes with an object: a node has drivers on it, and behind a volume there is something.
    pub fn bring_along(&mut self, key: &ObjectKey, object: &mut Value) {
        let Some(storage) = &mut self.world.storage else { return };
        if key.kind == Kind::Volume && object["spec"]["csi"].is_object() {
            let handle = format!("{}@{}", key.name, object["metadata"]["uid"].as_str().unwrap_or_default());
            object["spec"]["csi"]["volumeHandle"] = handle.as_str().into();
            self.ledger.brought(&handle, object);
            // It is not known to the storage by the volume's name.
            storage.holds.insert(handle.clone(), handle);
        }
        if key.kind == Kind::Node {
            let driver = json!({"name": "csi.example.com", "nodeID": "n", "topologyKeys": ["kubernetes.io/hostname"]});
            let name = key.name.as_str();
            let drivers = json!({"metadata": {"name": name, "uid": name}, "spec": {"drivers": [driver]}});
            self.world.put(Kind::CsiNode, drivers);
        }
    }

    fn caller(&self, seat: usize) -> Caller {
        Caller { seat, life: self.seats[seat].life }
    }

    /// A driver does one thing at a time under a name, and survives whoever called it.
    pub fn held_up(&mut self, seat: usize, request: &Request) -> Option<Answer> {
        let name = name_of(request)?;
        let is_same_driver = |other: &Adrift| self.drivers == Drivers::One || other.caller.seat == seat;
        let is_before = |other: &&Adrift| is_same_driver(other) && name_of(&other.request) == Some(name);
        self.adrift.iter().find(is_before)?;
        self.sets_out(seat, request)?;
        self.ledger.begins(self.caller(seat), &self.world, request);
        Some(Answer::Done(Err(Failure::unknown("it is being dealt with"))))
    }

    /// A call was carried out, and this was answered.
    pub fn note_call(&mut self, before: &bindery_simulation::World, seat: usize, request: &Request, answer: &Answer) {
        let caller = self.caller(seat);
        if name_of(request).is_some() && !was_untried(answer) {
            self.ledger.begins(caller, before, request);
            self.ledger.landed(caller, before, &self.world, request);
            self.ledger.said(caller, request, answer, self.drivers);
        }
    }

    pub fn storage_says(&mut self, number: u8, says: &Says) {
        let Some((seat, id, request)) = self.take_request(number, is_for_storage) else { return };
        let Request::RunOperation(operation) = &request else { return };
        if let Some(storage) = &mut self.world.storage {
            match (operation, says) {
                (Operation::Prepare(_), Says::Fails(after)) => storage.prepares.push_back(*after),
                (Operation::CreateStorage(..), says) => storage.makes.push_back(says.clone()),
                (Operation::DiscardStorage(..) | Operation::DeleteStorage(..), says) => {
                    storage.removes.push_back(says.clone())
                }
                (_, _) => {}
            }
        }
        let answer = self.carry_out(seat, &request);
        self.forget_script();
        if number % 2 == 1 {
            self.seats[seat].late.push((id, request, answer));
            return;
        }
        self.heard(seat, &request, &answer);
        self.tell(seat, Input::Answered(id, answer));
    }

    /// What was not said is not said later.
    fn forget_script(&mut self) {
        if let Some(storage) = &mut self.world.storage {
            storage.prepares.clear();
            storage.makes.clear();
            storage.removes.clear();
        }
    }

    /// Whether a storage is called by a request that was sent, and what that is about.
    fn sets_out(&mut self, seat: usize, request: &Request) -> Option<Adrift> {
        let caller = self.caller(seat);
        let mut adrift = Adrift { caller, request: request.clone(), awaited: None, class: None, volume: None };
        if name_of(request).is_none() {
            let is_change = !matches!(request, Request::Read(_) | Request::List(_) | Request::RunOperation(_));
            return is_change.then_some(adrift);
        }
        let Request::RunOperation(operation) = request else { return None };
        let objects = self.world.objects().map(|(key, object)| (key.clone(), object.clone())).collect();
        let seen = Seen::find(operation, &objects).ok()?;
        (adrift.class, adrift.volume) = (seen.class.cloned(), seen.volume.cloned());
        Some(adrift)
    }

    pub fn begin(&mut self, number: u8) {
        let Some((seat, id, request)) = self.take_request(number, |request| name_of(request).is_some()) else { return };
        let answer = match (self.held_up(seat, &request), self.sets_out(seat, &request)) {
            (Some(answer), _) => answer,
            (None, Some(adrift)) => {
                self.ledger.begins(adrift.caller, &self.world, &request);
                self.adrift.push(Adrift { awaited: Some(id), ..adrift });
                return;
            }
            (None, None) => Answer::Done(Err(Failure::new("it is not so any more").with(FailureEffect::NotAttempted))),
        };
        self.tell(seat, Input::Answered(id, answer));
    }

    pub fn give_up(&mut self, number: u8) {
        let awaited: Vec<usize> = (0..self.adrift.len()).filter(|at| self.adrift[*at].awaited.is_some()).collect();
        match pick(&awaited, number) {
            Some(at) => {
                let (caller, id) = (self.adrift[*at].caller, self.adrift[*at].awaited.take());
                self.answer(caller, id, Answer::Done(Err(Failure::unknown("it takes too long"))));
            }
            None => self.begin(number),
        }
    }

    /// Answers an engine, if it is still there and waits.
    fn answer(&mut self, caller: Caller, id: Option<RequestId>, answer: Answer) {
        if let Some(id) = id.filter(|_| self.seats[caller.seat].life == caller.life) {
            self.tell(caller.seat, Input::Answered(id, answer));
        }
    }

    pub fn crash(&mut self, seat: usize) {
        let open: Vec<Request> = self.seats[seat].open.values().cloned().collect();
        for request in open {
            let is_held_up = self.held_up(seat, &request).is_some();
            if let Some(adrift) = self.sets_out(seat, &request).filter(|_| !is_held_up) {
                self.ledger.begins(adrift.caller, &self.world, &request);
                self.has_lost_a_bind |= matches!(request, Request::Bind(_));
                self.adrift.push(adrift);
            }
        }
        self.restart(seat);
    }

    pub fn land(&mut self, number: u8) {
        if self.adrift.is_empty() {
            return;
        }
        let at = usize::from(number) % self.adrift.len();
        let Adrift { caller, request, awaited, class, volume } = self.adrift.remove(at);
        if name_of(&request).is_none() {
            self.carry_out(caller.seat, &request);
            return;
        }
        let before = self.world.clone();
        let (Request::RunOperation(operation), Some(storage)) = (&request, &mut self.world.storage) else { return };
        let outcome = storage.operate(operation, Seen { class: class.as_ref(), volume: volume.as_ref() });
        self.ledger.landed(caller, &before, &self.world, &request);
        if let (Some(outcome), Some(_)) = (outcome, awaited) {
            let answer = Answer::Done(outcome);
            self.ledger.said(caller, &request, &answer, self.drivers);
            self.ledger.heard(caller, &request, &answer);
            self.answer(caller, awaited, answer);
        }
    }

    pub fn sink(&mut self, number: u8) {
        if self.adrift.is_empty() {
            return;
        }
        let Adrift { caller, awaited, .. } = self.adrift.remove(usize::from(number) % self.adrift.len());
        self.answer(caller, awaited, Answer::Done(Err(Failure::unknown("there is no answer"))));
    }

    pub fn let_go_of_claim(&mut self, number: u8) {
        let intended = self.world.objects().filter(|(key, claim)| key.kind == Kind::Claim && has_intent(claim));
        let intended: Vec<ObjectKey> = intended.map(|(key, _)| key.clone()).collect();
        let Some((key, claim)) = pick(&intended, number).and_then(|key| Some((key, self.world.get(key)?))) else {
            return;
        };
        self.ledger.let_go(claim);
        let kept: Vec<Value> =
            list(claim, "/metadata/finalizers").filter(|name| **name != PROVISIONING).cloned().collect();
        let is_over = kept.is_empty() && is_deleting(claim);
        let annotations = json!({Annotation::Provisioning.key(): null});
        self.world.edit(key, json!({"metadata": {"finalizers": kept, "annotations": annotations}}));
        if is_over {
            self.world.remove(key);
        }
    }

    pub fn edit_class(&mut self, number: u8) {
        self.user(number / 2, &[Kind::Class], |world, key| {
            let other = |class: &Value| if class["reclaimPolicy"] == "Delete" { "Retain" } else { "Delete" };
            if let Some(policy) = world.get(key).map(other) {
                world.edit(key, json!({"reclaimPolicy": policy}));
            }
        });
    }

    pub fn change_policy(&mut self, number: u8) {
        self.user(number, &[Kind::Volume], |world, key| {
            let field = "persistentVolumeReclaimPolicy";
            let other = |volume: &Value| if volume["spec"][field] == "Delete" { "Retain" } else { "Delete" };
            if let Some(policy) = world.get(key).map(other) {
                world.edit(key, json!({"spec": {field: policy}}));
            }
        });
    }

    /// Drivers go with their nodes.
    pub fn collect_drivers(&mut self) {
        let drivers = self.world.objects().filter(|(key, _)| key.kind == Kind::CsiNode).map(|(key, _)| key.clone());
        let has_node =
            |key: &ObjectKey| self.world.get(&ObjectKey::cluster(Kind::Node, Name::clone(&key.name))).is_some();
        let left: Vec<ObjectKey> = drivers.filter(|key| !has_node(key)).collect();
        left.iter().for_each(|key| self.world.remove(key));
    }

    /// What went on is done, and the storage is well again.
    pub fn calm(&mut self) {
        while !self.adrift.is_empty() {
            self.land(0);
        }
        self.collect_drivers();
    }

    /// An engine heard this.
    pub fn heard(&mut self, seat: usize, request: &Request, answer: &Answer) {
        if name_of(request).is_some() {
            self.ledger.heard(self.caller(seat), request, answer);
        }
    }
}
