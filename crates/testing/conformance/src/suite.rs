//! Runs a library on two servers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use crate::compare::{Difference, differences};
use crate::endpoint::Endpoint;
use crate::notation::{Library, Shape};
use crate::run::{Run, Transcript};

/// The number of concurrent runs: enough to keep two cores busy while watches wait.
const CONCURRENT_RUNS: usize = 24;

/// How long the embedded server keeps history: longer than any run needs, and short enough to
/// expire before the last shapes run.
pub const HISTORY_SECONDS: u32 = 15;

/// When history has expired, given that the server compacts it periodically.
const COMPACTED_AFTER: Duration = Duration::from_secs(HISTORY_SECONDS as u64 + 5);

/// Which shapes to run.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only shapes whose name starts with one of these; all if empty.
    pub only: Vec<String>,
    /// Distinguishes the names of several comparisons of the same servers.
    pub series: String,
    /// Only shapes that need controllers, instead of those that do not.
    pub controllers: bool,
    /// Runs per shape, instead of the number in the shape.
    pub seeds: Option<u64>,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Outcome {
    /// All shapes that were run.
    pub shapes: BTreeSet<String>,
    /// The number of requests to each server.
    pub requests: usize,
    /// The runs that differ, sorted.
    pub differing: Vec<DifferingRun>,
    /// The responses of the left server, by shape and seed.
    pub answers: BTreeMap<(String, u64), Transcript>,
}

/// A run that differs.
#[derive(Debug)]
pub struct DifferingRun {
    /// Its shape.
    pub shape: String,
    /// Its seed.
    pub seed: u64,
    /// The differences.
    pub differences: Vec<Difference>,
}

impl Selection {
    fn includes(&self, shape: &Shape) -> bool {
        shape.controllers == self.controllers
            && (self.only.is_empty() || self.only.iter().any(|prefix| shape.name.starts_with(prefix.as_str())))
    }
}

impl Outcome {
    /// The shapes that differ.
    pub fn differing_shapes(&self) -> BTreeSet<&str> {
        self.differing.iter().map(|run| run.shape.as_str()).collect()
    }
}

/// Runs the selected shapes on both servers.
pub async fn run(library: &Library, left: &Endpoint, right: &Endpoint, selection: &Selection) -> Outcome {
    let (alone, with_fields): (Vec<&Shape>, Vec<&Shape>) =
        library.shapes.iter().filter(|shape| selection.includes(shape)).partition(|shape| shape.alone);
    let mut outcome = Outcome::default();
    let compacted = Instant::now() + COMPACTED_AFTER;
    for (shapes, at_once) in [(with_fields, CONCURRENT_RUNS), (alone, 1)] {
        if at_once == 1 && !shapes.is_empty() {
            sleep_until(compacted).await;
        }
        outcome.shapes.extend(shapes.iter().map(|shape| shape.name.clone()));
        let runs =
            shapes.iter().flat_map(|shape| (0..selection.seeds.unwrap_or(shape.seeds)).map(move |seed| (*shape, seed)));
        let mut done = futures::stream::iter(runs)
            .map(|(shape, seed)| {
                both(library, left, right, Run { shape, seed, series: &selection.series, time_factor: 1 })
            })
            .buffer_unordered(at_once);
        while let Some((run, answers, differences)) = done.next().await {
            let (shape, seed) = (run.shape.name.clone(), run.seed);
            outcome.requests += answers.0.len();
            outcome.answers.insert((shape.clone(), seed), answers);
            if !differences.is_empty() {
                outcome.differing.push(DifferingRun { shape, seed, differences });
            }
        }
    }
    outcome.differing.sort_by(|a, b| (&a.shape, a.seed).cmp(&(&b.shape, b.seed)));
    outcome
}

/// How often a run that differs is repeated.
const ATTEMPTS_MAX: u32 = 3;

/// Each attempt waits this many times longer, in case the machine is slow.
const SLOWDOWN: u64 = 4;

/// Runs a shape on both servers. A run that differs is repeated, more slowly, and counts as
/// different only if every attempt differs: if a second ends between two writes on one server only,
/// the times and the order of managedFields differ.
async fn both<'a>(
    library: &Library,
    left: &Endpoint,
    right: &Endpoint,
    run: Run<'a>,
) -> (Run<'a>, Transcript, Vec<Difference>) {
    let mut attempts = 1;
    loop {
        let series = format!("{}/{attempts}", run.series);
        let time_factor = SLOWDOWN.pow(attempts - 1);
        let (answers, differences) = once(library, left, right, Run { series: &series, time_factor, ..run }).await;
        if differences.is_empty() || attempts == ATTEMPTS_MAX {
            return (run, answers, differences);
        }
        attempts += 1;
    }
}

async fn once(library: &Library, left: &Endpoint, right: &Endpoint, run: Run<'_>) -> (Transcript, Vec<Difference>) {
    let (left, right) = tokio::join!(run.on(left, library), run.on(right, library));
    let differences = differences(&left, &right);
    (left, differences)
}
