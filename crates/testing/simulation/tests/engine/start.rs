//! Start, leadership, and a complete bind.

use std::time::Duration;

use bindery_engine::{Config, Input};
use bindery_model::Kind;
use bindery_rules_api::Timed;
use bindery_simulation::notation;

use crate::harness::{Harness, PAIR, PAIR_BOUND, claim_key};

#[test]
fn nothing_is_decided_before_all_kinds_are_listed_and_leadership_is_acquired() {
    let mut harness = Harness::idle(PAIR, Config::default());
    harness.handle(Input::Leader(true));
    for kind in [Kind::Claim, Kind::Volume, Kind::Class, Kind::Pod] {
        let (version, objects) = harness.cluster.list(kind);
        harness.handle(Input::Listed { kind, version, objects });
        assert!(harness.decided.is_empty() && harness.open.is_empty());
    }
    harness.handle(Input::Listed { kind: Kind::Node, version: 9, objects: vec![] });
    assert_eq!(harness.step(), "bind.1-reserve-volume");
}

#[test]
fn nothing_is_sent_without_leadership_and_work_resumes_with_it() {
    let mut harness = Harness::start(PAIR);
    harness.handle(Input::Leader(false));
    harness.answer_only();
    harness.watch();
    assert!(harness.open.is_empty(), "the answer was processed, but nothing sent");
    harness.tick(Duration::from_secs(100));
    assert!(harness.open.is_empty());
    harness.handle(Input::Leader(true));
    assert_eq!(harness.step(), "bind.2-mark-volume");
    harness.answer_all();
    assert_eq!(harness.rendered(), notation::normalize(PAIR_BOUND));
}

#[test]
fn bind_takes_four_writes_in_order() {
    let mut harness = Harness::start(PAIR);
    let mut steps = Vec::new();
    while !harness.open.is_empty() {
        steps.push(harness.step());
        harness.answer_only();
        harness.watch();
    }
    assert_eq!(steps, ["bind.1-reserve-volume", "bind.2-mark-volume", "bind.3-point-claim", "bind.4-mark-claim"]);
    assert_eq!(harness.rendered(), notation::normalize(PAIR_BOUND));
    assert_eq!(harness.engine.pending(), 0, "no key has work left");
}

#[test]
fn new_volume_is_bound_to_a_waiting_claim_without_being_marked_available() {
    let mut harness = Harness::start("pvc c#u 1Gi Pending");
    harness.add("pv v 1Gi Pending");
    assert_eq!(harness.step(), "bind.1-reserve-volume");
    harness.answer_all();
    assert_eq!(harness.rendered(), notation::normalize(PAIR_BOUND));
    assert_eq!(harness.cluster.effects, 4);
}

/// Nothing is remembered about objects that are deleted while another instance leads.
#[test]
fn standby_remembers_neither_measurements_nor_events() {
    let state = "sc slow example.com/slow
                 pvc c#u 1Gi Pending class=slow
                 pvc d#w 1Gi Pending";
    let mut harness = Harness::start(state);
    harness.answer_all();
    assert!(harness.engine.is_timing(Timed::Provision, &claim_key("c")));
    let published = harness.events.len();
    assert!(published > 0);
    harness.handle(Input::Leader(false));
    assert!(!harness.engine.is_timing(Timed::Provision, &claim_key("c")));
    harness.cluster.remove(&claim_key("c"));
    harness.watch();
    harness.handle(Input::Leader(true));
    harness.answer_all();
    assert!(!harness.engine.is_timing(Timed::Provision, &claim_key("c")));
    assert!(harness.events.len() > published, "events are published again, as after a restart");
}
