//! A state, and what is said about one object of it.

mod claims;
mod volumes;

use bindery_binder::Binder;
use bindery_explain::{LINES, explain_claim, explain_volume};
use bindery_sim::notation;
use bindery_sim::run::mirror_of;
use bindery_volumes::ClaimKey;

/// Explains `pvc/NAME` or `pv/NAME` in a state.
fn explain(state: &str, target: &str) -> String {
    let known = mirror_of(&notation::parse(state), &[]);
    let binder = Binder::default();
    let explained = match target.split_once('/').expect("a target is kind/name") {
        ("pvc", name) => explain_claim(&binder, &known, &ClaimKey::new("default", name), LINES),
        ("pv", name) => explain_volume(&binder, &known, &name.into(), LINES),
        (other, _) => panic!("{other:?} is no kind"),
    };
    explained.map_or_else(|error| error.to_string(), |explanation| explanation.to_string())
}

fn check(state: &str, target: &str, expected: &str) {
    let lines = |text: &str| text.trim().lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n");
    assert_eq!(lines(&explain(state, target)), lines(expected));
}
