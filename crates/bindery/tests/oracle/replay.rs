//! Replays recorded states on an API server, all concurrently: they are independent.

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

/// The number of states processed concurrently.
const AT_ONCE: usize = 16;

/// How long to wait for idleness.
pub struct Pace {
    /// The watched kinds.
    pub watched: Watched,
    /// The silence between actions.
    pub quiet: Duration,
    /// The silence at the end.
    pub quiet_last: Duration,
}

/// The pace of a controller that is woken by what concerns it.
pub const WOKEN: Pace =
    Pace { watched: Watched::Everything, quiet: Duration::from_millis(1500), quiet_last: Duration::from_secs(4) };

/// The pace where kube-scheduler runs, too: it looks every second whether the claims of a pod were
/// bound, and tries pods again after a second.
pub const SCHEDULED: Pace =
    Pace { watched: Watched::Everything, quiet: Duration::from_millis(2500), quiet_last: Duration::from_secs(4) };

/// A state being replayed.
struct Replay<'a> {
    recorded: &'a Recorded,
    ledger: Ledger,
    /// The remaining actions.
    to_do: VecDeque<Value>,
}

/// The end of a state.
pub struct End<'a> {
    pub recorded: &'a Recorded,
    /// The remaining objects, in the form of the recording.
    pub objects: Value,
    /// The published events.
    pub events: BTreeSet<Event>,
}

/// Creates all states, starts the controllers with `start`, and applies the actions. Also returns
/// the result of `start`.
pub async fn carry_out<'a, T>(
    server: &Server,
    all: &'a [Recorded],
    pace: &Pace,
    start: impl FnOnce() -> T,
) -> (Vec<End<'a>>, T) {
    let since = Instant::now();
    let progress = |what: &str| println!("{:5.1} s: {what}", since.elapsed().as_secs_f64());
    let mut courses: Vec<Replay> = all.iter().map(Replay::new).collect();
    iter(&mut courses).for_each_concurrent(AT_ONCE, |course| course.begin(server)).await;
    progress("all states created");

    let mut listener = Listener::start(server, pace.watched);
    let probe = Probe::set_up(server, all.iter().any(Recorded::has_pods)).await;
    let controllers = start();
    probe.wait(server).await;
    progress("the controllers are up");
    listener.quiet(pace.quiet).await;
    progress("the beginning has settled");

    for round in 1.. {
        let todo: Vec<_> = courses.iter_mut().filter(|course| !course.to_do.is_empty()).collect();
        let count = todo.len();
        if count == 0 {
            break;
        }
        iter(todo).for_each_concurrent(AT_ONCE, |course| course.advance(server)).await;
        listener.quiet(pace.quiet).await;
        progress(&format!("round {round} is complete in {count} states"));
    }
    listener.quiet(pace.quiet_last).await;
    let ends = ends(server, courses).await;
    progress("the end was read");
    (ends, controllers)
}

impl<'a> Replay<'a> {
    fn new(recorded: &'a Recorded) -> Replay<'a> {
        Replay { recorded, ledger: Ledger::default(), to_do: recorded.actions().into() }
    }

    async fn begin(&mut self, server: &Server) {
        for action in self.recorded.beginning() {
            self.act(server, &action).await;
        }
    }

    /// Applies the next action.
    async fn advance(&mut self, server: &Server) {
        if let Some(action) = self.to_do.pop_front() {
            self.act(server, &action).await;
        }
    }

    async fn act(&mut self, server: &Server, action: &Value) {
        for step in self.recorded.steps(action, &self.ledger) {
            self.take(server, step).await;
        }
    }

    /// Applies a step. A rejected step has no effect.
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

async fn ends<'a>(server: &Server, courses: Vec<Replay<'a>>) -> Vec<End<'a>> {
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
    let end = |Replay { recorded, ledger, .. }: Replay<'a>| {
        let left = left.get(&recorded.id).map_or(&[][..], Vec::as_slice);
        let objects = recorded.end(left.iter().map(|(key, object)| (key, object)), &ledger);
        End { recorded, objects, events: published.remove(&recorded.id).unwrap_or_default() }
    };
    courses.into_iter().map(end).collect()
}

/// The id of a state, which prefixes the names of its objects.
fn state_of(name: &str) -> String {
    name.split('-').next().unwrap_or_default().to_owned()
}
