//! Wakes: a change wakes exactly the keys that it concerns.

use std::time::Duration;

use bindery_binder::Binder;
use bindery_cache::{Cache, Change};
use bindery_engine::{Config, Input};
use bindery_model::ObjectKey;
use bindery_rules_api::{LiveReads, Profile, RuleSet, Verdict};
use bindery_simulation::notation;

use crate::harness::{Harness, PAIR_BOUND, REJECTED, WAITING, claim_key};

fn waiting() -> Harness {
    let mut harness = Harness::start(WAITING);
    harness.answer_all();
    harness.decided.clear();
    harness.events.clear();
    harness
}

#[test]
fn new_class_wakes_exactly_its_claims() {
    let mut harness = waiting();
    harness.add("sc fast example.com/fast");
    assert_eq!(harness.decided_keys(), ["a", "b"]);
}

#[test]
fn default_class_wakes_exactly_the_claims_without_a_class() {
    let mut harness = waiting();
    harness.add("sc usual example.com/usual default");
    assert_eq!(harness.decided_keys(), ["h"]);
}

#[test]
fn volume_wakes_the_claim_with_the_largest_request_that_fits() {
    let mut harness = waiting();
    harness.add("pv v 6Gi Pending");
    assert_eq!(harness.decided_keys(), ["f", "v"]);
    let mut harness = waiting();
    harness.add("pv v 10Gi Pending");
    assert_eq!(harness.decided_keys(), ["e", "v"]);
}

#[test]
fn volume_wakes_the_claim_that_names_it() {
    let mut harness = waiting();
    harness.add("pv v7 1Gi Pending");
    assert_eq!(harness.decided_keys(), ["g"], "the volume waits for the write of the claim");
}

#[test]
fn pod_wakes_exactly_its_claims() {
    let mut harness = waiting();
    harness.add("pod p claim=d claim=w");
    assert_eq!(harness.decided_keys(), ["d"]);
    assert_eq!(harness.events[0].message, "waiting for pod p to be scheduled");
    harness.add("pod p claim=d claim=w node=n");
    assert_eq!(harness.decided_keys(), ["d"]);
}

#[test]
fn irrelevant_change_wakes_no_key() {
    let mut harness = waiting();
    harness.cluster.edit(&claim_key("a"), serde_json::json!({"metadata": {"labels": {"x": "y"}}}));
    harness.watch();
    harness.add("pod q claim=unheard-of");
    harness.add("node n");
    assert_eq!(harness.decided_keys(), Vec::<String>::new());
}

#[test]
fn volume_of_a_deleted_claim_is_available_to_others() {
    let mut harness = Harness::start(
        "pvc named#1 1Gi Pending vol=v
         pvc other#2 1Gi Pending",
    );
    harness.answer_all();
    // The volume fits the claim that names it, and is kept for it though its writes are rejected.
    harness.add("pv v 1Gi Available");
    assert_eq!(harness.only().1.target(), ObjectKey::volume("v"));
    harness.reject(REJECTED());
    assert!(harness.open.is_empty());
    harness.cluster.remove(&claim_key("named"));
    harness.watch();
    harness.answer_all();
    assert!(harness.rendered().contains("->other#2"), "{}", harness.rendered());
}

/// The binder's rules without its wakes, to simulate a missed wake.
struct WithoutWakes(Binder);

impl RuleSet for WithoutWakes {
    fn profile(&self) -> Profile {
        Profile { name: "without-wakes", ..self.0.profile() }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        self.0.decide(known, key, live_reads)
    }

    fn wake(&self, _: &Cache, _: &Change, _: &mut dyn FnMut(ObjectKey)) {}
}

#[test]
fn missed_wake_is_found_and_counted_by_the_resync() {
    let mut harness =
        Harness::hosting(Box::new(WithoutWakes(Binder::default())), "pvc c#u 1Gi Pending", Config::default());
    harness.list_all();
    harness.handle(Input::Leader(true));
    harness.answer_all();
    harness.add("pv v 1Gi Available");
    assert!(harness.open.is_empty(), "no key was woken");
    assert_eq!(harness.engine.stats().resync_finds, 0);
    harness.tick(Duration::from_secs(15));
    harness.answer_all();
    assert_eq!(harness.rendered(), notation::normalize(PAIR_BOUND));
    assert!(harness.engine.stats().resync_finds > 0, "the missed wake is counted");
}
