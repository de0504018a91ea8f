//! Back-off: what ends it, and what does not.

use std::time::Duration;

use bindery_engine::{Config, RequestError};
use bindery_model::ObjectKey;
use bindery_simulation::notation;

use crate::hand::{Hand, NO, PAIR, PAIR_BOUND, claim_key};

#[test]
fn a_refused_write_is_tried_again_after_twice_as_long_each_time() {
    let mut hand = Hand::start(PAIR);
    for millis in [5, 10, 20, 40] {
        hand.refuse(NO());
        hand.tick(Duration::from_millis(millis - 1));
        assert!(hand.open.is_empty(), "not before {millis} ms");
        hand.tick(Duration::from_millis(1));
        assert_eq!(hand.step(), "bind.1-reserve-volume");
    }
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
}

fn refused(hand: &mut Hand, times: usize) {
    for _ in 0..times {
        hand.refuse(NO());
        hand.tick(Duration::from_secs(60));
    }
    hand.refuse(NO());
    assert!(hand.open.is_empty());
}

#[test]
fn a_change_that_matters_ends_a_back_off() {
    let mut hand = Hand::start(PAIR);
    refused(&mut hand, 8);
    hand.world.edit(&claim_key("c"), serde_json::json!({"spec": {"accessModes": ["ReadWriteOnce"]}}));
    hand.watch();
    assert_eq!(hand.step(), "bind.1-reserve-volume", "at once");
    hand.refuse(NO());
    hand.tick(Duration::from_millis(5));
    assert_eq!(hand.step(), "bind.1-reserve-volume", "and the waiting begins anew");
}

#[test]
fn a_change_that_does_not_matter_neither_ends_nor_lengthens_a_back_off() {
    let mut hand = Hand::with(PAIR, Config { resync: Duration::from_secs(3600), ..Config::default() });
    refused(&mut hand, 4);
    // The fifth failure in a row: 80 ms.
    for _ in 0..10 {
        hand.world.edit(&claim_key("c"), serde_json::json!({"metadata": {"annotations": {"foreign": "x"}}}));
        hand.watch();
        assert!(hand.open.is_empty(), "rules do not read that annotation");
    }
    hand.tick(Duration::from_millis(80));
    assert_eq!(hand.step(), "bind.1-reserve-volume");
}

#[test]
fn a_resync_neither_ends_nor_lengthens_a_back_off() {
    let mut hand = Hand::with(PAIR, Config { resync: Duration::from_millis(10), ..Config::default() });
    for _ in 0..4 {
        hand.refuse(NO());
        while hand.open.is_empty() {
            hand.tick(Duration::from_millis(1));
        }
    }
    hand.refuse(NO());
    let resyncs = hand.engine.stats().resyncs;
    for _ in 0..79 {
        hand.tick(Duration::from_millis(1));
        assert!(hand.open.is_empty());
    }
    assert!(hand.engine.stats().resyncs > resyncs + 5);
    hand.tick(Duration::from_millis(1));
    assert_eq!(hand.step(), "bind.1-reserve-volume");
}

#[test]
fn a_server_that_asks_for_patience_gets_it() {
    let mut hand = Hand::start(PAIR);
    hand.refuse(RequestError::RetryAfter(Duration::from_secs(3), "too many requests".into()));
    hand.tick(Duration::from_millis(2999));
    assert!(hand.open.is_empty());
    hand.tick(Duration::from_millis(1));
    assert_eq!(hand.step(), "bind.1-reserve-volume");
}

#[test]
fn what_one_claim_cannot_get_another_can() {
    let mut hand = Hand::start(PAIR);
    hand.add("pvc d#w 1Gi Pending");
    assert_eq!(hand.open.len(), 1, "the volume is spoken for");
    hand.refuse(NO());
    assert_eq!(hand.only().1.target(), ObjectKey::volume("v"));
    hand.answer_all();
    assert_eq!(hand.rendered().matches(" Bound ").count(), 2, "one of the two has it:\n{}", hand.rendered());
}
