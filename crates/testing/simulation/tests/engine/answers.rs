//! Late, lost and rejected answers; stale lists.

use std::time::Duration;

use bindery_engine::{Answer, Config, Engine, Input, RequestError, RequestId};
use bindery_lifecycle::Ephemeral;
use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_rules_api::Request;
use bindery_scheduler::Scheduler;
use bindery_simulation::notation;

use crate::harness::{Harness, PAIR, PAIR_BOUND, claim_key};

#[test]
fn object_is_read_and_decided_again_after_a_conflict() {
    let mut harness = Harness::start(PAIR);
    // Another writer reserves the volume first, and the watch event is not delivered yet.
    harness.cluster.edit(
        &ObjectKey::volume("v"),
        serde_json::json!({"spec": {"claimRef": {"namespace": "default", "name": "d", "uid": "w"}}}),
    );
    harness.answer_only();
    assert_eq!(harness.step(), "read");
    harness.answer_only();
    harness.watch();
    harness.answer_all();
    let end = harness.rendered();
    assert!(end.contains("->d#w") && end.contains("pvc c#u 1Gi Pending"), "{end}");
}

#[test]
fn write_with_lost_answer_is_checked_and_not_repeated() {
    let mut harness = Harness::start(PAIR);
    let (_, request) = harness.only();
    harness.cluster.answer(&request);
    harness.reject(RequestError::Lost);
    assert_eq!(harness.step(), "read");
    harness.add("pvc d#w 1Gi Pending");
    assert_eq!(harness.step(), "read", "the volume stays reserved while the outcome is unknown");
    harness.answer_only();
    assert_eq!(harness.step(), "bind.2-mark-volume");
    harness.answer_all();
    assert_eq!(harness.cluster.history.iter().filter(|entry| entry.contains("reserve")).count(), 1);
}

#[test]
fn write_that_was_lost_is_sent_again() {
    let mut harness = Harness::start(PAIR);
    harness.reject(RequestError::Lost);
    harness.answer_only();
    assert!(harness.open.is_empty(), "the read shows no change, so it backs off");
    harness.tick(Duration::from_millis(5));
    assert_eq!(harness.step(), "bind.1-reserve-volume");
    harness.answer_all();
    assert_eq!(harness.rendered(), notation::normalize(PAIR_BOUND));
}

#[test]
fn late_answer_does_not_restore_a_deleted_object() {
    let mut harness = Harness::start(PAIR);
    let (id, request) = harness.only();
    let answer = harness.cluster.answer(&request);
    harness.cluster.remove(&ObjectKey::volume("v"));
    harness.watch();
    harness.open.clear();
    harness.handle(Input::Answered(id, answer));
    assert!(harness.engine.known().volume(&"v".into()).is_none());
    assert!(harness.open.is_empty(), "{:?}", harness.open);
}

#[test]
fn late_read_does_not_remove_a_newer_object() {
    let mut harness = Harness::start("pv v 1Gi Bound ->c#u bbc");
    let (id, request) = harness.only();
    assert_eq!(request.target(), claim_key("c"), "the missing claim is read live");
    let answer = harness.cluster.answer(&request);
    // A claim of the same name is created while the answer is in flight.
    harness.add("pvc c#u2 1Gi Pending");
    harness.open.remove(&id);
    harness.handle(Input::Answered(id, answer));
    harness.answer_all();
    assert!(harness.engine.known().claim(&ClaimKey::new("default", "c")).is_some());
    harness.add("pv w 1Gi Available");
    harness.answer_all();
    assert!(harness.rendered().contains("pv w 1Gi Bound ->c#u2"), "{}", harness.rendered());
}

#[test]
fn answer_to_an_unknown_request_is_ignored() {
    let mut harness = Harness::start(PAIR);
    harness.handle(Input::Answered(RequestId(99), Answer::Deleted(None)));
    harness.answer_all();
    assert_eq!(harness.rendered(), notation::normalize(PAIR_BOUND));
}

#[test]
fn stale_list_neither_removes_nor_restores_objects() {
    let mut harness = Harness::start(PAIR);
    harness.answer_all();
    let old = harness.cluster.list(Kind::Claim);
    harness.add("pvc e#x 1Gi Pending");
    harness.cluster.remove(&claim_key("c"));
    harness.watch();
    harness.answer_all();
    let known = |harness: &Harness| {
        (
            harness.engine.known().count(Kind::Claim),
            harness.engine.known().claim(&ClaimKey::new("default", "c")).is_some(),
        )
    };
    assert_eq!(known(&harness), (1, false));
    harness.handle(Input::Listed { kind: Kind::Claim, version: old.0, objects: old.1 });
    assert_eq!(known(&harness), (1, false), "c was deleted and e exists");
}

#[test]
fn list_shows_changes_that_the_watch_missed() {
    let mut harness = Harness::start(PAIR);
    harness.answer_all();
    harness.cluster.remove(&claim_key("c"));
    harness.list_all();
    harness.answer_all();
    assert_eq!(harness.rendered(), "pv v 1Gi Released ->c#u bbc");
}

#[test]
fn claim_created_again_under_its_name_is_another_claim() {
    let mut harness = Harness::start(PAIR);
    harness.answer_all();
    // Between two lists the claim is deleted and created again.
    harness.cluster.remove(&claim_key("c"));
    notation::add(&mut harness.cluster, "pvc c#u2 1Gi Pending");
    harness.list_all();
    harness.answer_all();
    assert_eq!(
        harness.rendered(),
        notation::normalize(
            "pv v 1Gi Released ->c#u bbc
             pvc c#u2 1Gi Pending"
        )
    );
}

/// The answer to the creation of a claim was lost, and the claim is deleted while it is read.
#[test]
fn late_read_of_a_deleted_claim_does_not_satisfy_the_pod() {
    let mut harness = Harness::hosting(Box::new(Ephemeral), "pod p eph=x", Config::default());
    harness.list_all();
    harness.handle(Input::Leader(true));
    let (_, create) = harness.only();
    harness.cluster.answer(&create);
    harness.reject(RequestError::Lost);
    let (read, request) = harness.only();
    let found = harness.cluster.answer(&request);
    harness.cluster.remove(&claim_key("p-x"));
    harness.watch();
    harness.open.remove(&read);
    harness.handle(Input::Answered(read, found));
    harness.answer_all();
    assert_eq!(harness.rendered(), notation::normalize("pvc p-x#made-p-x-2 1Gi Pending owner=p"));
}

/// The same, but no watch event about the claim was delivered: a new list shows that it is missing.
#[test]
fn late_read_of_a_claim_that_was_never_watched_does_not_satisfy_the_pod() {
    let mut harness = Harness::hosting(Box::new(Ephemeral), "pod p eph=x", Config::default());
    harness.list_all();
    harness.handle(Input::Leader(true));
    let (_, create) = harness.only();
    harness.cluster.answer(&create);
    harness.reject(RequestError::Lost);
    let (read, request) = harness.only();
    let found = harness.cluster.answer(&request);
    harness.cluster.remove(&claim_key("p-x"));
    harness.list_all();
    harness.open.remove(&read);
    harness.handle(Input::Answered(read, found));
    harness.answer_all();
    assert_eq!(harness.rendered(), notation::normalize("pvc p-x#made-p-x-2 1Gi Pending owner=p"));
}

/// A write to a claim waits until the outcome of its creation is known.
#[test]
fn requests_waiting_for_an_object_are_sent_after_a_rejection() {
    let state = "sc make example.com wffc
                 node n1
                 pod p eph=x:1Gi:make";
    for error in [RequestError::AlreadyExists, RequestError::Lost, RequestError::Error(500, "no".into())] {
        let mut harness = Harness::idle(state, Config::default());
        harness.engine = Engine::new(Config::default(), vec![Box::new(Ephemeral), Box::new(Scheduler::default())]);
        harness.list_all();
        harness.handle(Input::Leader(true));
        let is_create = |request: &Request| matches!(request, Request::Create(_));
        let create =
            harness.open.iter().find(|(_, request)| is_create(request)).map(|(id, request)| (*id, request.clone()));
        let (id, request) = create.expect("a claim is created");
        harness.cluster.answer(&request);
        harness.watch();
        while let Some((&other, _)) = harness.open.iter().find(|(_, request)| !is_create(request)) {
            harness.answer(other);
        }
        assert_eq!(
            harness.decided.last().and_then(|last| last.step).map(|step| step.name),
            Some("placement.bind.select-node")
        );
        harness.open.remove(&id);
        harness.handle(Input::Answered(id, Answer::Rejected(error.clone())));
        harness.answer_all();
        let selected = notation::normalize("pvc p-x#made-p-x 1Gi Pending owner=p class=make node=n1");
        assert_eq!(harness.rendered(), selected, "after {error}");
    }
}

/// A volume reads its missing claim live. Before the answer, a claim of that name is created and
/// has a write in flight: the answer says nothing about that write.
#[test]
fn read_by_another_key_keeps_the_pending_write_of_an_object() {
    let state = "pv v 1Gi Bound ->c#u bbc
                 pv w 1Gi Available";
    let answers = [Answer::Read(None), Answer::Rejected(RequestError::Error(403, "forbidden".into()))];
    for answer in answers {
        let mut harness = Harness::start(state);
        let (read, request) = harness.only();
        assert_eq!(request.target(), claim_key("c"));
        harness.add("pvc c#u2 1Gi Pending");
        let is_write_of_claim =
            |request: &Request| matches!(request, Request::Write(write) if *write.target() == claim_key("c"));
        while !harness.open.values().any(is_write_of_claim) {
            let id = *harness.open.keys().find(|id| **id != read).expect("the claim is being bound");
            harness.answer(id);
        }
        harness.open.remove(&read);
        harness.handle(Input::Answered(read, answer));
        let key = ClaimKey::new("default", "c");
        assert!(harness.engine.known().is_claim_assumed(&key), "its write is still in flight");
        harness.answer_all();
        assert!(!harness.engine.known().is_claim_assumed(&key));
    }
}
