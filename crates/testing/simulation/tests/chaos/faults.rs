//! A chaos run: a simulated cluster, its participants, and the effects of faults.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use bindery_engine::{Answer, Input, Moment, Output, RequestError, RequestId};
use bindery_model::{ClaimKey, Kind, Name, ObjectKey};
use bindery_rules_api::{Event, Operation, Request};
use bindery_simulation::provisioner::PendingClaim;
use bindery_simulation::storage::StorageBackend;
use bindery_simulation::{SimulatedCluster, notation, provisioner};
use serde_json::{Value, json};

pub use crate::fault::Fault;
use crate::history::History;
use crate::participants::{Limits, Participant, RESYNC, Role};
use crate::storage_faults::{self, Drivers, InFlightCall, was_untried};
use crate::storage_ledger::StorageLedger;
use crate::{binding, protection, topology};

pub struct ChaosRun {
    pub cluster: SimulatedCluster,
    history: History,
    pub participants: Vec<Participant>,
    /// Calls that are still running, even if no engine waits for them.
    pub in_flight: Vec<InFlightCall>,
    pub ledger: StorageLedger,
    pub drivers: Drivers,
    /// How many engines were started.
    incarnations: usize,
    /// The seed of the order of initial lists; by key without one.
    list_order: Option<u64>,
    now: Duration,
    uids: u32,
    is_started: bool,
    /// Whether the answer to a pod binding was lost. If reading the pod fails as well, the engine
    /// considers the resources free until the watch event arrives, as kube-scheduler does. Only the
    /// kubelet rejects the second pod.
    pub has_lost_pod_binding: bool,
    /// All outputs of the engines, in order.
    pub trace: Vec<String>,
}

/// How long the cluster may take to become stable: longer than every back-off.
const STABLE_AFTER: Duration = Duration::from_secs(600);

pub fn pick<T>(items: &[T], number: u8) -> Option<&T> {
    items.get(usize::from(number) % items.len().max(1))
}

/// Removes the foreign finalizer from an object, which is deleted if no other is left.
fn remove_foreign_finalizer(cluster: &mut SimulatedCluster, key: &ObjectKey) {
    let Some(object) = cluster.get(key) else { return };
    let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let left: Vec<Value> = finalizers.iter().filter(|name| **name != "example.com/mine").cloned().collect();
    if left.len() == finalizers.len() {
        return;
    }
    let is_finished = left.is_empty() && protection::is_deleting(object);
    cluster.edit(key, json!({"metadata": {"finalizers": left}}));
    if is_finished {
        cluster.remove(key);
    }
}

/// Volume names are never reused.
fn provision(cluster: &mut SimulatedCluster, claim: &PendingClaim) {
    provisioner::provision(cluster, claim, &format!("made-{}", claim.uid));
}

impl ChaosRun {
    /// Starts participants in a cluster with these objects.
    pub fn start(roles: &[Role], always: &str, lines: &[&str]) -> ChaosRun {
        ChaosRun::start_in_order(None, roles, always, lines)
    }

    /// The same with initial lists in an order that depends on a seed.
    pub fn start_in_order(list_order: Option<u64>, roles: &[Role], always: &str, lines: &[&str]) -> ChaosRun {
        let mut run = ChaosRun {
            cluster: notation::parse(always),
            history: History::default(),
            participants: roles.iter().map(|role| Participant::new(*role, 0, Limits::None)).collect(),
            in_flight: Vec::new(),
            ledger: StorageLedger::default(),
            drivers: Drivers::One,
            incarnations: 0,
            list_order,
            now: Duration::ZERO,
            uids: 0,
            is_started: false,
            has_lost_pod_binding: false,
            trace: Vec::new(),
        };
        if run.provisioners() > 0 {
            run.cluster.storage = Some(StorageBackend::default());
        }
        for line in lines {
            run.create(line);
        }
        run.is_started = true;
        run.observe();
        for participant in 0..roles.len() {
            run.restart(participant);
        }
        run
    }

    /// Replaces the engines by ones with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> ChaosRun {
        for participant in 0..self.participants.len() {
            self.participants[participant].limits = limits;
            self.restart(participant);
        }
        self
    }

    fn create(&mut self, line: &str) {
        let parsed = notation::parse(line);
        let (key, object) = parsed.objects().next().expect("a line is an object");
        if self.cluster.get(key).is_some() || self.is_started && self.uses_deleting_object(key, object) {
            return;
        }
        // UIDs are never reused.
        let mut object = object.clone();
        if self.is_started {
            self.uids += 1;
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            object["metadata"]["uid"] = format!("{uid}-{}", self.uids).into();
        }
        self.add_related(key, &mut object);
        self.cluster.put(key.kind, object);
    }

    /// The number of provisioners.
    pub fn provisioners(&self) -> usize {
        self.participants.iter().filter(|participant| participant.role.has_provisioner()).count()
    }

    fn has_scheduler(&self) -> bool {
        self.participants.iter().any(|participant| participant.role.has_scheduler())
    }

    /// Whether an object would use another one that is being deleted. Users and schedulers avoid
    /// that, and no controller could prevent it.
    fn uses_deleting_object(&self, key: &ObjectKey, object: &Value) -> bool {
        let is_deleting = |key: &ObjectKey| self.cluster.get(key).is_some_and(protection::is_deleting);
        match key.kind {
            Kind::Pod => self.claims_of(object).iter().any(is_deleting),
            Kind::Claim | Kind::Volume => {
                let class = object["spec"]["volumeAttributesClassName"].as_str().unwrap_or_default();
                is_deleting(&ObjectKey::cluster(Kind::AttributesClass, Name::from(class)))
            }
            Kind::Class
            | Kind::AttributesClass
            | Kind::Node
            | Kind::CsiNode
            | Kind::CsiDriver
            | Kind::Capacity
            | Kind::Attachment
            | Kind::Record => false,
        }
    }

    fn claims_of(&self, pod: &Value) -> Vec<ObjectKey> {
        let key = |(name, _): (String, bool)| ClaimKey::new("default", name).into();
        protection::claims_of(pod).into_iter().map(key).collect()
    }

    pub fn restart(&mut self, participant: usize) {
        self.incarnations += 1;
        let Participant { role, limits, .. } = self.participants[participant];
        self.participants[participant] = Participant::new(role, self.incarnations, limits);
        self.list(participant, self.list_order);
        self.send(participant, Input::Leader(true));
    }

    fn list(&mut self, participant: usize, order: Option<u64>) {
        self.broadcast_events();
        self.participants[participant].pending_events.clear();
        for kind in Kind::ALL {
            let (version, mut objects) = self.cluster.list(kind);
            if let Some(seed) = order {
                objects.sort_by_key(|object| {
                    let mut hasher = DefaultHasher::new();
                    (seed, object.key()).hash(&mut hasher);
                    hasher.finish()
                });
            }
            self.send(participant, Input::Listed { kind, version, objects });
        }
    }

    /// Queues the new watch events for all participants.
    fn broadcast_events(&mut self) {
        for event in std::mem::take(&mut self.cluster.pending_events) {
            self.participants.iter_mut().for_each(|participant| participant.pending_events.push_back(event.clone()));
        }
    }

    pub fn send(&mut self, participant: usize, input: Input) {
        let participant = &mut self.participants[participant];
        for output in participant.engine.handle(Moment(self.now), input) {
            self.trace.push(format!("{output:?}"));
            match output {
                Output::Send(id, request) => {
                    binding::check_one_write_at_a_time(
                        participant.open.values().chain(participant.late.iter().map(|late| &late.1)),
                        &request,
                    );
                    binding::check_no_second_volume(participant.engine.known(), &request);
                    topology::check_sent(participant.engine.known(), &self.cluster, &request);
                    participant.open.insert(id, request);
                }
                Output::TickAt(moment) => participant.tick_at = Some(moment),
                Output::Publish(event) => participant.published.push(event),
                Output::Decided(_) | Output::Measured(_) | Output::Rejected(_) => {}
            }
        }
    }

    /// Carries out a request of a participant, and checks the promises.
    pub fn carry_out(&mut self, participant: usize, request: &Request) -> Answer {
        if let Some(answer) = self.blocked_by_call(participant, request) {
            return answer;
        }
        let before = self.cluster.clone();
        let answer = self.cluster.answer(request);
        self.observe();
        self.note_call(&before, participant, request, &answer);
        if !matches!(&answer, Answer::Rejected(_)) && !was_untried(&answer) {
            binding::check(&before, &self.cluster, request, &self.history);
            topology::check_carried_out(&before, &self.cluster, request, &mut self.history);
            if self.participants.len() == 1 && !self.has_lost_pod_binding {
                topology::check_node_capacity(&self.cluster, request);
            }
        }
        answer
    }

    /// Takes an open request of any participant.
    pub fn take_request(
        &mut self,
        number: u8,
        matches: impl Fn(&Request) -> bool,
    ) -> Option<(usize, RequestId, Request)> {
        let participants = self.participants.iter().enumerate();
        let open = participants
            .flat_map(|(at, participant)| participant.open.iter().map(move |(id, request)| (at, *id, request)));
        let ids: Vec<(usize, RequestId)> =
            open.filter(|(.., request)| matches(request)).map(|(at, id, _)| (at, id)).collect();
        let (participant, id) = *pick(&ids, number)?;
        let request = self.participants[participant].open.remove(&id).expect("the request is open");
        Some((participant, id, request))
    }

    fn request(&mut self, number: u8, then: impl FnOnce(&mut ChaosRun, usize, &Request) -> Answer) {
        if let Some((participant, id, request)) = self.take_request(number, |_| true) {
            let answer = then(self, participant, &request);
            self.note_received(participant, &request, &answer);
            self.send(participant, Input::Answered(id, answer));
        }
    }

    pub fn participant(&self, number: u8) -> usize {
        usize::from(number) % self.participants.len()
    }

    pub fn user(&mut self, number: u8, kinds: &[Kind], then: impl FnOnce(&mut SimulatedCluster, &ObjectKey)) {
        let keys: Vec<ObjectKey> =
            self.cluster.objects().map(|(key, _)| key.clone()).filter(|key| kinds.contains(&key.kind)).collect();
        if let Some(key) = pick(&keys, number) {
            then(&mut self.cluster, key);
        }
    }

    pub fn apply(&mut self, fault: &Fault) {
        match fault {
            Fault::Answer(n) => self.request(*n, |run, participant, request| run.carry_out(participant, request)),
            Fault::AnswerLate(n) => {
                if let Some((participant, id, request)) = self.take_request(*n, |_| true) {
                    let answer = self.carry_out(participant, &request);
                    self.participants[participant].late.push((id, request, answer));
                }
            }
            Fault::DeliverAnswer(n) => self.deliver_answer(*n),
            Fault::LoseAnswer(n) => self.request(*n, |run, participant, request| {
                run.carry_out(participant, request);
                run.has_lost_pod_binding |= matches!(request, Request::Bind(_));
                Answer::Rejected(RequestError::Lost)
            }),
            Fault::LoseRequest(n) => self.request(*n, |_, _, _| Answer::Rejected(RequestError::Lost)),
            Fault::RejectRequest(n) => {
                self.request(*n, |_, _, _| Answer::Rejected(RequestError::Error(500, "no".into())))
            }
            Fault::RetryAfter(n) => {
                let delay = Duration::from_secs(u64::from(*n % 60));
                let error = || RequestError::RetryAfter(delay, "too many requests".into());
                self.request(*n, |_, _, _| Answer::Rejected(error()));
            }
            Fault::StartScrub(n) => self.start_scrub(*n),
            Fault::ChangeLeader(n) => {
                let participant = self.participant(*n);
                let is_leader = self.participants[participant].engine.is_leader();
                self.send(participant, Input::Leader(!is_leader));
            }
            Fault::DeliverEvent(n) => self.deliver_event(self.participant(*n)),
            Fault::DeliverEventOfKind(n) => self.deliver_event_of_kind(*n),
            Fault::Tick => self.tick(),
            Fault::Restart(n) => self.restart(self.participant(*n)),
            // The API server lists objects by key.
            Fault::Relist(n) => self.list(self.participant(*n), None),
            Fault::Create(line) => self.create(line),
            Fault::Delete(n) => {
                let kinds = [Kind::Claim, Kind::Volume, Kind::Pod, Kind::AttributesClass, Kind::Node, Kind::Class];
                // Only provisioners depend on the deletion of classes.
                let kinds = if self.provisioners() > 0 { &kinds[..] } else { &kinds[..5] };
                self.user(*n, kinds, |cluster, key| {
                    if !storage_faults::is_awaited_by_claim(cluster, key) {
                        cluster.delete(key);
                    }
                });
            }
            Fault::ClearClaimRef(n) => {
                let leaders = self.participants.len();
                self.user(*n, &[Kind::Volume], |cluster, key| {
                    let policy = |volume: &Value| volume["spec"]["persistentVolumeReclaimPolicy"].clone();
                    // Deleting storage cannot be made conditional on the volume: with two leaders,
                    // a user must not make a volume available again that is being deleted.
                    if leaders == 1 || cluster.get(key).is_none_or(|volume| policy(volume) != "Delete") {
                        cluster.edit(key, json!({"spec": {"claimRef": null}}));
                    }
                });
            }
            Fault::Annotate(n) => self.user(*n, &[Kind::Claim, Kind::Volume], |cluster, key| {
                cluster.edit(key, json!({"metadata": {"annotations": {"note": format!("{n}")}}}));
            }),
            Fault::Schedule(n) => self.schedule(*n),
            Fault::CompletePod(n) => self.user(*n, &[Kind::Pod], |cluster, key| {
                cluster.edit(key, json!({"status": {"phase": "Succeeded"}}));
            }),
            Fault::DeletePod(n) => self.user(*n, &[Kind::Pod], |cluster, key| {
                // A grace period is never extended.
                if !cluster.get(key).is_some_and(protection::is_deleting) {
                    let deleted =
                        json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30});
                    cluster.edit(key, json!({"metadata": deleted}));
                }
            }),
            Fault::FinishPodDeletion(n) => self.user(*n, &[Kind::Pod], |cluster, key| {
                if cluster.get(key).is_some_and(protection::is_deleting) {
                    cluster.edit(key, json!({"metadata": {"deletionGracePeriodSeconds": 0}}));
                }
            }),
            Fault::CollectGarbage => self.collect_garbage(),
            Fault::RemoveFinalizer(n) => {
                self.user(*n, &[Kind::Claim, Kind::Volume, Kind::AttributesClass], remove_foreign_finalizer);
            }
            Fault::Provision(n) => self.provisioner(*n, provision),
            Fault::FailToProvision(n) => self.provisioner(*n, provisioner::reject),
            Fault::Cordon(n) => self.user(*n, &[Kind::Node], |cluster, key| {
                let is_open = cluster.get(key).is_some_and(|node| node["spec"]["unschedulable"] != true);
                cluster.edit(key, json!({"spec": {"unschedulable": is_open}}));
            }),
            Fault::Storage(fault) => self.apply_storage(fault),
        }
        self.observe();
    }

    /// Starts the pod of an open request to scrub a volume.
    fn start_scrub(&mut self, number: u8) {
        let open = self.participants.iter().flat_map(|participant| participant.open.values());
        let scrubs = open.filter_map(|request| match request {
            Request::RunOperation(Operation::Recycle(recycle)) => Some(recycle.clone()),
            Request::RunOperation(_)
            | Request::Write(_)
            | Request::Create(_)
            | Request::Bind(_)
            | Request::Delete(_)
            | Request::Read(_)
            | Request::List(_) => None,
        });
        if let Some(recycle) = pick(&scrubs.collect::<Vec<_>>(), number) {
            // A pod that was replaced does not start.
            self.cluster.recycler_pods.start(recycle).ok();
        }
    }

    fn schedule(&mut self, number: u8) {
        let waits = |pod: &Value| pod["spec"]["nodeName"].is_null() && !protection::is_deleting(pod);
        let can_go = |claim: &ObjectKey| self.cluster.get(claim).is_some_and(|claim| !protection::is_deleting(claim));
        let pods = self.cluster.objects().filter(|(key, pod)| key.kind == Kind::Pod && waits(pod));
        let ready: Vec<ObjectKey> =
            pods.filter(|(_, pod)| self.claims_of(pod).iter().all(can_go)).map(|(key, _)| key.clone()).collect();
        if let Some(key) = pick(&ready, number) {
            self.cluster.edit(key, json!({"spec": {"nodeName": "n"}}));
        }
    }

    fn collect_garbage(&mut self) {
        self.collect_drivers();
        let owner = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"].as_str().map(str::to_owned);
        let exists = |uid: &str| self.cluster.objects().any(|(_, object)| object["metadata"]["uid"] == uid);
        let is_orphan = |object: &Value| owner(object).is_some_and(|uid| !exists(&uid));
        let orphans = self.cluster.objects().filter(|(_, object)| is_orphan(object));
        for key in orphans.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.cluster.delete(&key);
        }
    }

    fn deliver_answer(&mut self, number: u8) {
        let participants: Vec<usize> = (0..self.participants.len())
            .filter(|participant| !self.participants[*participant].late.is_empty())
            .collect();
        if let Some(&participant) = pick(&participants, number) {
            let late = &mut self.participants[participant].late;
            let (id, request, answer) = late.remove(usize::from(number) / 2 % late.len());
            self.note_received(participant, &request, &answer);
            self.send(participant, Input::Answered(id, answer));
        }
    }

    fn deliver_event(&mut self, participant: usize) {
        self.broadcast_events();
        if let Some(event) = self.participants[participant].pending_events.pop_front() {
            self.send(participant, event.into());
        }
    }

    fn deliver_event_of_kind(&mut self, number: u8) {
        self.broadcast_events();
        let participant = self.participant(number);
        let pending_events = &mut self.participants[participant].pending_events;
        let kinds: Vec<Kind> =
            Kind::ALL.into_iter().filter(|kind| pending_events.iter().any(|t| t.kind() == *kind)).collect();
        let at =
            pick(&kinds, number / 2).and_then(|kind| pending_events.iter().position(|event| event.kind() == *kind));
        if let Some(event) = at.and_then(|at| pending_events.remove(at)) {
            self.send(participant, event.into());
        }
    }

    fn tick(&mut self) {
        // Until the next tick, but at most a minute.
        let minute = self.now + Duration::from_secs(60);
        let next = self.participants.iter().filter_map(|participant| participant.tick_at).min();
        self.now = next.map_or(minute, |moment| moment.0.min(minute)).max(self.now);
        for participant in 0..self.participants.len() {
            let is_due = self.participants[participant].tick_at.is_none_or(|moment| moment.0 <= self.now);
            if is_due || next.is_none_or(|moment| moment.0 > self.now) {
                self.send(participant, Input::Tick);
            }
        }
    }

    /// Records the past states that the promises depend on. Without a scheduler, delayed claims
    /// must never be bound.
    fn observe(&mut self) {
        binding::check_scrubs(&self.cluster);
        if self.has_scheduler() {
            self.history.observe(&self.cluster);
        }
        if self.provisioners() > 0 {
            self.ledger.observe(&self.cluster);
        }
    }

    fn provisioner(&mut self, number: u8, then: impl FnOnce(&mut SimulatedCluster, &PendingClaim)) {
        if let Some(claim) = pick(&provisioner::pending(&self.cluster), number) {
            then(&mut self.cluster, claim);
        }
    }

    /// The faults stop: everything is delivered, time passes, and the provisioner creates all
    /// volumes.
    pub fn recover(&mut self) {
        for participant in 0..self.participants.len() {
            self.send(participant, Input::Leader(true));
        }
        self.finish_storage_calls();
        self.run_for(STABLE_AFTER);
        if self.provisioners() > 0 {
            return;
        }
        while let Some(claim) = provisioner::pending(&self.cluster).first() {
            let node = ObjectKey::cluster(Kind::Node, Name::from(claim.node.as_str()));
            if self.cluster.get(&node).is_some() {
                provision(&mut self.cluster, claim);
            } else {
                provisioner::reject(&mut self.cluster, claim);
            }
            self.run_for(STABLE_AFTER);
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..20_000 {
            self.broadcast_events();
            let has_untold = |participant: &Participant| !participant.pending_events.is_empty();
            if self.participants.iter().any(|participant| !participant.late.is_empty()) {
                self.deliver_answer(0);
            } else if let Some(participant) = self.participants.iter().position(has_untold) {
                self.deliver_event(participant);
            } else if self.participants.iter().any(|participant| !participant.open.is_empty()) {
                self.request(0, |run, participant, request| run.carry_out(participant, request));
            } else if self.now < end {
                self.tick();
            } else {
                return;
            }
        }
        panic!("the cluster does not become stable: {:#?}", &self.trace[self.trace.len() - 40..]);
    }

    /// Checks that nothing is left to do, that nothing happens anymore, and that resyncs find
    /// nothing.
    pub fn assert_stable(&mut self) {
        binding::check_stable(&self.cluster);
        let published: Vec<Event> =
            self.participants.iter().flat_map(|participant| participant.published.iter().cloned()).collect();
        protection::check_stable(&self.cluster, &published);
        if self.provisioners() > 0 {
            let incarnations: Vec<usize> =
                self.participants.iter().map(|participant| participant.incarnation).collect();
            self.ledger.check_stable(&self.cluster, &incarnations);
        }
        if self.has_scheduler() {
            topology::check_stable(&self.cluster);
            self.allow_stale_reasons();
        } else {
            let finds = self.participants.iter().map(|participant| participant.engine.stats().resync_finds);
            assert_eq!(finds.sum::<u64>(), 0, "a resync found a missed wake");
        }
        let counts = |run: &ChaosRun| {
            let stats = run.participants.iter().map(|participant| participant.engine.stats());
            let sent: Vec<(u64, u64)> = stats.map(|stats| (stats.sent, stats.resync_finds)).collect();
            (run.cluster.effects, sent)
        };
        let (before, traced) = (counts(self), self.trace.len());
        self.run_for(3 * RESYNC);
        assert!(self.participants.iter().all(|participant| participant.engine.stats().resyncs > 1));
        let since = &self.trace[traced..];
        assert_eq!(counts(self), before, "not stable, or a resync found a missed wake: {since:#?}");
    }

    /// An unscheduled pod is woken by changes that could help it, but not by additional obstacles,
    /// so the first resync may update the reason in its condition. It must find nothing else.
    fn allow_stale_reasons(&mut self) {
        let now = |run: &ChaosRun| {
            let undated = |(key, object): (&ObjectKey, &Value)| {
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = Value::Null;
                if key.kind == Kind::Pod {
                    object["status"]["conditions"] = Value::Null;
                }
                (key.clone(), object)
            };
            run.cluster.objects().map(undated).collect::<Vec<_>>()
        };
        let before = now(self);
        self.run_for(RESYNC);
        assert_eq!(now(self), before, "a resync found a missed wake");
    }
}
