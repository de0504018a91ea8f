//! Wakes: exactly the keys that a change concerns.

use bindery_volumes::ObjectKey;

use crate::hand::{Hand, NO, WAITING, claim_key};

fn waiting() -> Hand {
    let mut hand = Hand::start(WAITING);
    hand.answer_all();
    hand.decided.clear();
    hand.notices.clear();
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
    assert_eq!(hand.notices[0].message, "waiting for pod p to be scheduled");
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
