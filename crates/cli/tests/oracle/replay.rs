//! Recorded states, carried out on an API server, all at once: they do not touch one another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bindery_sim::oracle::{self, Event, Ledger, Recorded, Step, creations, provisioned};
use bindery_volumes::{ClaimKey, Kind, ObjectKey};
use futures::StreamExt as _;
use futures::stream::iter;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::server::{Server, Watched};

/// So many states are seen to at a time.
const AT_ONCE: usize = 16;

/// How long it takes to be sure that whatever is done is done.
pub struct Pace {
    /// Whose silence counts.
    pub watched: Watched,
    /// Nobody has written for so long.
    pub quiet: Duration,
    /// And at the end, for so long.
    pub quiet_last: Duration,
}

/// The pace of a controller that is woken by what concerns it.
pub const WOKEN: Pace =
    Pace { watched: Watched::Everything, quiet: Duration::from_millis(1500), quiet_last: Duration::from_secs(4) };

/// Programs take seconds to start, on a busy machine more.
const UP_WITHIN: Duration = Duration::from_secs(60);

/// A state on its way.
struct Course<'a> {
    recorded: &'a Recorded,
    ledger: Ledger,
}

/// Where a state ended.
pub struct End<'a> {
    pub recorded: &'a Recorded,
    /// What is left, in the form of the recording.
    pub objects: Value,
    /// The events that were published.
    pub events: BTreeSet<Event>,
}

/// Sets up all states, has the controllers started by `start`, and carries out the actions. Returns what `start` did, too.
pub async fn carry_out<'a, T>(
    server: &Server,
    all: &'a [Recorded],
    pace: &Pace,
    start: impl FnOnce() -> T,
) -> (Vec<End<'a>>, T) {
    let quiet = |duration| server.quiet(pace.watched, duration);
    let since = Instant::now();
    let say = |what: &str| println!("{:5.1} s: {what}", since.elapsed().as_secs_f64());
    let mut courses: Vec<Course> = all.iter().map(|recorded| Course { recorded, ledger: Ledger::default() }).collect();
    iter(&mut courses).for_each_concurrent(AT_ONCE, |course| course.begin(server)).await;
    say("all states stand");

    let probe = Probe::set_up(server).await;
    let controllers = start();
    probe.wait(server).await;
    say("the controllers are up");
    quiet(pace.quiet).await;
    say("the beginning has settled");

    let rounds = all.iter().map(|recorded| recorded.rounds().count()).max().unwrap_or_default();
    for round in 0..rounds {
        let actions = |recorded: &'a Recorded| recorded.rounds().nth(round).unwrap_or_default();
        for turn in 0..all.iter().map(|recorded| actions(recorded).len()).max().unwrap_or_default() {
            let action = |course: &Course<'a>| actions(course.recorded).get(turn);
            let todo: Vec<_> =
                courses.iter_mut().filter_map(|course| action(course).map(|action| (course, action))).collect();
            let count = todo.len();
            iter(todo).for_each_concurrent(AT_ONCE, |(course, action)| course.act(server, action)).await;
            quiet(pace.quiet).await;
            say(&format!("action {turn} of round {round} has settled in {count} states"));
        }
    }
    quiet(pace.quiet_last).await;
    let ends = ends(server, courses).await;
    say("the end was read");
    (ends, controllers)
}

impl Course<'_> {
    async fn begin(&mut self, server: &Server) {
        for creation in creations(&self.recorded.state) {
            let step = creation(&self.ledger);
            self.take(server, step).await;
        }
    }

    async fn act(&mut self, server: &Server, action: &Value) {
        let step = self.recorded.step(action, &self.ledger);
        self.take(server, step).await;
    }

    /// Takes a step. One that is refused has no effect.
    async fn take(&mut self, server: &Server, step: Step) {
        match step {
            Step::Create(key, object, phase) => {
                let created = server.create(&key, &object).await;
                let uid = created.as_ref().map(|object| object["metadata"]["uid"].as_str().unwrap_or_default());
                self.ledger.note(&key, uid.map_err(String::as_str));
                if let (Ok(_), Some(phase)) = (created, phase) {
                    let written = server.patch_status(&key, &json!({"status": {"phase": phase}})).await;
                    written.expect("a phase can be written");
                }
            }
            Step::Patch(key, patch) => drop(server.patch(&key, &patch).await),
            Step::Delete(key) => drop(server.delete(&key).await),
            Step::Provision(claim, name) => {
                let Ok(claim) = server.get(&claim).await else { return };
                if let Some((key, volume)) = provisioned(&claim, &name) {
                    let _ = server.create(&key, &volume).await;
                }
            }
        }
    }
}

async fn ends<'a>(server: &Server, courses: Vec<Course<'a>>) -> Vec<End<'a>> {
    let mut left: BTreeMap<String, Vec<(ObjectKey, Value)>> = BTreeMap::new();
    for kind in [Kind::Volume, Kind::Claim] {
        for (key, object) in server.objects(kind).await {
            left.entry(state_of(&key.name)).or_default().push((key, object));
        }
    }
    let mut published: BTreeMap<String, BTreeSet<Event>> = BTreeMap::new();
    for event in server.events().await {
        let about = |field: &str| event["involvedObject"][field].as_str().unwrap_or_default();
        let word = |field: &str| event[field].as_str().unwrap_or_default();
        let ours = oracle::event(about("kind"), about("name"), word("type"), word("reason"));
        published.entry(state_of(about("name"))).or_default().extend(ours);
    }
    let end = |Course { recorded, ledger }: Course<'a>| {
        let left = left.get(&recorded.id).map_or(&[][..], Vec::as_slice);
        let objects = oracle::objects(left.iter().map(|(key, object)| (key, object)), &ledger);
        End { recorded, objects, events: published.remove(&recorded.id).unwrap_or_default() }
    };
    courses.into_iter().map(end).collect()
}

/// The names of a state's objects begin with its id.
fn state_of(name: &str) -> String {
    name.split('-').next().unwrap_or_default().to_owned()
}

/// Objects by which it is seen that the controllers are up: a volume that the binder marks, and a volume and a claim that were
/// deleted and that the protection controllers let go of.
struct Probe {
    marked: ObjectKey,
    let_go: [ObjectKey; 2],
}

impl Probe {
    async fn set_up(server: &Server) -> Probe {
        let marked = ObjectKey::volume("probe-marked");
        let let_go = [ObjectKey::volume("probe"), ClaimKey::new("default", "probe").into()];
        for key in let_go.iter().chain([&marked]) {
            let mut spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": key.name});
            let storage = json!({"storage": "1Gi"});
            if key.kind == Kind::Claim {
                spec["resources"]["requests"] = storage;
            } else {
                spec["capacity"] = storage;
                spec["hostPath"] = json!({"path": "/probe"});
            }
            let object = json!({"metadata": {"name": key.name}, "spec": spec});
            server.create(key, &object).await.expect("a probe is created");
        }
        for key in &let_go {
            server.delete(key).await.expect("a probe is deleted");
        }
        Probe { marked, let_go }
    }

    async fn wait(&self, server: &Server) {
        let since = Instant::now();
        while !self.is_seen_to(server).await {
            assert!(since.elapsed() < UP_WITHIN, "the controllers are not up after {UP_WITHIN:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn is_seen_to(&self, server: &Server) -> bool {
        let [volume, claim] = &self.let_go;
        server.get(&self.marked).await.is_ok_and(|volume| volume["status"]["phase"] == "Available")
            && server.get(volume).await.is_err()
            && server.get(claim).await.is_err()
    }
}
