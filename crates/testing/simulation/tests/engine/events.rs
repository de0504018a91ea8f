//! Events, measurements, bad input.

use std::time::Duration;

use bindery_engine::{Input, RequestError};
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::Timed;
use bindery_simulation::notation;

use crate::hand::{Hand, PAIR, WAITING, claim_key, many};

#[test]
fn an_event_that_says_nothing_new_is_not_repeated() {
    let mut hand = Hand::start("pvc c#u 1Gi Pending class=");
    assert_eq!(hand.events.len(), 1);
    for _ in 0..100 {
        hand.tick(Duration::from_secs(15));
    }
    hand.world.edit(&claim_key("c"), serde_json::json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
    hand.watch();
    assert_eq!(hand.events.len(), 1);
    assert!(hand.engine.stats().resyncs > 50 && hand.engine.stats().resync_finds == 0);
}

#[test]
fn an_event_is_told_again_when_something_else_was_said_between() {
    let mut hand = Hand::start("sc late example.com/x wffc\npvc c#u 1Gi Pending class=late");
    hand.add("pod p claim=c");
    hand.world.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: "p".into() });
    hand.watch();
    let reasons: Vec<&str> = hand.events.iter().map(|notice| notice.reason.as_str()).collect();
    assert_eq!(reasons, ["WaitForFirstConsumer", "WaitForPodScheduled", "WaitForFirstConsumer"]);
}

#[test]
fn a_class_of_which_word_is_late_is_not_called_missing() {
    let mut hand = Hand::start("");
    notation::add(&mut hand.world, "sc ext example.com/ext\npvc c#u 1Gi Pending class=ext");
    hand.world.untold.retain(|told| told.kind() == Kind::Claim);
    hand.watch();
    assert_eq!(hand.step(), "read", "it is looked for once more");
    hand.answer_all();
    assert!(hand.events.iter().all(|notice| notice.reason.as_str() == "ExternalProvisioning"), "{:?}", hand.events);
    assert!(!hand.events.is_empty());
}

#[test]
fn a_class_is_called_missing_once_it_was_looked_for_and_not_again() {
    let mut hand = Hand::start("pvc c#u 1Gi Pending class=none");
    assert!(hand.events.is_empty());
    assert_eq!(hand.step(), "read");
    hand.refuse(RequestError::Lost);
    assert!(hand.events.is_empty(), "nobody knows yet");
    hand.tick(Duration::from_secs(60));
    hand.answer_only();
    let reasons: Vec<&str> = hand.events.iter().map(|notice| notice.reason.as_str()).collect();
    assert_eq!(reasons, ["ProvisioningFailed"]);
    let finds = hand.engine.stats().resync_finds;
    for _ in 0..100 {
        hand.tick(Duration::from_secs(15));
    }
    assert!(hand.open.is_empty(), "it is not looked for again");
    assert_eq!((hand.events.len(), hand.engine.stats().resync_finds), (1, finds));
    hand.add("sc none example.com/ext");
    hand.answer_all();
    assert_eq!(hand.events.last().map(|notice| notice.reason.as_str()), Some("ExternalProvisioning"));
}

#[test]
fn provisioning_is_measured_from_asking_to_being_bound() {
    let mut hand = Hand::start("sc ext example.com/ext\npvc c#u 1Gi Pending class=ext");
    hand.answer_all();
    assert!(hand.engine.is_timing(Timed::Provision, &claim_key("c")));
    hand.now += Duration::from_secs(7);
    hand.add("pv pvc-u 1Gi Pending ->c#u by=example.com/ext class=ext policy=Delete source=csi:example.com/ext");
    hand.answer_all();
    assert!(!hand.engine.is_timing(Timed::Provision, &claim_key("c")));
    assert_eq!(hand.world.effects, 1 + 3, "asking, then three writes for a volume that came with its claim");

    let mut hand = Hand::start("sc ext example.com/ext\npvc c#u 1Gi Pending class=ext");
    hand.answer_all();
    hand.world.remove(&claim_key("c"));
    hand.watch();
    assert!(!hand.engine.is_timing(Timed::Provision, &claim_key("c")), "the claim is gone");
}

#[test]
fn a_malformed_object_stops_nobody_else() {
    let mut hand = Hand::start(PAIR);
    hand.world.edit(&ObjectKey::volume("v"), serde_json::json!({"status": {"phase": "Melted"}}));
    hand.watch();
    hand.answer_all();
    let melted = hand.decided.iter().rev().find(|decided| decided.key.kind == Kind::Volume).expect("decided about");
    assert_eq!(melted.rule.name, "volume.malformed");
    assert_eq!(melted.note.as_deref(), Some("status.phase: \"Melted\": an unknown value"));
    hand.add("pv w 1Gi Available");
    hand.add("pvc d#w 1Gi Pending");
    hand.answer_all();
    assert!(hand.rendered().contains("pv w 1Gi Bound"), "{}", hand.rendered());
}

#[test]
fn the_same_input_gives_the_same_output() {
    let trace = || {
        let mut hand = Hand::start(&(many(12) + WAITING));
        hand.answer_all();
        hand.add("pv late 20Gi Pending");
        hand.answer_all();
        (hand.decided, hand.events, hand.world.history)
    };
    let (first, second) = (trace(), trace());
    assert_eq!(first.0, second.0);
    assert_eq!(first.1, second.1);
    assert_eq!(first.2, second.2);
}

#[test]
fn objects_of_other_kinds_are_not_the_binders() {
    let mut hand = Hand::start("");
    hand.tell(Input::Watched(
        Object::from_json(Kind::AttributesClass, br#"{"metadata":{"name":"gold"}}"#).expect("named"),
    ));
    assert!(hand.decided.is_empty());
}
