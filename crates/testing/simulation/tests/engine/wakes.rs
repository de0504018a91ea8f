//! Wakes: exactly the keys that a change concerns.

use std::time::Duration;

use bindery_binder::Binder;
use bindery_cache::{Cache, Change};
use bindery_engine::{Config, Input};
use bindery_model::ObjectKey;
use bindery_rules_api::{LiveReads, Profile, RuleSet, Verdict};
use bindery_simulation::notation;

use crate::hand::{Hand, NO, PAIR_BOUND, WAITING, claim_key};

fn waiting() -> Hand {
    let mut hand = Hand::start(WAITING);
    hand.answer_all();
    hand.decided.clear();
    hand.events.clear();
    hand
}

#[test]
fn a_class_that_appears_wakes_exactly_its_claims() {
    let mut hand = waiting();
    hand.add("sc fast example.com/fast");
    assert_eq!(hand.decided_keys(), ["a", "b"]);
}

#[test]
fn a_default_class_wakes_exactly_the_claims_that_say_nothing() {
    let mut hand = waiting();
    hand.add("sc usual example.com/usual default");
    assert_eq!(hand.decided_keys(), ["h"]);
}

#[test]
fn a_volume_wakes_the_one_claim_that_asks_for_most_of_it() {
    let mut hand = waiting();
    hand.add("pv v 6Gi Pending");
    assert_eq!(hand.decided_keys(), ["f", "v"]);
    let mut hand = waiting();
    hand.add("pv v 10Gi Pending");
    assert_eq!(hand.decided_keys(), ["e", "v"]);
}

#[test]
fn a_volume_that_a_claim_names_wakes_that_claim() {
    let mut hand = waiting();
    hand.add("pv v7 1Gi Pending");
    assert_eq!(hand.decided_keys(), ["g"], "and the volume waits for what the claim writes on it");
}

#[test]
fn a_pod_wakes_exactly_the_claims_it_uses() {
    let mut hand = waiting();
    hand.add("pod p claim=d claim=w");
    assert_eq!(hand.decided_keys(), ["d"]);
    assert_eq!(hand.events[0].message, "waiting for pod p to be scheduled");
    hand.add("pod p claim=d claim=w node=n");
    assert_eq!(hand.decided_keys(), ["d"]);
}

#[test]
fn what_changes_nothing_wakes_nobody() {
    let mut hand = waiting();
    hand.world.edit(&claim_key("a"), serde_json::json!({"metadata": {"labels": {"x": "y"}}}));
    hand.watch();
    hand.add("pod q claim=unheard-of");
    hand.add("node n");
    assert_eq!(hand.decided_keys(), Vec::<String>::new());
}

#[test]
fn a_claim_that_lets_go_of_a_volume_frees_it_for_others() {
    let mut hand = Hand::start(
        "pvc named#1 1Gi Pending vol=v
         pvc other#2 1Gi Pending",
    );
    hand.answer_all();
    // The volume can serve the claim that names it, and is kept for it though that one's writes are refused.
    hand.add("pv v 1Gi Available");
    assert_eq!(hand.only().1.target(), ObjectKey::volume("v"));
    hand.refuse(NO());
    assert!(hand.open.is_empty());
    hand.world.remove(&claim_key("named"));
    hand.watch();
    hand.answer_all();
    assert!(hand.rendered().contains("->other#2"), "{}", hand.rendered());
}

/// The binder's rules, without its wakes: what a defect in them would look like.
struct Deaf(Binder);

impl RuleSet for Deaf {
    fn profile(&self) -> Profile {
        Profile { name: "deaf", ..self.0.profile() }
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        self.0.decide(known, key, live_reads)
    }

    fn wake(&self, _: &Cache, _: &Change, _: &mut dyn FnMut(ObjectKey)) {}
}

#[test]
fn a_missed_wake_is_made_up_for_by_the_resync_and_counted() {
    let mut hand = Hand::hosting(Box::new(Deaf(Binder::default())), "pvc c#u 1Gi Pending", Config::default());
    hand.list_all();
    hand.tell(Input::Leader(true));
    hand.answer_all();
    hand.add("pv v 1Gi Available");
    assert!(hand.open.is_empty(), "nobody heard of it");
    assert_eq!(hand.engine.stats().resync_finds, 0);
    hand.tick(Duration::from_secs(15));
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
    assert!(hand.engine.stats().resync_finds > 0, "and the counter tells of the defect");
}
