//! Starting, leading, and a whole bind.

use std::time::Duration;

use bindery_engine::{Config, Input};
use bindery_model::Kind;
use bindery_simulation::notation;

use crate::hand::{Hand, PAIR, PAIR_BOUND};

#[test]
fn nothing_is_decided_before_everything_is_known_and_it_leads() {
    let mut hand = Hand::idle(PAIR, Config::default());
    hand.tell(Input::Leader(true));
    for kind in [Kind::Claim, Kind::Volume, Kind::Class, Kind::Pod] {
        let (version, objects) = hand.world.list(kind);
        hand.tell(Input::Listed { kind, version, objects });
        assert!(hand.decided.is_empty() && hand.open.is_empty());
    }
    hand.tell(Input::Listed { kind: Kind::Node, version: 9, objects: vec![] });
    assert_eq!(hand.step(), "bind.1-reserve-volume");
}

#[test]
fn who_stops_leading_sends_nothing_more_and_who_leads_again_goes_on() {
    let mut hand = Hand::start(PAIR);
    hand.tell(Input::Leader(false));
    hand.answer_only();
    hand.watch();
    assert!(hand.open.is_empty(), "the answer was taken in, and nothing sent");
    hand.tick(Duration::from_secs(100));
    assert!(hand.open.is_empty());
    hand.tell(Input::Leader(true));
    assert_eq!(hand.step(), "bind.2-mark-volume");
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
}

#[test]
fn a_bind_is_four_writes_one_after_the_other() {
    let mut hand = Hand::start(PAIR);
    let mut steps = Vec::new();
    while !hand.open.is_empty() {
        steps.push(hand.step());
        hand.answer_only();
        hand.watch();
    }
    assert_eq!(steps, ["bind.1-reserve-volume", "bind.2-mark-volume", "bind.3-point-claim", "bind.4-mark-claim"]);
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
    assert_eq!(hand.engine.pending(), 0, "all keys are at rest");
}

#[test]
fn a_new_volume_goes_to_a_waiting_claim_without_being_marked_available() {
    let mut hand = Hand::start("pvc c#u 1Gi Pending");
    hand.add("pv v 1Gi Pending");
    assert_eq!(hand.step(), "bind.1-reserve-volume");
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
    assert_eq!(hand.world.effects, 4);
}
