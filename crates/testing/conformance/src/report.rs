//! Reports of differences, by shape or by probable cause.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::compare::{Difference, FieldDifference};
use crate::suite::{DifferingRun, Outcome};

/// How many requests of a run are shown; later ones often follow from the first.
const DIFFERENCES_SHOWN: usize = 4;

/// How many fields of a response are shown.
const FIELDS_SHOWN: usize = 6;

/// The fields that show the result of a request.
const OUTCOME: [&str; 4] = ["/status", "/failed", "/body", "/body/message"];

/// How many characters of a value are shown.
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

/// The responses of the left server, to check that a shape does what its name says.
pub fn answers(outcome: &Outcome, in_full: bool) -> String {
    let mut out = String::new();
    for ((shape, seed), transcript) in &outcome.answers {
        let _ = writeln!(out, "{shape} (seed {seed})");
        for exchange in &transcript.0 {
            let answer = &exchange.answer;
            let summary = answer.pointer("/body/message").or_else(|| answer.pointer("/body/kind"));
            let _ = writeln!(out, "  {} -> {} {}", exchange.request, answer["status"], shown(summary));
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

/// All differences by shape. If several runs of a shape differ, the first is shown.
pub fn by_shape(outcome: &Outcome) -> String {
    let mut out = String::new();
    let mut last_shape = "";
    for run in outcome.differing.iter().filter(|run| {
        let first = last_shape != run.shape;
        last_shape = run.shape.as_str();
        first
    }) {
        let _ = writeln!(out, "{} (seed {})", run.shape, run.seed);
        for difference in run.differences.iter().take(DIFFERENCES_SHOWN) {
            describe(&mut out, difference);
        }
        if run.differences.len() > DIFFERENCES_SHOWN {
            let _ = writeln!(out, "  and {} more requests", run.differences.len() - DIFFERENCES_SHOWN);
        }
    }
    out
}

/// Groups of shapes with the same first difference, the largest first. Later differences often
/// follow from the first.
pub fn by_cause(outcome: &Outcome) -> String {
    let mut groups: BTreeMap<String, Vec<&DifferingRun>> = BTreeMap::new();
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
                describe(&mut out, first);
            }
        }
        let _ = writeln!(out, "```");
    }
    out
}

/// The probable cause: the two statuses, or the fields without names and indices.
fn cause(difference: &Difference) -> String {
    let verb = difference.request.split(' ').next().unwrap_or_default();
    let shown = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
    let status =
        |field: &FieldDifference| (field.pointer == "/status").then(|| (shown(&field.left), shown(&field.right)));
    if let Some((left, right)) = difference.fields.iter().find_map(status) {
        return format!("{verb}: status {left}, right {right}");
    }
    let mut fields: Vec<String> = difference.fields.iter().map(|field| general(&field.pointer)).collect();
    fields.dedup();
    fields.truncate(2);
    fields.join(" ")
}

/// A pointer without list indices.
fn general(pointer: &str) -> String {
    let parts = pointer.split('/').map(|part| if part.parse::<usize>().is_ok() { "*" } else { part });
    parts.take(6).collect::<Vec<_>>().join("/")
}

fn describe(out: &mut String, difference: &Difference) {
    let _ = writeln!(out, "  {}. {}", difference.step + 1, difference.request);
    // If the status differs, so does the whole body; the message is enough.
    let other_outcome = difference.fields.iter().any(|field| field.pointer == "/status");
    let says_why = |field: &&FieldDifference| !other_outcome || OUTCOME.contains(&field.pointer.as_str());
    for field in difference.fields.iter().filter(says_why).take(FIELDS_SHOWN) {
        let _ = writeln!(out, "     {}", field.pointer);
        let _ = writeln!(out, "       left:  {}", shown(field.left.as_ref()));
        let _ = writeln!(out, "       right: {}", shown(field.right.as_ref()));
    }
    if !other_outcome && difference.fields.len() > FIELDS_SHOWN {
        let _ = writeln!(out, "     and {} more fields", difference.fields.len() - FIELDS_SHOWN);
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
