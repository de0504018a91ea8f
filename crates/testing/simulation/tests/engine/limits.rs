//! Limits on requests and operations in flight; never two changes of one object.

use bindery_engine::Config;
use bindery_model::ObjectKey;
use bindery_rules_api::Request;
use bindery_simulation::notation;

use crate::harness::{Harness, many};

#[test]
fn requests_in_flight_are_limited() {
    let mut harness = Harness::with(&many(20), Config { requests_max: 3, ..Config::default() });
    let mut most = 0;
    while let Some((&id, _)) = harness.open.iter().next() {
        most = most.max(harness.open.len());
        harness.answer(id);
        harness.watch();
    }
    assert_eq!(most, 3);
    assert_eq!(harness.rendered().matches(" Bound ").count(), 40);
}

#[test]
fn each_claim_gets_its_own_volume_even_with_late_answers() {
    let mut harness = Harness::start(&many(20));
    assert_eq!(harness.open.len(), 20, "all are in flight, each for another volume");
    // The last request is answered first.
    while let Some((&id, _)) = harness.open.iter().next_back() {
        harness.answer(id);
    }
    harness.watch();
    harness.answer_all();
    assert_eq!(harness.rendered().matches(" Bound ").count(), 40);
    assert_eq!(harness.cluster.effects, 80);
}

#[test]
fn claim_waits_for_the_write_in_flight_and_reserves_the_volume() {
    // The volume is being marked Available when the claims are created.
    let mut harness = Harness::start("pv v 1Gi Pending");
    assert_eq!(harness.step(), "status.volume");
    harness.add("pvc c#u 1Gi Pending");
    harness.add("pvc d#w 1Gi Pending");
    assert_eq!(harness.open.len(), 1, "the volume is changed by one request at a time");
    harness.answer_all();
    assert_eq!(
        harness.rendered(),
        notation::normalize(
            "pv v 1Gi Bound ->c#u bbc
             pvc c#u 1Gi Bound vol=v bbc bc
             pvc d#w 1Gi Pending"
        )
    );
    assert!(!harness.cluster.history.iter().any(|entry| entry.contains("modified")), "{:#?}", harness.cluster.history);
}

/// Released volumes that are to be scrubbed.
fn released(count: usize) -> String {
    let line = |n| format!("pv v{n} 1Gi Released ->c{n}#u{n} policy=Recycle source=hostPath:/tmp/v{n}\n");
    (0..count).map(line).collect()
}

fn is_operation(request: &Request) -> bool {
    matches!(request, Request::RunOperation(_))
}

#[test]
fn slot_of_a_deleted_volume_passes_to_the_next() {
    let mut harness = Harness::with(&released(4), Config { operations_max: 1, ..Config::default() });
    while let Some((&id, _)) = harness.open.iter().find(|(_, request)| !is_operation(request)) {
        harness.answer(id);
    }
    assert_eq!(harness.only().1.target(), ObjectKey::volume("v0"), "the others wait");
    for name in ["v1", "v2"] {
        harness.cluster.remove(&ObjectKey::volume(name));
    }
    harness.watch();
    harness.answer_only();
    while let Some((&id, _)) = harness.open.iter().find(|(_, request)| !is_operation(request)) {
        harness.answer(id);
    }
    assert_eq!(harness.only().1.target(), ObjectKey::volume("v3"), "two volumes do not need their slots");
}

#[test]
fn operations_in_flight_are_limited() {
    let mut harness = Harness::with(&released(4), Config { operations_max: 1, ..Config::default() });
    let mut scrubbed = 0;
    while !harness.open.is_empty() {
        let operations = harness.open.values().filter(|request| is_operation(request)).count();
        assert!(operations <= 1);
        scrubbed += operations;
        // Reads first: they must not wait behind an operation.
        let next = harness.open.iter().find(|(_, request)| !is_operation(request)).or(harness.open.iter().next());
        let id = *next.expect("an open request").0;
        harness.answer(id);
        harness.watch();
    }
    assert!(scrubbed >= 4);
    assert_eq!(harness.rendered().matches(" Available ").count(), 4, "{}", harness.rendered());
}
