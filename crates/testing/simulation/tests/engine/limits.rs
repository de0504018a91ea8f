//! Limits: how much is under way at once, and never two changes of one object.

use bindery_engine::Config;
use bindery_rules_api::Request;
use bindery_simulation::notation;

use crate::hand::{Hand, many};

#[test]
fn no_more_requests_are_under_way_than_allowed() {
    let mut hand = Hand::with(&many(20), Config { requests_max: 3, ..Config::default() });
    let mut most = 0;
    while let Some((&id, _)) = hand.open.iter().next() {
        most = most.max(hand.open.len());
        hand.answer(id);
        hand.watch();
    }
    assert_eq!(most, 3);
    assert_eq!(hand.rendered().matches(" Bound ").count(), 40);
}

#[test]
fn claims_of_one_size_each_get_a_volume_of_their_own_however_late_the_answers() {
    let mut hand = Hand::start(&many(20));
    assert_eq!(hand.open.len(), 20, "all are under way at once, each with a volume of its own");
    // The last asked is answered first.
    while let Some((&id, _)) = hand.open.iter().next_back() {
        hand.answer(id);
    }
    hand.watch();
    hand.answer_all();
    assert_eq!(hand.rendered().matches(" Bound ").count(), 40);
    assert_eq!(hand.world.effects, 80);
}

#[test]
fn a_claim_waits_for_the_write_under_way_on_its_volume_and_keeps_others_from_it() {
    // The volume is being marked Available when the claims come.
    let mut hand = Hand::start("pv v 1Gi Pending");
    assert_eq!(hand.step(), "status.volume");
    hand.add("pvc c#u 1Gi Pending");
    hand.add("pvc d#w 1Gi Pending");
    assert_eq!(hand.open.len(), 1, "the volume is changed by one request at a time");
    hand.answer_all();
    assert_eq!(
        hand.rendered(),
        notation::normalize(
            "pv v 1Gi Bound ->c#u bbc
             pvc c#u 1Gi Bound vol=v bbc bc
             pvc d#w 1Gi Pending"
        )
    );
    assert!(!hand.world.history.iter().any(|entry| entry.contains("modified")), "{:#?}", hand.world.history);
}

#[test]
fn no_more_operations_are_under_way_than_allowed() {
    let released: String = (0..4)
        .map(|n| format!("pv v{n} 1Gi Released ->c{n}#u{n} policy=Recycle source=hostPath:/tmp/v{n}\n"))
        .collect();
    let mut hand = Hand::with(&released, Config { operations_max: 1, ..Config::default() });
    let mut scrubbed = 0;
    while !hand.open.is_empty() {
        let operations = hand.open.values().filter(|request| matches!(request, Request::RunOperation(_))).count();
        assert!(operations <= 1);
        scrubbed += operations;
        // Reads first: they must not wait behind an operation.
        let next = hand.open.iter().find(|(_, r)| !matches!(r, Request::RunOperation(_))).or(hand.open.iter().next());
        let id = *next.expect("an open request").0;
        hand.answer(id);
        hand.watch();
    }
    assert!(scrubbed >= 4);
    assert_eq!(hand.rendered().matches(" Available ").count(), 4, "{}", hand.rendered());
}
