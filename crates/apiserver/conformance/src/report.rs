//! Differences for people: shape by shape, or by what may be their cause.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::compare::{Difference, Place};
use crate::suite::{Differing, Outcome};

/// More requests than this of one run are only counted: they often follow from the first.
const DIFFERENCES_SHOWN: usize = 4;

/// More places than this of one answer are only counted.
const PLACES_SHOWN: usize = 6;

/// Where an answer says how it went.
const OUTCOME: [&str; 4] = ["/status", "/failed", "/body", "/body/message"];

/// More of a value than this is left out.
const VALUE_SHOWN: usize = 400;

/// One line with the counts.
pub fn counts(outcome: &Outcome) -> String {
    format!(
        "{} shapes, {} requests to each server, {} shapes differ",
        outcome.shapes.len(),
        outcome.requests,
        outcome.differing_shapes().len()
    )
}

/// What the left server answered, to see that a shape is what its name says.
pub fn answers(outcome: &Outcome, in_full: bool) -> String {
    let mut out = String::new();
    for ((shape, seed), transcript) in &outcome.answers {
        let _ = writeln!(out, "{shape} (seed {seed})");
        for exchange in &transcript.0 {
            let answer = &exchange.answer;
            let said = answer.pointer("/body/message").or_else(|| answer.pointer("/body/kind"));
            let _ = writeln!(out, "  {} ⇒ {} {}", exchange.request, answer["status"], shown(said));
            if let Some(warnings) = answer.pointer("/headers/warning") {
                let _ = writeln!(out, "      {warnings}");
            }
            if in_full {
                let _ = writeln!(out, "      {}", answer["body"]);
            }
        }
    }
    out
}

/// Everything that differs, shape by shape. Of a shape that differs in several runs alike, the first is told.
pub fn by_shape(outcome: &Outcome) -> String {
    let mut out = String::new();
    let mut told = "";
    for run in outcome.differing.iter().filter(|run| {
        let first = told != run.shape;
        told = run.shape.as_str();
        first
    }) {
        let _ = writeln!(out, "{} (seed {})", run.shape, run.seed);
        for difference in run.differences.iter().take(DIFFERENCES_SHOWN) {
            tell(&mut out, difference);
        }
        if run.differences.len() > DIFFERENCES_SHOWN {
            let _ = writeln!(out, "  and {} more requests", run.differences.len() - DIFFERENCES_SHOWN);
        }
    }
    out
}

/// Groups of shapes whose first difference looks alike, the largest first: what comes after the first is often its result.
pub fn by_cause(outcome: &Outcome) -> String {
    let mut groups: BTreeMap<String, Vec<&Differing>> = BTreeMap::new();
    for run in &outcome.differing {
        let Some(first) = run.differences.first() else { continue };
        let group = groups.entry(cause(first)).or_default();
        if !group.iter().any(|other| other.shape == run.shape) {
            group.push(run);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, runs)| std::cmp::Reverse(runs.len()));
    let mut out = format!("{}\n", counts(outcome));
    for (cause, runs) in groups {
        let _ = writeln!(out, "\n## {} × {cause}\n", runs.len());
        let _ = writeln!(out, "```");
        for run in runs {
            let _ = writeln!(out, "{} (seed {})", run.shape, run.seed);
            if let Some(first) = run.differences.first() {
                tell(&mut out, first);
            }
        }
        let _ = writeln!(out, "```");
    }
    out
}

/// What a difference is told by: the two statuses, or the places without names and numbers.
fn cause(difference: &Difference) -> String {
    let verb = difference.request.split(' ').next().unwrap_or_default();
    let shown = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
    let status = |place: &Place| (place.pointer == "/status").then(|| (shown(&place.left), shown(&place.right)));
    if let Some((left, right)) = difference.places.iter().find_map(status) {
        return format!("{verb}: status {left}, here {right}");
    }
    let mut places: Vec<String> = difference.places.iter().map(|place| general(&place.pointer)).collect();
    places.dedup();
    places.truncate(2);
    places.join(" ")
}

/// A pointer without positions in lists.
fn general(pointer: &str) -> String {
    let parts = pointer.split('/').map(|part| if part.parse::<usize>().is_ok() { "*" } else { part });
    parts.take(6).collect::<Vec<_>>().join("/")
}

fn tell(out: &mut String, difference: &Difference) {
    let _ = writeln!(out, "  {}. {}", difference.step + 1, difference.request);
    // Where the outcome is another, all of the body is: it is enough to see why.
    let other_outcome = difference.places.iter().any(|place| place.pointer == "/status");
    let says_why = |place: &&Place| !other_outcome || OUTCOME.contains(&place.pointer.as_str());
    for place in difference.places.iter().filter(says_why).take(PLACES_SHOWN) {
        let _ = writeln!(out, "     {}", place.pointer);
        let _ = writeln!(out, "       left:  {}", shown(place.left.as_ref()));
        let _ = writeln!(out, "       right: {}", shown(place.right.as_ref()));
    }
    if !other_outcome && difference.places.len() > PLACES_SHOWN {
        let _ = writeln!(out, "     and {} more places", difference.places.len() - PLACES_SHOWN);
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(VALUE_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
