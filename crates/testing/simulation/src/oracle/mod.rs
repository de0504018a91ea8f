//! States that were recorded with the reference controller: what they consist of, how they are carried out, and where they ended.
//!
//! [`recorded`] and [`recorded_with_pods`] read them. A state begins as it stands ([`Recorded::beginning`]), and then things are
//! done to it ([`Recorded::actions`]), both in [`Step`]s, in memory or on an API server: whoever does so notes in a [`Ledger`]
//! what was created and what was refused. [`Recorded::end`] brings where it ended into the form of the recording.

mod described;
pub mod memory;
mod outcome;
mod state;

use std::collections::BTreeSet;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::Value;

pub use outcome::{Event, difference, event};
pub use state::{Ledger, Step};

/// States that end otherwise with us, on purpose: their id, and why.
pub const DEVIATIONS: &[(&str, &str)] = &[
    (
        "s01111",
        "a volume reserved for the claim comes before any free one, whichever of the two has fewer access modes",
    ),
    ("s01205", "two claims race for one volume, twice: that the same one wins both times was not seen in eight runs"),
];

/// States with pods that our scheduler takes to another end than kube-scheduler, on purpose, and why: see docs/differences.md.
pub const SCHEDULER_DEVIATIONS: &[(&str, &str)] = &[
    ("p03046", "a volume that somebody reserved for a claim, and that cannot serve it, is not pointed at it for good"),
    ("p03250", "the same: another volume is asked for instead"),
    ("p03139", "a pod that has ended while its volumes were made ready is not called unschedulable"),
    ("p03291", "the same"),
    ("p03169", "a claim that is deleted while a pod waits for another of its claims keeps the pod from being placed"),
    ("p03061", "the same, in a race"),
];

/// States of a CSI provisioner that end otherwise with ours, on purpose, and why: see docs/differences.md.
pub const CSI_DEVIATIONS: &[(&str, &str)] = &[];

/// A state, and every end that was seen.
pub struct Recorded {
    /// Its name, which the names of its objects begin with.
    pub id: String,
    /// Its objects and actions.
    pub state: Value,
    /// The ends.
    pub outcomes: Vec<Value>,
}

impl Recorded {
    /// The outcome that an end (see [`Recorded::end`]) is.
    pub fn outcome_of(&self, end: &Value) -> Option<&Value> {
        self.outcomes.iter().find(|outcome| outcome::recorded_objects(outcome) == *end)
    }

    /// Whether it is in a list of exceptions.
    pub fn is_among(&self, deviations: &[(&str, &str)]) -> bool {
        deviations.iter().any(|(id, _)| *id == self.id)
    }

    /// The events that the reference published on the way to an end, or to the first one if it is not among those seen.
    pub fn events(&self, end: &Value) -> BTreeSet<Event> {
        outcome::recorded_events(self.outcome_of(end).unwrap_or(&self.outcomes[0]))
    }

    /// How an end differs from every outcome, to read.
    pub fn explain(&self, end: &Value) -> String {
        let mut lines = vec![format!("{}, {} outcomes recorded", self.id, self.outcomes.len())];
        for (at, outcome) in self.outcomes.iter().enumerate() {
            let differences = difference(&outcome::recorded_objects(outcome), end);
            lines.extend(differences.into_iter().map(|line| format!("  [{at}] {line}")));
        }
        lines.push(format!("  state: {}", self.state));
        lines.join("\n")
    }

    /// How the events that were published differ from those of the reference, if they do.
    pub fn explain_events(&self, end: &Value, ours: &BTreeSet<Event>) -> Option<String> {
        let theirs = self.events(end);
        let missing: Vec<_> = theirs.difference(ours).map(|event| event.join(" ")).collect();
        let extra: Vec<_> = ours.difference(&theirs).map(|event| event.join(" ")).collect();
        let differs = theirs != *ours;
        differs.then(|| format!("{}: not published: {missing:?}; published besides: {extra:?}", self.id))
    }
}

/// The recorded states of claims and volumes alone.
pub fn recorded() -> Vec<Recorded> {
    unpack(include_bytes!("../../../../../tests/oracle/vectors.jsonl.gz"))
}

/// The recorded states with nodes and pods, where a scheduler and a garbage collector ran too.
pub fn recorded_with_pods() -> Vec<Recorded> {
    unpack(include_bytes!("../../../../../tests/oracle/pods.jsonl.gz"))
}

/// The recorded states of dynamic provisioning, where a CSI provisioner ran with a driver that answers as told.
pub fn recorded_csi() -> Vec<Recorded> {
    unpack(include_bytes!("../../../../../tests/oracle/csi.jsonl.gz"))
}

fn unpack(packed: &[u8]) -> Vec<Recorded> {
    let mut lines = String::new();
    GzDecoder::new(packed).read_to_string(&mut lines).expect("the file can be unpacked");
    let read = |line| {
        let mut line: Value = serde_json::from_str(line).expect("a line is JSON");
        let state = line["state"].take();
        let outcomes = list(&line["outcomes"]).to_vec();
        Recorded { id: text(&state["id"]).to_owned(), state, outcomes }
    };
    lines.lines().map(read).collect()
}

/// A list; none is an empty one.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text; none is an empty one.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
