//! Recorded states, carried out on an API server, all at once: they do not touch one another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bindery_model::{Kind, ObjectKey};
use bindery_simulation::oracle::{self, Event, Ledger, Recorded, Step};
use futures::StreamExt as _;
use futures::stream::iter;
use serde_json::Value;

use crate::probe::Probe;
use crate::quiet::{Listener, Watched};
use crate::server::Server;

/// So many states are seen to at a time.
const AT_ONCE: usize = 16;

/// How long it takes to be sure that whatever is done is done.
pub struct Pace {
    /// Whose silence counts.
    pub watched: Watched,
    /// NoObserver has written for so long.
    pub quiet: Duration,
    /// And at the end, for so long.
    pub quiet_last: Duration,
}

/// The pace of a controller that is woken by what concerns it.
pub const WOKEN: Pace =
    Pace { watched: Watched::Everything, quiet: Duration::from_millis(1500), quiet_last: Duration::from_secs(4) };

/// The pace where kube-scheduler runs, too: it looks every second whether the claims of a pod were bound, and tries pods again
/// after a second.
pub const SCHEDULED: Pace =
    Pace { watched: Watched::Everything, quiet: Duration::from_millis(2500), quiet_last: Duration::from_secs(4) };

/// A state on its way.
struct Course<'a> {
    recorded: &'a Recorded,
    ledger: Ledger,
    /// The actions that are left.
    to_do: VecDeque<Value>,
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
    let since = Instant::now();
    let say = |what: &str| println!("{:5.1} s: {what}", since.elapsed().as_secs_f64());
    let mut courses: Vec<Course> = all.iter().map(Course::new).collect();
    iter(&mut courses).for_each_concurrent(AT_ONCE, |course| course.begin(server)).await;
    say("all states stand");

    let mut listener = Listener::start(server, pace.watched);
    let probe = Probe::set_up(server, all.iter().any(Recorded::has_pods)).await;
    let controllers = start();
    probe.wait(server).await;
    say("the controllers are up");
    listener.quiet(pace.quiet).await;
    say("the beginning has settled");

    for turn in 1.. {
        let todo: Vec<_> = courses.iter_mut().filter(|course| !course.to_do.is_empty()).collect();
        let count = todo.len();
        if count == 0 {
            break;
        }
        iter(todo).for_each_concurrent(AT_ONCE, |course| course.go_on(server)).await;
        listener.quiet(pace.quiet).await;
        say(&format!("turn {turn} has settled in {count} states"));
    }
    listener.quiet(pace.quiet_last).await;
    let ends = ends(server, courses).await;
    say("the end was read");
    (ends, controllers)
}

impl<'a> Course<'a> {
    fn new(recorded: &'a Recorded) -> Course<'a> {
        Course { recorded, ledger: Ledger::default(), to_do: recorded.actions().into() }
    }

    async fn begin(&mut self, server: &Server) {
        for action in self.recorded.beginning() {
            self.act(server, &action).await;
        }
    }

    /// Carries out the next action.
    async fn go_on(&mut self, server: &Server) {
        if let Some(action) = self.to_do.pop_front() {
            self.act(server, &action).await;
        }
    }

    async fn act(&mut self, server: &Server, action: &Value) {
        for step in self.recorded.steps(action, &self.ledger) {
            self.take(server, step).await;
        }
    }

    /// Takes a step. One that is refused has no effect.
    async fn take(&mut self, server: &Server, step: Step) {
        match step {
            Step::Create(key, object) => {
                let created = server.create(&key, &object).await;
                let uid = created.as_ref().map(|object| object["metadata"]["uid"].as_str().unwrap_or_default());
                self.ledger.note(&key, uid.map_err(String::as_str));
            }
            Step::Patch(key, patch) => drop(server.patch(&key, &patch).await),
            Step::PatchStatus(key, patch) => drop(server.patch_status(&key, &patch).await),
            Step::Delete(key) => drop(server.delete(&key).await),
            Step::Provision(claim, name) => {
                let Ok(claim) = server.get(&claim).await else { return };
                if let Some((key, volume)) = self.recorded.provisioned(&claim, &name) {
                    let _ = server.create(&key, &volume).await;
                }
            }
        }
    }
}

async fn ends<'a>(server: &Server, courses: Vec<Course<'a>>) -> Vec<End<'a>> {
    let mut left: BTreeMap<String, Vec<(ObjectKey, Value)>> = BTreeMap::new();
    for kind in [Kind::Volume, Kind::Claim, Kind::Pod] {
        for (key, object) in server.objects(kind).await {
            left.entry(state_of(&key.name)).or_default().push((key, object));
        }
    }
    let mut published: BTreeMap<String, BTreeSet<Event>> = BTreeMap::new();
    for event in server.events().await {
        let about = |field: &str| event["involvedObject"][field].as_str().unwrap_or_default();
        let word = |field: &str| event[field].as_str().unwrap_or_default();
        let ours = oracle::event([about("kind"), about("name"), word("type"), word("reason"), word("message")]);
        published.entry(state_of(about("name"))).or_default().extend(ours);
    }
    let end = |Course { recorded, ledger, .. }: Course<'a>| {
        let left = left.get(&recorded.id).map_or(&[][..], Vec::as_slice);
        let objects = recorded.end(left.iter().map(|(key, object)| (key, object)), &ledger);
        End { recorded, objects, events: published.remove(&recorded.id).unwrap_or_default() }
    };
    courses.into_iter().map(end).collect()
}

/// The names of a state's objects begin with its id.
fn state_of(name: &str) -> String {
    name.split('-').next().unwrap_or_default().to_owned()
}
