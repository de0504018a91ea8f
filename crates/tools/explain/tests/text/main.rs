//! A state, and the explanation of one of its objects.

mod claims;
mod lifecycle;
mod pods;
mod volumes;

use bindery_binder::Binder;
use bindery_explain::{LINES, explain_claim, explain_pod, explain_volume};
use bindery_model::{ClaimKey, PodKey};
use bindery_simulation::run::cache_of;
use bindery_simulation::{SimulatedCluster, notation};

/// Explains `pvc/NAME`, `pv/NAME` or `pod/NAME` in a state.
fn explain(state: &str, target: &str) -> String {
    explain_in(&notation::parse(state), target)
}

fn explain_in(cluster: &SimulatedCluster, target: &str) -> String {
    let known = cache_of(cluster, &[]);
    let binder = Binder::default();
    let explained = match target.split_once('/').expect("a target is kind/name") {
        ("pvc", name) => explain_claim(&binder, &known, &ClaimKey::new("default", name), LINES),
        ("pv", name) => explain_volume(&binder, &known, &name.into(), LINES),
        ("pod", name) => explain_pod(&known, &PodKey { namespace: "default".into(), name: name.into() }, LINES),
        (other, _) => panic!("unknown kind {other:?}"),
    };
    explained.map_or_else(|error| error.to_string(), |explanation| explanation.to_string())
}

fn check(state: &str, target: &str, expected: &str) {
    check_in(&notation::parse(state), target, expected);
}

fn check_in(cluster: &SimulatedCluster, target: &str, expected: &str) {
    let lines = |text: &str| text.trim().lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("\n");
    assert_eq!(lines(&explain_in(cluster, target)), lines(expected));
}
