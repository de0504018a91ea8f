//! States that were recorded with the upstream controllers: their objects, the actions of users,
//! and the outcomes.
//!
//! [`recorded`], [`recorded_with_pods`] and [`recorded_csi`] read them. A state is set up by
//! [`Recorded::beginning`] and then changed by [`Recorded::actions`], both in [`Step`]s, in memory
//! or on an API server. The caller notes in a [`Ledger`] which objects were created and which were
//! rejected. [`Recorded::end`] converts the final state into the form of the recording.

pub mod memory;
mod objects;
mod outcome;
mod state;

use std::collections::BTreeSet;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::Value;

pub use outcome::{Event, difference, event};
pub use state::{Ledger, Step};

/// States with an intentionally different outcome: the id, and the reason.
pub const DIFFERENCES: &[(&str, &str)] = &[
    (
        "s01111",
        "a volume reserved for the claim is preferred to any free one, regardless of the number of access modes",
    ),
    ("s01205", "two claims race for one volume twice; in eight recorded runs the same claim never won both times"),
];

/// States with pods in which our scheduler intentionally decides differently from kube-scheduler:
/// the id, and the reason. See docs/differences.md.
pub const SCHEDULER_DIFFERENCES: &[(&str, &str)] = &[
    ("p03046", "a volume that is reserved for a claim but does not satisfy it is not bound to the claim"),
    ("p03250", "the same: another volume is provisioned instead"),
    ("p03139", "a pod that completed while its volumes were prepared is not marked unschedulable"),
    ("p03291", "the same"),
    ("p03169", "a claim that is deleted while its pod waits for another claim prevents scheduling"),
    ("p03061", "the same, in a race"),
    ("p03066", "a pod whose ephemeral claim does not exist yet holds back no other pod, in a race"),
];

/// States in which our CSI provisioner intentionally decides differently: the id, and the reason.
/// See docs/differences.md.
pub const CSI_DIFFERENCES: &[(&str, &str)] = &[];

/// A state, and all outcomes that were observed.
pub struct Recorded {
    /// Its name, which is the prefix of the names of its objects.
    pub id: String,
    /// Its objects and actions.
    pub state: Value,
    /// The observed outcomes.
    pub outcomes: Vec<Value>,
}

impl Recorded {
    /// The recorded outcome that equals a final state (see [`Recorded::end`]).
    pub fn outcome_of(&self, end: &Value) -> Option<&Value> {
        self.outcomes.iter().find(|outcome| outcome::recorded_objects(outcome) == *end)
    }

    /// Whether it is in a list of intended differences.
    pub fn is_among(&self, differences: &[(&str, &str)]) -> bool {
        differences.iter().any(|(id, _)| *id == self.id)
    }

    /// The events recorded with an outcome, or with the first one if the outcome was not recorded.
    pub fn events(&self, end: &Value) -> BTreeSet<Event> {
        outcome::recorded_events(self.outcome_of(end).unwrap_or(&self.outcomes[0]))
    }

    /// How a final state differs from every outcome, as text.
    pub fn explain(&self, end: &Value) -> String {
        let mut lines = vec![format!("{}, {} outcomes recorded", self.id, self.outcomes.len())];
        for (at, outcome) in self.outcomes.iter().enumerate() {
            let differences = difference(&outcome::recorded_objects(outcome), end);
            lines.extend(differences.into_iter().map(|line| format!("  [{at}] {line}")));
        }
        lines.push(format!("  state: {}", self.state));
        lines.join("\n")
    }

    /// How the published events differ from the recorded ones, if they do.
    pub fn explain_events(&self, end: &Value, ours: &BTreeSet<Event>) -> Option<String> {
        let theirs = self.events(end);
        let missing: Vec<_> = theirs.difference(ours).map(|event| event.join(" ")).collect();
        let extra: Vec<_> = ours.difference(&theirs).map(|event| event.join(" ")).collect();
        let differs = theirs != *ours;
        differs.then(|| format!("{}: not published: {missing:?}; additionally published: {extra:?}", self.id))
    }
}

/// The recorded states with claims and volumes only.
pub fn recorded() -> Vec<Recorded> {
    unpack(include_bytes!("../../../../../tests/oracle/vectors.jsonl.gz"))
}

/// The recorded states with nodes and pods, where a scheduler and a garbage collector ran as well.
pub fn recorded_with_pods() -> Vec<Recorded> {
    unpack(include_bytes!("../../../../../tests/oracle/pods.jsonl.gz"))
}

/// The recorded states of dynamic provisioning, where a CSI provisioner ran with a scripted driver.
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

/// A list; a missing one is empty.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A text; a missing one is empty.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
