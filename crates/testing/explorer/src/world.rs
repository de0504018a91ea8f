//! A world: an API server, a storage, instances, and everything that can happen to them.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bindery_engine::{Answer, Input, RequestError, RequestId};
use bindery_model::hash::digest_unordered;
use bindery_model::{Claim, Kind, Object, ObjectKey};
use bindery_rules_api::{Failure, FailureEffect, Operation, Request};
use bindery_simulation::describe;
use bindery_simulation::storage::{LiveObjects, Response, StorageBackend};
use serde_json::Value;

use crate::instance::{Call, Instance, OpenRequest, Rules, Stage};
use crate::promises;
use crate::search::Model;
use crate::server::{Event, Server};

/// An action of a user, which may happen once, at any time.
#[derive(Debug, Clone)]
pub enum UserAction {
    /// Deletes an object.
    Delete(ObjectKey),
    /// Creates the objects of notation lines.
    Create(&'static str),
    /// Changes an object by a merge patch, without a precondition.
    Edit(ObjectKey, Value),
    /// Creates a pod on a node, unless a claim is being deleted: then no scheduler would.
    Run(&'static str),
}

/// How often each fault may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// An instance crashes and starts again.
    pub crashes: u8,
    /// The answer to a change is lost, or the request is.
    pub lost_answers: u8,
    /// A request that its sender no longer waits for is carried out later. A running call of the
    /// storage always ends, with or without an effect.
    pub late_requests: u8,
    /// A timer fires while something else could happen.
    pub early_timers: u8,
    /// The storage fails for certain, without an effect.
    pub storage_failures: u8,
}

/// Checks a state in which nothing happens anymore.
pub type EndCheck = fn(&World) -> Result<(), String>;

/// What is explored.
#[derive(Clone)]
pub struct Scenario {
    /// The objects at the start, in the simulation's notation.
    pub objects: &'static str,
    /// The instances. All of them believe to be the leader.
    pub instances: Vec<Rules>,
    /// How many changes may overtake a watch event, a request or an answer. Without a bound, an
    /// instance that never learns of a change could work against one that knows it forever.
    pub lag: u64,
    /// Whether the instances do not differ, so that exchanging them gives the same state.
    pub is_symmetric: bool,
    /// The actions of users.
    pub users: Vec<UserAction>,
    /// The faults.
    pub faults: Faults,
    /// The promises for states in which nothing happens anymore.
    pub ends: Vec<EndCheck>,
    /// Whether the API server ignores resourceVersions: a defect, to test the explorer.
    pub ignores_versions: bool,
}

/// A state.
#[derive(Clone)]
pub struct World {
    scenario: Arc<Scenario>,
    /// The API server.
    pub server: Arc<Server>,
    /// The storage.
    pub storage: Arc<StorageBackend>,
    instances: Vec<Arc<Instance>>,
    /// Requests that no instance waits for anymore, but that may still be carried out.
    late: Vec<Arc<OpenRequest>>,
    /// The actions of users that have not happened yet.
    users: Vec<usize>,
    faults: Faults,
    started: usize,
}

/// What can happen. The numbers are those of instances, late requests and actions of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The next watch event of a kind is delivered.
    Watch(usize, Kind),
    /// The worker reads objects live, and calls the storage.
    Start(usize, RequestId),
    /// The API server or the storage carries out a request.
    Execute(usize, RequestId),
    /// An answer is delivered.
    Answer(usize, RequestId),
    /// Time passes until the next timer. Without a fault, everything else happens first.
    Tick(usize),
    /// The same, before something else that could happen.
    EarlyTick(usize),
    /// A user acts.
    User(usize),
    /// An instance crashes and starts again.
    Crash(usize),
    /// An instance learns that there was no answer. A request that was not carried out yet may be
    /// carried out later.
    Lose(usize, RequestId),
    /// The storage reports a failure without an effect.
    Fail(usize, RequestId),
    /// The API server carries out a late request.
    Late(usize),
    /// The storage finishes a call that no instance waits for anymore.
    Finish(usize),
    /// The same, but without an effect.
    Abort(usize),
}

impl World {
    /// The world of a scenario at its start.
    pub fn start(scenario: Scenario) -> World {
        let mut server = Server::with(scenario.objects);
        server.take_events();
        server.ignores_versions = scenario.ignores_versions;
        let mut world = World {
            server: Arc::new(server),
            storage: Arc::default(),
            instances: Vec::new(),
            late: Vec::new(),
            users: (0..scenario.users.len()).collect(),
            faults: scenario.faults,
            started: 0,
            scenario: Arc::new(scenario),
        };
        for of in 0..world.scenario.instances.len() {
            let instance = world.new_instance(of).expect("the start breaks no promise");
            world.instances.push(Arc::new(instance));
        }
        world
    }

    fn new_instance(&mut self, of: usize) -> Result<Instance, String> {
        self.started += 1;
        Instance::start(&self.scenario.instances[of], self.started, &self.server)
    }

    fn instance(&mut self, of: usize) -> &mut Instance {
        Arc::make_mut(&mut self.instances[of])
    }

    fn handle(&mut self, of: usize, input: Input) -> Result<(), String> {
        let changes = self.server.changes;
        self.instance(of).handle(input, changes)
    }

    fn tick(&mut self, of: usize) -> Result<(), String> {
        let changes = self.server.changes;
        self.instance(of).tick(changes)
    }

    fn open(&self, of: usize, id: RequestId) -> &OpenRequest {
        &self.instances[of].open[&id]
    }

    /// Changes the API server, and reports the changes to all watches.
    fn change(&mut self, change: impl FnOnce(&mut Server) -> Answer) -> Answer {
        let server = Arc::make_mut(&mut self.server);
        let answer = change(server);
        for event in server.take_events().into_iter().map(Arc::new) {
            self.report(&event);
        }
        answer
    }

    fn report(&mut self, event: &Arc<Event>) {
        for instance in &mut self.instances {
            if instance.watches.contains_key(&event.key.kind) {
                Arc::make_mut(instance).watch(event);
            }
        }
    }

    /// Carries out a request, and checks the promises.
    fn execute(&mut self, request: &Request, call: Option<&Call>, response: Response) -> Result<Answer, String> {
        let Request::RunOperation(operation) = request else {
            let before = self.server.clone();
            let answer = self.change(|server| server.execute(request));
            if !matches!(answer, Answer::Rejected(_)) {
                promises::check_request(&before, &self.server, request)?;
            }
            return Ok(answer);
        };
        let live = call.map(|call| LiveObjects { class: call.class.as_ref(), volume: call.volume.as_ref() });
        let storage = Arc::make_mut(&mut self.storage);
        match operation {
            Operation::CreateStorage(..) => storage.create_responses = [response].into(),
            Operation::DiscardStorage(..) | Operation::DeleteStorage(..) => {
                storage.delete_responses = [response].into()
            }
            Operation::Prepare(_) | Operation::Recycle(_) => {}
        }
        let outcome = storage.operate(operation, live.unwrap_or_default());
        promises::check_storage(&self.storage)?;
        Ok(Answer::Done(outcome.expect("worlds have no in-tree storage")))
    }

    /// The worker reads live objects and calls the storage, unless the operation is outdated or the
    /// driver is already running a call for the volume.
    fn start_call(&mut self, of: usize, id: RequestId) -> Result<(), String> {
        let request = self.open(of, id).request.clone();
        let Request::RunOperation(operation) = &*request else { return Ok(()) };
        let objects: BTreeMap<ObjectKey, Value> =
            self.server.objects().map(|(key, stored)| (key.clone(), stored.json.clone())).collect();
        let stage = match LiveObjects::find(operation, &objects) {
            Err(failure) => Stage::answered(Answer::Done(Err(failure))),
            Ok(live) => {
                let call = Call { class: live.class.cloned(), volume: live.volume.cloned() };
                if matches!(operation, Operation::Prepare(_)) {
                    Stage::answered(self.execute(&request, Some(&call), Response::Done)?)
                } else if self.is_running(&request) {
                    Stage::answered(Answer::Done(Err(Failure::unknown("already in progress"))))
                } else {
                    promises::check_call(&self.server, operation)?;
                    Stage::Started(Arc::new(call))
                }
            }
        };
        self.set_stage(of, id, stage);
        Ok(())
    }

    /// Whether the storage is running a call for the same volume.
    fn is_running(&self, request: &Request) -> bool {
        let open = self.instances.iter().flat_map(|instance| instance.open.values());
        let mut all = open.chain(self.late.iter().map(|late| &**late));
        let name = volume_name(request);
        all.any(|other| matches!(other.stage, Stage::Started(_)) && volume_name(&other.request) == name)
    }

    fn set_stage(&mut self, of: usize, id: RequestId, stage: Stage) {
        let since = self.server.changes;
        if let Some(open) = self.instance(of).open.get_mut(&id) {
            (open.stage, open.since) = (stage, since);
        }
    }

    /// Keeps a request that no instance waits for anymore, if it can have an effect later.
    fn keep_late(&mut self, open: OpenRequest) {
        let may_happen = match open.stage {
            // The worker calls the storage only while its instance is running.
            Stage::Sent => !matches!(*open.request, Request::RunOperation(_)) && self.faults.late_requests > 0,
            Stage::Started(_) => true,
            Stage::Answered(..) => false,
        };
        if may_happen {
            self.late.push(Arc::new(open));
        }
    }

    fn act(&mut self, action: usize) {
        let scenario = self.scenario.clone();
        self.change(|server| {
            match &scenario.users[action] {
                UserAction::Delete(key) => server.delete(key),
                UserAction::Create(lines) | UserAction::Run(lines) => server.add(lines),
                UserAction::Edit(key, patch) => server.edit(key, patch),
            }
            Answer::Deleted(None)
        });
        self.users.retain(|other| *other != action);
    }

    /// Whether an action of a user would change something.
    fn can_act(&self, action: usize) -> bool {
        match &self.scenario.users[action] {
            UserAction::Delete(key) | UserAction::Edit(key, _) => self.server.get(key).is_some(),
            UserAction::Run(_) => self.server.objects().all(|(_, stored)| !is_deleting_claim(&stored.object)),
            UserAction::Create(lines) => {
                let created = Server::with(lines);
                created.objects().any(|(key, _)| self.server.get(key).is_none())
            }
        }
    }

    fn crash(&mut self, of: usize) -> Result<(), String> {
        self.faults.crashes -= 1;
        for open in std::mem::take(&mut self.instance(of).open).into_values() {
            self.keep_late(open);
        }
        self.instances[of] = Arc::new(self.new_instance(of)?);
        Ok(())
    }

    fn lose(&mut self, to: usize, id: RequestId) -> Result<(), String> {
        self.faults.lost_answers -= 1;
        let Some(open) = self.instance(to).open.remove(&id) else { return Ok(()) };
        let answer = match *open.request {
            Request::RunOperation(_) => Answer::Done(Err(Failure::unknown("timeout"))),
            Request::Write(_)
            | Request::Create(_)
            | Request::Bind(_)
            | Request::Delete(_)
            | Request::Read(_)
            | Request::List(_) => Answer::Rejected(RequestError::Lost),
        };
        self.keep_late(open);
        self.handle(to, Input::Answered(id, answer))
    }

    /// The steps that happen without a fault, except timers.
    fn progress(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (of, instance) in self.instances.iter().enumerate() {
            let waiting = instance.watches.iter().filter(|(_, events)| !events.is_empty());
            steps.extend(waiting.map(|(kind, _)| Step::Watch(of, *kind)));
            steps.extend(instance.open.iter().map(|(id, open)| next_step(of, *id, open)));
        }
        let is_call = |at: &usize| matches!(self.late[*at].stage, Stage::Started(_));
        steps.extend((0..self.late.len()).filter(is_call).flat_map(|at| [Step::Finish(at), Step::Abort(at)]));
        steps
    }

    /// A step whose order relative to all others is not explored.
    ///
    /// A conditional request whose object has changed is rejected, now or later: no object gets a
    /// former version again, and the engine does not distinguish a conflict from a missing object.
    /// So rejecting it at once loses no behaviour. That a watch reports what the instance already
    /// knows from an answer changes nothing but the version up to which the watch is complete; it
    /// is assumed to happen at once.
    fn certain_step(&self) -> Option<Step> {
        self.instances.iter().enumerate().find_map(|(of, instance)| {
            let is_rejected = |open: &OpenRequest| {
                let is_conditional = matches!(*open.request, Request::Write(_) | Request::Delete(_));
                matches!(open.stage, Stage::Sent) && is_conditional && self.server.is_obsolete(&open.request)
            };
            let rejected = instance.open.iter().find(|(_, open)| is_rejected(open));
            let known =
                || instance.watches.iter().find(|(_, events)| events.front().is_some_and(|e| instance.knows(e)));
            let rejected = rejected.map(|(id, _)| Step::Execute(of, *id));
            rejected.or_else(|| known().map(|(kind, _)| Step::Watch(of, *kind)))
        })
    }

    /// The steps that no further change may overtake.
    fn overdue(&self) -> Vec<Step> {
        let is_overdue = |since: u64| self.server.changes - since >= self.scenario.lag;
        let mut steps = Vec::new();
        for (of, instance) in self.instances.iter().enumerate() {
            let is_late = |events: &VecDeque<Arc<Event>>| events.front().is_some_and(|event| is_overdue(event.change));
            let watches = instance.watches.iter().filter(|(_, events)| is_late(events));
            steps.extend(watches.map(|(kind, _)| Step::Watch(of, *kind)));
            let open = instance.open.iter().filter(|(_, open)| is_overdue(open.since));
            steps.extend(open.map(|(id, open)| next_step(of, *id, open)));
        }
        steps
    }

    /// The faults that can happen now.
    fn possible_faults(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (of, instance) in self.instances.iter().enumerate() {
            if self.faults.crashes > 0 {
                steps.push(Step::Crash(of));
            }
            for (id, open) in &instance.open {
                // A lost read is a late read.
                let is_lost = match (&open.stage, &*open.request) {
                    (_, Request::Read(_) | Request::List(_) | Request::RunOperation(Operation::Prepare(_))) => false,
                    (Stage::Sent, Request::RunOperation(_)) => false,
                    (Stage::Sent | Stage::Started(_) | Stage::Answered(..), _) => true,
                };
                if is_lost && self.faults.lost_answers > 0 {
                    steps.push(Step::Lose(of, *id));
                }
                if matches!(open.stage, Stage::Started(_)) && self.faults.storage_failures > 0 {
                    steps.push(Step::Fail(of, *id));
                }
            }
        }
        if self.faults.late_requests > 0 {
            let is_sent = |at: &usize| matches!(self.late[*at].stage, Stage::Sent);
            steps.extend((0..self.late.len()).filter(is_sent).map(Step::Late));
        }
        steps
    }
}

impl Model for World {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        if let Some(step) = self.certain_step() {
            return vec![step];
        }
        let overdue = self.overdue();
        if !overdue.is_empty() {
            return overdue;
        }
        let mut steps = self.progress();
        let timers = (0..self.instances.len()).filter(|of| self.instances[*of].has_timer());
        if steps.is_empty() {
            steps.extend(timers.map(Step::Tick));
        } else if self.faults.early_timers > 0 {
            steps.extend(timers.map(Step::EarlyTick));
        }
        steps.extend(self.possible_faults());
        steps.extend(self.users.iter().copied().filter(|action| self.can_act(*action)).map(Step::User));
        steps
    }

    fn is_optional(step: Step) -> bool {
        match step {
            Step::Watch(..)
            | Step::Start(..)
            | Step::Execute(..)
            | Step::Answer(..)
            | Step::Tick(_)
            | Step::Finish(_)
            | Step::Abort(_) => false,
            Step::EarlyTick(_) | Step::User(_) | Step::Crash(_) | Step::Lose(..) | Step::Fail(..) | Step::Late(_) => {
                true
            }
        }
    }

    fn after(&self, step: Step) -> Result<World, String> {
        let mut world = self.clone();
        match step {
            Step::Watch(to, kind) => {
                let event = world.instance(to).watches.get_mut(&kind).and_then(|events| events.pop_front());
                world.handle(to, Input::from(&*event.expect("the step is possible")))?;
            }
            Step::Start(of, id) => world.start_call(of, id)?,
            Step::Execute(of, id) | Step::Fail(of, id) => {
                let open = world.open(of, id).clone();
                let call = if let Stage::Started(call) = &open.stage { Some(&**call) } else { None };
                let mut response = Response::Done;
                if matches!(step, Step::Fail(..)) {
                    world.faults.storage_failures -= 1;
                    response = Response::Fails(FailureEffect::Nothing);
                }
                let answer = world.execute(&open.request, call, response)?;
                world.set_stage(of, id, Stage::answered(answer));
            }
            Step::Answer(to, id) => {
                let answered = world.instance(to).open.remove(&id).map(|open| open.stage);
                if let Some(Stage::Answered(answer, _)) = answered {
                    world.handle(to, Input::Answered(id, (*answer).clone()))?;
                }
            }
            Step::Tick(of) => world.tick(of)?,
            Step::EarlyTick(of) => {
                world.faults.early_timers -= 1;
                world.tick(of)?;
            }
            Step::User(action) => world.act(action),
            Step::Crash(of) => world.crash(of)?,
            Step::Lose(to, id) => world.lose(to, id)?,
            Step::Late(at) => {
                world.faults.late_requests -= 1;
                let late = world.late.remove(at);
                world.execute(&late.request, None, Response::Done)?;
            }
            Step::Finish(at) => {
                let late = world.late.remove(at);
                if let Stage::Started(call) = &late.stage {
                    world.execute(&late.request, Some(call), Response::Done)?;
                }
            }
            Step::Abort(at) => drop(world.late.remove(at)),
        }
        let (server, faults) = (world.server.clone(), world.faults);
        let may_happen = |late: &OpenRequest| match late.stage {
            Stage::Sent => faults.late_requests > 0 && !server.is_obsolete(&late.request),
            Stage::Started(_) => true,
            Stage::Answered(..) => false,
        };
        world.late.retain(|late| may_happen(late));
        Ok(world)
    }

    fn digest(&self) -> u64 {
        let mut state = DefaultHasher::new();
        self.server.digest(&mut state);
        format!("{:?}", self.storage).hash(&mut state);
        let instances = self.instances.iter().map(|instance| instance.digest(self.server.changes));
        if self.scenario.is_symmetric {
            digest_unordered(instances, &mut state);
        } else {
            instances.for_each(|instance| instance.hash(&mut state));
            self.started.hash(&mut state);
        }
        digest_unordered(self.late.iter().map(|late| (late.digest, late.stage.digest())), &mut state);
        (&self.users, self.faults).hash(&mut state);
        state.finish()
    }

    fn check_end(&self) -> Result<(), String> {
        self.scenario.ends.iter().try_for_each(|check| check(self))
    }

    fn describe(&self, step: Step) -> String {
        let request = |of: usize, id: RequestId| describe(&self.open(of, id).request).1;
        let name = |of: usize| ["A", "B", "C"][of];
        match step {
            Step::Watch(to, kind) => {
                let event = self.instances[to].watches[&kind].front().map(|event| {
                    format!("{} {}", event.key, if event.object.is_some() { "changed" } else { "was deleted" })
                });
                format!("{} watches: {}", name(to), event.unwrap_or_default())
            }
            Step::Start(of, id) => format!("{} calls the storage: {}", name(of), request(of, id)),
            Step::Execute(of, id) => format!("carried out for {}: {}", name(of), request(of, id)),
            Step::Answer(to, id) => {
                let error = match &self.open(to, id).stage {
                    Stage::Answered(answer, _) => match &**answer {
                        Answer::Rejected(error) => format!(": {error}"),
                        Answer::Done(Err(failure)) => format!(": {} ({:?})", failure.error, failure.effect),
                        Answer::Read(None) => ": not found".to_owned(),
                        Answer::Written(_)
                        | Answer::Deleted(_)
                        | Answer::Read(Some(_))
                        | Answer::Listed(_)
                        | Answer::Done(Ok(_)) => String::new(),
                    },
                    Stage::Sent | Stage::Started(_) => String::new(),
                };
                format!("{} is answered: {}{error}", name(to), request(to, id))
            }
            Step::Tick(of) | Step::EarlyTick(of) => format!("a timer of {} fires", name(of)),
            Step::User(action) => format!("a user: {:?}", self.scenario.users[action]),
            Step::Crash(of) => format!("{} crashes and starts again", name(of)),
            Step::Lose(to, id) => {
                let stage = match &self.open(to, id).stage {
                    Stage::Sent => "not carried out yet",
                    Stage::Started(_) => "still running",
                    Stage::Answered(..) => "carried out",
                };
                format!("{} gets no answer ({stage}): {}", name(to), request(to, id))
            }
            Step::Fail(of, id) => format!("the storage fails for {}: {}", name(of), request(of, id)),
            Step::Late(at) | Step::Finish(at) => format!("carried out late: {}", describe(&self.late[at].request).1),
            Step::Abort(at) => format!("ends without an effect: {}", describe(&self.late[at].request).1),
        }
    }
}

fn is_deleting_claim(object: &Object) -> bool {
    object.get::<Claim>().is_some_and(|claim| claim.deleting)
}

/// What happens next to a request.
fn next_step(of: usize, id: RequestId, open: &OpenRequest) -> Step {
    match (&open.stage, &*open.request) {
        (Stage::Sent, Request::RunOperation(_)) => Step::Start(of, id),
        (Stage::Sent | Stage::Started(_), _) => Step::Execute(of, id),
        (Stage::Answered(..), _) => Step::Answer(of, id),
    }
}

/// The volume that an operation creates or deletes storage for.
fn volume_name(request: &Request) -> Option<String> {
    let Request::RunOperation(operation) = request else { return None };
    match operation {
        Operation::CreateStorage(order, _) => Some(order.volume.to_string()),
        Operation::DiscardStorage(_, volume) => volume["metadata"]["name"].as_str().map(str::to_owned),
        Operation::DeleteStorage(proof, _) => Some(proof.name().to_string()),
        Operation::Prepare(_) | Operation::Recycle(_) => None,
    }
}
