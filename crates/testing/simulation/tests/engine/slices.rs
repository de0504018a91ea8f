//! Work that concerns all objects is done in slices: at most so many decisions in one call, in the
//! same order and with the same result.

use std::collections::BTreeSet;
use std::time::Duration;

use bindery_engine::{Config, Input};
use bindery_model::Kind;

use crate::harness::{Harness, REJECTED, WAITING, claim_key, many};

const SLICE: usize = 10;

/// Bound pairs of claims and volumes.
fn bound(pairs: usize) -> String {
    let pair = |n| format!("pv v{n:03} 1Gi Bound ->c{n:03}#u{n} bbc\npvc c{n:03}#u{n} 1Gi Bound vol=v{n:03} bbc bc\n");
    (0..pairs).map(pair).collect()
}

/// Calls the engine until it asks for no call at once. Returns the keys of each call's decisions.
fn calls(harness: &mut Harness, input: Input) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    let mut input = Some(input);
    while let Some(next) = input.take() {
        harness.decided.clear();
        input = harness.call(next).then_some(Input::Tick);
        calls.push(harness.decided.drain(..).map(|decided| decided.key.to_string()).collect());
    }
    calls
}

fn idle_leader(state: &str, slice: usize) -> Harness {
    let mut harness = Harness::idle(state, Config { decisions_max: slice, ..Config::default() });
    harness.list_all();
    harness
}

#[test]
fn becoming_the_leader_and_resyncing_decide_about_every_key_once_in_order_and_in_slices() {
    let mut whole = idle_leader(&bound(40), usize::MAX);
    let at_once = calls(&mut whole, Input::Leader(true));
    assert_eq!((at_once.len(), at_once[0].len()), (1, 80));

    let mut harness = idle_leader(&bound(40), SLICE);
    let started = calls(&mut harness, Input::Leader(true));
    assert!(started.iter().all(|call| call.len() <= SLICE), "{:?}", started.iter().map(Vec::len).collect::<Vec<_>>());
    assert_eq!(started.concat(), at_once[0], "the order does not depend on the slices");

    harness.now += Duration::from_secs(15);
    let resynced = calls(&mut harness, Input::Tick);
    assert!(resynced.iter().all(|call| call.len() <= SLICE));
    assert_eq!(resynced.concat(), at_once[0]);
    assert_eq!((harness.engine.stats().resyncs, harness.engine.stats().resync_finds), (1, 0));
    assert_eq!(harness.engine.pending(), 0);
}

#[test]
fn change_during_a_resync_is_decided_about_after_at_most_a_slice() {
    let mut harness = idle_leader(&bound(400), SLICE);
    harness.handle(Input::Leader(true));
    harness.decided.clear();
    harness.now += Duration::from_secs(15);
    assert!(harness.call(Input::Tick), "the resync goes on");
    bindery_simulation::notation::add(&mut harness.cluster, "pvc zzz#new 1Gi Pending");
    let event = harness.cluster.pending_events.pop_front().expect("an event");
    harness.call(event.into());
    harness.call(Input::Tick);
    let about: BTreeSet<&str> = harness.decided.iter().map(|decided| decided.key.name.as_str()).collect();
    assert!(about.contains("zzz"), "it is decided about");
    assert!(harness.decided.len() <= 3 * SLICE, "long before the end of the resync");
}

#[test]
fn resync_goes_on_however_many_changes_there_are() {
    let mut harness = idle_leader(&bound(20), 2);
    harness.handle(Input::Leader(true));
    harness.decided.clear();
    harness.now += Duration::from_secs(15);
    harness.call(Input::Tick);
    for n in 0..100 {
        // Wakes the volume and its claim: as many decisions as one call makes.
        let labels = serde_json::json!({"metadata": {"labels": {"n": n.to_string()}}});
        harness.cluster.edit(&bindery_model::ObjectKey::volume("v000"), labels);
        let event = harness.cluster.pending_events.pop_front().expect("an event");
        harness.call(event.into());
    }
    assert!(harness.decided.iter().any(|decided| decided.key.name == "v019"), "the last key gets its turn");
}

#[test]
fn resync_that_is_due_before_the_last_one_is_done_does_not_start_another() {
    let mut harness = idle_leader(&bound(40), SLICE);
    harness.handle(Input::Leader(true));
    harness.now += Duration::from_secs(15);
    harness.call(Input::Tick);
    harness.now += Duration::from_secs(15);
    harness.call(Input::Tick);
    assert_eq!(harness.engine.stats().resyncs, 1);
    harness.handle(Input::Tick);
    assert_eq!(harness.engine.stats().resyncs, 2, "it starts once the last one is done");
}

#[test]
fn slices_do_not_change_the_result() {
    for state in [many(20), WAITING.to_owned()] {
        let run = |slice| {
            let mut harness = idle_leader(&state, slice);
            harness.handle(Input::Leader(true));
            harness.answer_all();
            harness.rendered()
        };
        assert_eq!(run(1), run(usize::MAX));
    }
}

#[test]
fn keys_that_are_due_at_once_are_enqueued_in_slices() {
    let mut harness = idle_leader(&many(40), SLICE);
    harness.handle(Input::Leader(true));
    assert_eq!(harness.open.len(), 40);
    for id in harness.open.keys().copied().collect::<Vec<_>>() {
        harness.open.remove(&id);
        harness.handle(Input::Answered(id, bindery_engine::Answer::Rejected(REJECTED())));
    }
    harness.now += Duration::from_secs(10);
    let retried = calls(&mut harness, Input::Tick);
    assert!(retried.iter().all(|call| call.len() <= SLICE), "{retried:?}");
    assert_eq!(harness.open.len(), 40, "all are sent again");
}

/// A list of this many claims.
fn claims(count: usize) -> String {
    (0..count).map(|n| format!("pvc c{n:04}#u{n} 1Gi Bound vol=v{n:04} bbc bc\n")).collect()
}

#[test]
fn long_list_is_stored_in_slices_and_the_watch_goes_on_after_it() {
    let mut harness = Harness::idle(&claims(2_000), Config::default());
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Claim) {
        let (version, objects) = harness.cluster.list(kind);
        harness.handle(Input::Listed { kind, version, objects });
    }
    harness.cluster.pending_events.clear();
    let (version, objects) = harness.cluster.list(Kind::Claim);
    assert!(harness.call(Input::Listed { kind: Kind::Claim, version, objects }));
    let stored = harness.engine.known().count(Kind::Claim);
    assert!((1..1_000).contains(&stored), "{stored} claims are stored in the first call");
    assert!(!harness.engine.is_synced());
    // The watch reports changes before the list is stored: of a claim that is stored, and of one
    // that is not.
    harness.cluster.remove(&claim_key("c0000"));
    harness.cluster.remove(&claim_key("c1999"));
    bindery_simulation::notation::add(&mut harness.cluster, "pvc new#new 1Gi Pending");
    let mut most = 0;
    while let Some(event) = harness.cluster.pending_events.pop_front() {
        let before = harness.engine.known().count(Kind::Claim);
        harness.call(event.into());
        most = most.max(harness.engine.known().count(Kind::Claim) - before);
    }
    assert!(most < 1_000, "every call stores a slice, not {most} claims");
    while harness.call(Input::Tick) {}
    assert!(harness.engine.is_synced());
    let known = harness.engine.known();
    assert_eq!(known.count(Kind::Claim), 1_999);
    assert!(known.object(&claim_key("c0000")).is_none() && known.object(&claim_key("c1999")).is_none());
    assert!(known.object(&claim_key("new")).is_some());
}

#[test]
fn repeated_list_removes_what_is_missing_from_it_in_slices() {
    let mut harness = Harness::idle(&claims(2_000), Config::default());
    harness.list_all();
    for n in (0..2_000).step_by(2) {
        harness.cluster.remove(&claim_key(&format!("c{n:04}")));
    }
    harness.cluster.pending_events.clear();
    let (version, objects) = harness.cluster.list(Kind::Claim);
    let mut least = 2_000;
    let mut continues = harness.call(Input::Listed { kind: Kind::Claim, version, objects });
    while continues {
        let count = harness.engine.known().count(Kind::Claim);
        assert!(least - count < 500, "{} claims are removed in one call", least - count);
        least = count;
        continues = harness.call(Input::Tick);
    }
    let known = harness.engine.known();
    assert_eq!(known.count(Kind::Claim), 1_000);
    assert!(known.keys(Kind::Claim).iter().all(|key| !key.name.ends_with(['0', '2', '4', '6', '8'])));
}
