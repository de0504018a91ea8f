//! Back-off: what ends it, and what does not.

use std::time::Duration;

use bindery_engine::{Config, RequestError};
use bindery_model::ObjectKey;
use bindery_simulation::notation;

use crate::harness::{Harness, PAIR, PAIR_BOUND, REJECTED, claim_key};

#[test]
fn rejected_write_is_retried_with_doubled_delay() {
    let mut harness = Harness::start(PAIR);
    for millis in [5, 10, 20, 40] {
        harness.reject(REJECTED());
        harness.tick(Duration::from_millis(millis - 1));
        assert!(harness.open.is_empty(), "retried before {millis} ms");
        harness.tick(Duration::from_millis(1));
        assert_eq!(harness.step(), "bind.1-reserve-volume");
    }
    harness.answer_all();
    assert_eq!(harness.rendered(), notation::normalize(PAIR_BOUND));
}

fn reject_repeatedly(harness: &mut Harness, times: usize) {
    for _ in 0..times {
        harness.reject(REJECTED());
        harness.tick(Duration::from_secs(60));
    }
    harness.reject(REJECTED());
    assert!(harness.open.is_empty());
}

#[test]
fn relevant_change_ends_back_off() {
    let mut harness = Harness::start(PAIR);
    reject_repeatedly(&mut harness, 8);
    harness.cluster.edit(&claim_key("c"), serde_json::json!({"spec": {"accessModes": ["ReadWriteOnce"]}}));
    harness.watch();
    assert_eq!(harness.step(), "bind.1-reserve-volume", "at once");
    harness.reject(REJECTED());
    harness.tick(Duration::from_millis(5));
    assert_eq!(harness.step(), "bind.1-reserve-volume", "the back-off starts again from the minimum");
}

#[test]
fn irrelevant_change_neither_ends_nor_extends_back_off() {
    let mut harness = Harness::with(PAIR, Config { resync: Duration::from_secs(3600), ..Config::default() });
    reject_repeatedly(&mut harness, 4);
    // The fifth failure in a row: 80 ms.
    for _ in 0..10 {
        harness.cluster.edit(&claim_key("c"), serde_json::json!({"metadata": {"annotations": {"foreign": "x"}}}));
        harness.watch();
        assert!(harness.open.is_empty(), "no rule reads that annotation");
    }
    harness.tick(Duration::from_millis(80));
    assert_eq!(harness.step(), "bind.1-reserve-volume");
}

#[test]
fn resync_neither_ends_nor_extends_back_off() {
    let mut harness = Harness::with(PAIR, Config { resync: Duration::from_millis(10), ..Config::default() });
    for _ in 0..4 {
        harness.reject(REJECTED());
        while harness.open.is_empty() {
            harness.tick(Duration::from_millis(1));
        }
    }
    harness.reject(REJECTED());
    let resyncs = harness.engine.stats().resyncs;
    for _ in 0..79 {
        harness.tick(Duration::from_millis(1));
        assert!(harness.open.is_empty());
    }
    assert!(harness.engine.stats().resyncs > resyncs + 5);
    harness.tick(Duration::from_millis(1));
    assert_eq!(harness.step(), "bind.1-reserve-volume");
}

#[test]
fn retry_after_of_the_server_is_honored() {
    let mut harness = Harness::start(PAIR);
    harness.reject(RequestError::RetryAfter(Duration::from_secs(3), "too many requests".into()));
    harness.tick(Duration::from_millis(2999));
    assert!(harness.open.is_empty());
    harness.tick(Duration::from_millis(1));
    assert_eq!(harness.step(), "bind.1-reserve-volume");
}

#[test]
fn volume_is_handed_to_another_claim_after_a_rejection() {
    let mut harness = Harness::start(PAIR);
    harness.add("pvc d#w 1Gi Pending");
    assert_eq!(harness.open.len(), 1, "the volume is being reserved");
    harness.reject(REJECTED());
    assert_eq!(harness.only().1.target(), ObjectKey::volume("v"));
    harness.answer_all();
    assert_eq!(
        harness.rendered().matches(" Bound ").count(),
        2,
        "one of the two claims is bound:\n{}",
        harness.rendered()
    );
}
