//! All runs of a library on two servers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use crate::compare::{Difference, differences};
use crate::endpoint::Endpoint;
use crate::notation::{Library, Shape};
use crate::run::{Run, Transcript};

/// How many runs are under way at once: enough to keep two cores busy while watches wait.
const AT_ONCE: usize = 24;

/// How long the embedded server is to remember: no run looks back this far, and what is asked for last has been forgotten.
pub const HISTORY_SECONDS: u32 = 15;

/// When it has: it looks now and then whether something is to be forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(HISTORY_SECONDS as u64 + 5);

/// Which runs.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Only shapes whose name begins with one of these; all, if there is none.
    pub only: Vec<String>,
    /// Keeps apart the names of several goes at the same servers.
    pub series: String,
    /// Those that need controllers, instead of those that do not.
    pub chores: bool,
    /// Runs of each shape, instead of as many as it says.
    pub seeds: Option<u64>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The shapes that were run.
    pub shapes: BTreeSet<String>,
    /// Requests that were sent to each server.
    pub requests: usize,
    /// Runs that differ, in the order of their names.
    pub differing: Vec<Differing>,
    /// What the left server answered, by shape and seed.
    pub answers: BTreeMap<(String, u64), Transcript>,
}

/// A run that differs.
#[derive(Debug)]
pub struct Differing {
    /// Its shape.
    pub shape: String,
    /// Its seed.
    pub seed: u64,
    /// In what.
    pub differences: Vec<Difference>,
}

impl Choice {
    fn takes(&self, shape: &Shape) -> bool {
        shape.chores == self.chores
            && (self.only.is_empty() || self.only.iter().any(|prefix| shape.name.starts_with(prefix.as_str())))
    }
}

impl Outcome {
    /// The shapes that differ.
    pub fn differing_shapes(&self) -> BTreeSet<&str> {
        self.differing.iter().map(|run| run.shape.as_str()).collect()
    }
}

/// Runs everything that is chosen on both servers.
pub async fn run(library: &Library, left: &Endpoint, right: &Endpoint, choice: &Choice) -> Outcome {
    let (alone, beside): (Vec<&Shape>, Vec<&Shape>) =
        library.shapes.iter().filter(|shape| choice.takes(shape)).partition(|shape| shape.alone);
    let mut outcome = Outcome::default();
    let forgotten = Instant::now() + FORGOTTEN_AFTER;
    for (shapes, at_once) in [(beside, AT_ONCE), (alone, 1)] {
        if at_once == 1 && !shapes.is_empty() {
            sleep_until(forgotten).await;
        }
        outcome.shapes.extend(shapes.iter().map(|shape| shape.name.clone()));
        let runs =
            shapes.iter().flat_map(|shape| (0..choice.seeds.unwrap_or(shape.seeds)).map(move |seed| (*shape, seed)));
        let mut done = futures::stream::iter(runs)
            .map(|(shape, seed)| both(library, left, right, Run { shape, seed, series: &choice.series, pace: 1 }))
            .buffer_unordered(at_once);
        while let Some((run, answers, differences)) = done.next().await {
            let (shape, seed) = (run.shape.name.clone(), run.seed);
            outcome.requests += answers.0.len();
            outcome.answers.insert((shape.clone(), seed), answers);
            if !differences.is_empty() {
                outcome.differing.push(Differing { shape, seed, differences });
            }
        }
    }
    outcome.differing.sort_by(|a, b| (&a.shape, a.seed).cmp(&(&b.shape, b.seed)));
    outcome
}

/// How often a run is made that differs.
const TRIES: u32 = 3;

/// So many times longer is waited in each of them: a machine may be slow.
const SLOWER: u64 = 4;

/// A run on both servers. One that differs is made again, more slowly, and differs only if it does so every time: where a second ends
/// between two writes on one server only, owners of fields are sorted otherwise there, and what is no change here is one there.
async fn both<'a>(
    library: &Library,
    left: &Endpoint,
    right: &Endpoint,
    run: Run<'a>,
) -> (Run<'a>, Transcript, Vec<Difference>) {
    let mut tries = 1;
    loop {
        let series = format!("{}/{tries}", run.series);
        let pace = SLOWER.pow(tries - 1);
        let (answers, differences) = once(library, left, right, Run { series: &series, pace, ..run }).await;
        if differences.is_empty() || tries == TRIES {
            return (run, answers, differences);
        }
        tries += 1;
    }
}

async fn once(library: &Library, left: &Endpoint, right: &Endpoint, run: Run<'_>) -> (Transcript, Vec<Difference>) {
    let (left, right) = tokio::join!(run.on(left, library), run.on(right, library));
    let differences = differences(&left, &right);
    (left, differences)
}
