//! Faults of provisioning: arbitrary or lost responses of the storage backend, calls that continue
//! after a timeout or a crash, and users who change classes, policies and records.

use bindery_engine::{Answer, Input, RequestId};
use bindery_model::{Kind, Name, ObjectKey};
use bindery_provisioner::{Config, TopologyConfig};
use bindery_rules_api::{Failure, FailureEffect, Operation, Request};
use bindery_simulation::SimulatedCluster;
use bindery_simulation::storage::{LiveObjects, Response};
use serde_json::{Value, json};

use crate::faults::{ChaosRun, pick};
use crate::storage_ledger::Caller;

/// A running call. It continues after its engine was replaced or gave up waiting.
#[derive(Debug, Clone)]
pub struct InFlightCall {
    pub caller: Caller,
    pub request: Request,
    /// The request that its engine waits for.
    awaited: Option<RequestId>,
    /// The volume when the call to delete its storage was started.
    volume: Option<Value>,
}

/// Something that happens to the storage backend or its callers. Numbers select an item.
#[derive(Debug, Clone)]
pub enum StorageFault {
    /// The storage backend responds to a call, at once or delayed.
    Respond(u8, Response),
    /// A call is started and keeps running.
    Start(u8),
    /// A running call times out, but continues.
    TimeOut(u8),
    /// An engine crashes, but its requests continue.
    Crash(u8),
    /// A running call finishes.
    Finish(u8),
    /// A running call is lost.
    NeverFinish(u8),
    /// A user removes a provisioning record by hand.
    RemoveRecord(u8),
    /// A user changes the reclaim policy of a class.
    EditClass(u8),
    /// A user changes the reclaim policy of a volume.
    ChangePolicy(u8),
}

/// The CSI drivers between the provisioners and the storage backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drivers {
    /// One driver for all, which runs one call per name at a time, as CSI requires.
    One,
    /// One driver per provisioner, without coordination.
    OneEach,
}

/// The configuration of the provisioners: volumes are reachable from the selected node only.
pub fn config(incarnation: usize) -> Config {
    let topology = Some(TopologyConfig { strict: true, immediate: false });
    Config {
        instance: incarnation.to_string().into(),
        supports_block: true,
        topology,
        ..Config::new("csi.example.com")
    }
}

/// The volume name in a call to create or delete storage.
pub fn name_of(request: &Request) -> Option<&str> {
    let Request::RunOperation(operation) = request else { return None };
    match operation {
        operation if operation.is_in_tree() => None,
        Operation::CreateStorage(order, _) => Some(&order.volume),
        Operation::DiscardStorage(_, volume) => volume["metadata"]["name"].as_str(),
        Operation::DeleteStorage(proof, _) => Some(proof.name()),
        Operation::Prepare(_) | Operation::Recycle(_) => None,
    }
}

/// Whether an operation was not attempted.
pub fn was_untried(answer: &Answer) -> bool {
    matches!(answer, Answer::Done(Err(failure)) if matches!(failure.effect, FailureEffect::NotAttempted | FailureEffect::Stale))
}

/// Whether a volume was provisioned for a claim that is not bound to it yet. Users are advised to
/// delete such a volume together with its claim: until then both stay, as upstream.
pub fn is_awaited_by_claim(cluster: &SimulatedCluster, key: &ObjectKey) -> bool {
    let Some(volume) = cluster.get(key).filter(|_| key.kind == Kind::Volume && cluster.storage.is_some()) else {
        return false;
    };
    let owner = &volume["spec"]["claimRef"]["uid"];
    let awaits = |claim: &Value| claim["metadata"]["uid"] == *owner && claim["spec"]["volumeName"].is_null();
    cluster.objects().any(|(key, claim)| key.kind == Kind::Claim && awaits(claim))
}

fn is_storage_call(request: &Request) -> bool {
    name_of(request).is_some() || matches!(request, Request::RunOperation(Operation::Prepare(_)))
}

impl ChaosRun {
    pub fn apply_storage(&mut self, fault: &StorageFault) {
        match fault {
            StorageFault::Respond(n, response) => self.respond(*n, response),
            StorageFault::Start(n) => self.start_call(*n),
            StorageFault::TimeOut(n) => self.time_out(*n),
            StorageFault::Crash(n) => self.crash(self.participant(*n)),
            StorageFault::Finish(n) => self.finish_call(*n),
            StorageFault::NeverFinish(n) => self.never_finish(*n),
            StorageFault::RemoveRecord(n) => self.remove_record(*n),
            StorageFault::EditClass(n) => self.edit_class(*n),
            StorageFault::ChangePolicy(n) => self.change_policy(*n),
        }
    }

    /// Adds what belongs to an object: the drivers of a node, the backing storage of a volume.
    pub fn add_related(&mut self, key: &ObjectKey, object: &mut Value) {
        let Some(storage) = &mut self.cluster.storage else { return };
        if key.kind == Kind::Volume && object["spec"]["csi"].is_object() {
            let handle = format!("{}@{}", key.name, object["metadata"]["uid"].as_str().unwrap_or_default());
            object["spec"]["csi"]["volumeHandle"] = handle.as_str().into();
            self.ledger.created_by_user(&handle, object);
            // The storage backend does not know it by the volume's name.
            storage.handles.insert(handle.clone(), handle);
        }
        if key.kind == Kind::Node {
            let driver = json!({"name": "csi.example.com", "nodeID": "n", "topologyKeys": ["kubernetes.io/hostname"]});
            let name = key.name.as_str();
            let drivers = json!({"metadata": {"name": name, "uid": name}, "spec": {"drivers": [driver]}});
            self.cluster.put(Kind::CsiNode, drivers);
        }
    }

    fn caller(&self, participant: usize) -> Caller {
        Caller { participant, incarnation: self.participants[participant].incarnation }
    }

    /// The answer if the driver already runs a call under the same name.
    pub fn blocked_by_call(&mut self, participant: usize, request: &Request) -> Option<Answer> {
        let name = name_of(request)?;
        let is_same_driver =
            |other: &InFlightCall| self.drivers == Drivers::One || other.caller.participant == participant;
        let is_before = |other: &&InFlightCall| is_same_driver(other) && name_of(&other.request) == Some(name);
        self.in_flight.iter().find(is_before)?;
        self.begin_call(participant, request)?;
        self.ledger.call_started(self.caller(participant), &self.cluster, request);
        Some(Answer::Done(Err(Failure::unknown("an operation for this volume is already in progress"))))
    }

    /// Records a call that was carried out, and its answer.
    pub fn note_call(&mut self, before: &SimulatedCluster, participant: usize, request: &Request, answer: &Answer) {
        let caller = self.caller(participant);
        if name_of(request).is_some() && !was_untried(answer) {
            self.ledger.call_started(caller, before, request);
            self.ledger.call_finished(caller, before, &self.cluster, request);
            self.ledger.answered(caller, request, answer, self.drivers);
        }
    }

    pub fn respond(&mut self, number: u8, response: &Response) {
        let Some((participant, id, request)) = self.take_request(number, is_storage_call) else { return };
        let Request::RunOperation(operation) = &request else { return };
        if let Some(storage) = &mut self.cluster.storage {
            match (operation, response) {
                (Operation::Prepare(_), Response::Fails(after)) => storage.prepare_responses.push_back(*after),
                (Operation::CreateStorage(..), response) => storage.create_responses.push_back(response.clone()),
                (Operation::DiscardStorage(..) | Operation::DeleteStorage(..), response) => {
                    storage.delete_responses.push_back(response.clone())
                }
                (_, _) => {}
            }
        }
        let answer = self.carry_out(participant, &request);
        self.drop_responses();
        if number % 2 == 1 {
            self.participants[participant].late.push((id, request, answer));
            return;
        }
        self.note_received(participant, &request, &answer);
        self.send(participant, Input::Answered(id, answer));
    }

    /// Drops responses that were not used.
    fn drop_responses(&mut self) {
        if let Some(storage) = &mut self.cluster.storage {
            storage.prepare_responses.clear();
            storage.create_responses.clear();
            storage.delete_responses.clear();
        }
    }

    /// The running call for a request that was sent, unless it is not attempted.
    fn begin_call(&mut self, participant: usize, request: &Request) -> Option<InFlightCall> {
        let caller = self.caller(participant);
        let mut in_flight = InFlightCall { caller, request: request.clone(), awaited: None, volume: None };
        if name_of(request).is_none() {
            let is_change = !matches!(request, Request::Read(_) | Request::List(_) | Request::RunOperation(_));
            return is_change.then_some(in_flight);
        }
        let Request::RunOperation(operation) = request else { return None };
        let objects = self.cluster.objects().map(|(key, object)| (key.clone(), object.clone())).collect();
        let seen = LiveObjects::find(operation, &objects).ok()?;
        in_flight.volume = seen.volume.cloned();
        Some(in_flight)
    }

    pub fn start_call(&mut self, number: u8) {
        let Some((participant, id, request)) = self.take_request(number, |request| name_of(request).is_some()) else {
            return;
        };
        let answer = match (self.blocked_by_call(participant, &request), self.begin_call(participant, &request)) {
            (Some(answer), _) => answer,
            (None, Some(in_flight)) => {
                self.ledger.call_started(in_flight.caller, &self.cluster, &request);
                self.in_flight.push(InFlightCall { awaited: Some(id), ..in_flight });
                return;
            }
            (None, None) => {
                Answer::Done(Err(Failure::new("the request is outdated").with(FailureEffect::NotAttempted)))
            }
        };
        self.send(participant, Input::Answered(id, answer));
    }

    pub fn time_out(&mut self, number: u8) {
        let awaited: Vec<usize> =
            (0..self.in_flight.len()).filter(|at| self.in_flight[*at].awaited.is_some()).collect();
        match pick(&awaited, number) {
            Some(at) => {
                let (caller, id) = (self.in_flight[*at].caller, self.in_flight[*at].awaited.take());
                self.answer(caller, id, Answer::Done(Err(Failure::unknown("timeout"))));
            }
            None => self.start_call(number),
        }
    }

    /// Answers an engine, if it was not replaced and still waits.
    fn answer(&mut self, caller: Caller, id: Option<RequestId>, answer: Answer) {
        if let Some(id) = id.filter(|_| self.participants[caller.participant].incarnation == caller.incarnation) {
            self.send(caller.participant, Input::Answered(id, answer));
        }
    }

    pub fn crash(&mut self, participant: usize) {
        let open: Vec<Request> = self.participants[participant].open.values().cloned().collect();
        for request in open {
            let is_blocked = self.blocked_by_call(participant, &request).is_some();
            if let Some(in_flight) = self.begin_call(participant, &request).filter(|_| !is_blocked) {
                self.ledger.call_started(in_flight.caller, &self.cluster, &request);
                self.has_lost_pod_binding |= matches!(request, Request::Bind(_));
                self.in_flight.push(in_flight);
            }
        }
        self.restart(participant);
    }

    pub fn finish_call(&mut self, number: u8) {
        if self.in_flight.is_empty() {
            return;
        }
        let at = usize::from(number) % self.in_flight.len();
        let InFlightCall { caller, request, awaited, volume } = self.in_flight.remove(at);
        if name_of(&request).is_none() {
            self.carry_out(caller.participant, &request);
            return;
        }
        let before = self.cluster.clone();
        let (Request::RunOperation(operation), Some(storage)) = (&request, &mut self.cluster.storage) else { return };
        let outcome = storage.operate(operation, LiveObjects { class: None, volume: volume.as_ref() });
        self.ledger.call_finished(caller, &before, &self.cluster, &request);
        if let (Some(outcome), Some(_)) = (outcome, awaited) {
            let answer = Answer::Done(outcome);
            self.ledger.answered(caller, &request, &answer, self.drivers);
            self.ledger.answer_received(caller, &request, &answer);
            self.answer(caller, awaited, answer);
        }
    }

    pub fn never_finish(&mut self, number: u8) {
        if self.in_flight.is_empty() {
            return;
        }
        let InFlightCall { caller, awaited, .. } = self.in_flight.remove(usize::from(number) % self.in_flight.len());
        self.answer(caller, awaited, Answer::Done(Err(Failure::unknown("no answer"))));
    }

    pub fn remove_record(&mut self, number: u8) {
        let records = self.cluster.objects().filter(|(key, _)| key.kind == Kind::Record);
        let records: Vec<ObjectKey> = records.map(|(key, _)| key.clone()).collect();
        if let Some(key) = pick(&records, number) {
            self.ledger.record_removed(&key.name);
            self.cluster.remove(key);
        }
    }

    pub fn edit_class(&mut self, number: u8) {
        self.user(number / 2, &[Kind::Class], |cluster, key| {
            let other = |class: &Value| if class["reclaimPolicy"] == "Delete" { "Retain" } else { "Delete" };
            if let Some(policy) = cluster.get(key).map(other) {
                cluster.edit(key, json!({"reclaimPolicy": policy}));
            }
        });
    }

    pub fn change_policy(&mut self, number: u8) {
        self.user(number, &[Kind::Volume], |cluster, key| {
            let field = "persistentVolumeReclaimPolicy";
            let other = |volume: &Value| if volume["spec"][field] == "Delete" { "Retain" } else { "Delete" };
            if let Some(policy) = cluster.get(key).map(other) {
                cluster.edit(key, json!({"spec": {field: policy}}));
            }
        });
    }

    /// Deletes the CSINodes of deleted nodes.
    pub fn collect_drivers(&mut self) {
        let drivers = self.cluster.objects().filter(|(key, _)| key.kind == Kind::CsiNode).map(|(key, _)| key.clone());
        let has_node =
            |key: &ObjectKey| self.cluster.get(&ObjectKey::cluster(Kind::Node, Name::clone(&key.name))).is_some();
        let left: Vec<ObjectKey> = drivers.filter(|key| !has_node(key)).collect();
        left.iter().for_each(|key| self.cluster.remove(key));
    }

    /// Finishes all running calls.
    pub fn finish_storage_calls(&mut self) {
        while !self.in_flight.is_empty() {
            self.finish_call(0);
        }
        self.collect_drivers();
    }

    /// Records that an engine received an answer.
    pub fn note_received(&mut self, participant: usize, request: &Request, answer: &Answer) {
        if name_of(request).is_some() {
            self.ledger.answer_received(self.caller(participant), request, answer);
        }
    }
}
