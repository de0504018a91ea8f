//! Answers that come late, never, or as refusals; lists that are old.

use std::time::Duration;

use bindery_engine::{Answer, Config, Engine, Input, RequestError, RequestId};
use bindery_lifecycle::Ephemeral;
use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_rules_api::Request;
use bindery_scheduler::Scheduler;
use bindery_simulation::notation;

use crate::hand::{Hand, PAIR, PAIR_BOUND, claim_key};

#[test]
fn after_a_conflict_the_object_is_read_and_decided_about_again() {
    let mut hand = Hand::start(PAIR);
    // Somebody else takes the volume first, and word of it has not come.
    hand.world.edit(
        &ObjectKey::volume("v"),
        serde_json::json!({"spec": {"claimRef": {"namespace": "default", "name": "d", "uid": "w"}}}),
    );
    hand.answer_only();
    assert_eq!(hand.step(), "read");
    hand.answer_only();
    hand.watch();
    hand.answer_all();
    let end = hand.rendered();
    assert!(end.contains("->d#w") && end.contains("pvc c#u 1Gi Pending"), "{end}");
}

#[test]
fn a_lost_answer_is_looked_after_and_the_write_not_repeated() {
    let mut hand = Hand::start(PAIR);
    let (_, request) = hand.only();
    hand.world.answer(&request);
    hand.refuse(RequestError::Lost);
    assert_eq!(hand.step(), "read");
    hand.add("pvc d#w 1Gi Pending");
    assert_eq!(hand.step(), "read", "until it is known, the volume is nobody else's");
    hand.answer_only();
    assert_eq!(hand.step(), "bind.2-mark-volume");
    hand.answer_all();
    assert_eq!(hand.world.history.iter().filter(|entry| entry.contains("reserve")).count(), 1);
}

#[test]
fn a_lost_write_that_was_not_carried_out_is_sent_again() {
    let mut hand = Hand::start(PAIR);
    hand.refuse(RequestError::Lost);
    hand.answer_only();
    assert!(hand.open.is_empty(), "nothing is new: it waits a moment");
    hand.tick(Duration::from_millis(5));
    assert_eq!(hand.step(), "bind.1-reserve-volume");
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
}

#[test]
fn a_late_answer_does_not_bring_back_what_is_gone() {
    let mut hand = Hand::start(PAIR);
    let (id, request) = hand.only();
    let answer = hand.world.answer(&request);
    hand.world.remove(&ObjectKey::volume("v"));
    hand.watch();
    hand.open.clear();
    hand.tell(Input::Answered(id, answer));
    assert!(hand.engine.known().volume(&"v".into()).is_none());
    assert!(hand.open.is_empty(), "{:?}", hand.open);
}

#[test]
fn a_late_read_does_not_take_away_what_came_since() {
    let mut hand = Hand::start("pv v 1Gi Bound ->c#u bbc");
    let (id, request) = hand.only();
    assert_eq!(request.target(), claim_key("c"), "is it really gone?");
    let answer = hand.world.answer(&request);
    // While the answer is under way, a new claim of that name comes.
    hand.add("pvc c#u2 1Gi Pending");
    hand.open.remove(&id);
    hand.tell(Input::Answered(id, answer));
    hand.answer_all();
    assert!(hand.engine.known().claim(&ClaimKey::new("default", "c")).is_some());
    hand.add("pv w 1Gi Available");
    hand.answer_all();
    assert!(hand.rendered().contains("pv w 1Gi Bound ->c#u2"), "{}", hand.rendered());
}

#[test]
fn an_answer_to_no_request_is_ignored() {
    let mut hand = Hand::start(PAIR);
    hand.tell(Input::Answered(RequestId(99), Answer::Deleted(None)));
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize(PAIR_BOUND));
}

#[test]
fn a_stale_list_takes_nothing_away_and_brings_nothing_back() {
    let mut hand = Hand::start(PAIR);
    hand.answer_all();
    let old = hand.world.list(Kind::Claim);
    hand.add("pvc e#x 1Gi Pending");
    hand.world.remove(&claim_key("c"));
    hand.watch();
    hand.answer_all();
    let known = |hand: &Hand| {
        (hand.engine.known().count(Kind::Claim), hand.engine.known().claim(&ClaimKey::new("default", "c")).is_some())
    };
    assert_eq!(known(&hand), (1, false));
    hand.tell(Input::Listed { kind: Kind::Claim, version: old.0, objects: old.1 });
    assert_eq!(known(&hand), (1, false), "c is gone and e is there");
}

#[test]
fn a_list_shows_what_the_watch_missed() {
    let mut hand = Hand::start(PAIR);
    hand.answer_all();
    hand.world.remove(&claim_key("c"));
    hand.list_all();
    hand.answer_all();
    assert_eq!(hand.rendered(), "pv v 1Gi Released ->c#u bbc");
}

#[test]
fn a_claim_created_again_under_its_name_is_another_claim() {
    let mut hand = Hand::start(PAIR);
    hand.answer_all();
    // Between two lists the claim goes and comes back.
    hand.world.remove(&claim_key("c"));
    notation::add(&mut hand.world, "pvc c#u2 1Gi Pending");
    hand.list_all();
    hand.answer_all();
    assert_eq!(
        hand.rendered(),
        notation::normalize(
            "pv v 1Gi Released ->c#u bbc
             pvc c#u2 1Gi Pending"
        )
    );
}

/// A claim was made, the answer was lost, and while it is being looked for it goes.
#[test]
fn a_late_read_does_not_serve_a_pod_whose_claim_is_gone_since() {
    let mut hand = Hand::hosting(Box::new(Ephemeral), "pod p eph=x", Config::default());
    hand.list_all();
    hand.tell(Input::Leader(true));
    let (_, create) = hand.only();
    hand.world.answer(&create);
    hand.refuse(RequestError::Lost);
    let (read, request) = hand.only();
    let found = hand.world.answer(&request);
    hand.world.remove(&claim_key("p-x"));
    hand.watch();
    hand.open.remove(&read);
    hand.tell(Input::Answered(read, found));
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize("pvc p-x#made-p-x-2 1Gi Pending owner=p"));
}

/// The same, and word of the claim never came: a new list shows that there is none.
#[test]
fn a_late_read_does_not_serve_a_pod_whose_claim_nobody_has_seen() {
    let mut hand = Hand::hosting(Box::new(Ephemeral), "pod p eph=x", Config::default());
    hand.list_all();
    hand.tell(Input::Leader(true));
    let (_, create) = hand.only();
    hand.world.answer(&create);
    hand.refuse(RequestError::Lost);
    let (read, request) = hand.only();
    let found = hand.world.answer(&request);
    hand.world.remove(&claim_key("p-x"));
    hand.list_all();
    hand.open.remove(&read);
    hand.tell(Input::Answered(read, found));
    hand.answer_all();
    assert_eq!(hand.rendered(), notation::normalize("pvc p-x#made-p-x-2 1Gi Pending owner=p"));
}

/// Who means to write to a claim waits until it is known what became of the making of it, and does it then.
#[test]
fn what_waits_for_an_object_is_done_after_a_refusal() {
    let state = "sc make example.com wffc
                 node n1
                 pod p eph=x:1Gi:make";
    for refusal in [RequestError::AlreadyExists, RequestError::Lost, RequestError::Error("no".into())] {
        let mut hand = Hand::idle(state, Config::default());
        hand.engine = Engine::new(Config::default(), vec![Box::new(Ephemeral), Box::new(Scheduler::default())]);
        hand.list_all();
        hand.tell(Input::Leader(true));
        let is_create = |request: &Request| matches!(request, Request::Create(_));
        let create =
            hand.open.iter().find(|(_, request)| is_create(request)).map(|(id, request)| (*id, request.clone()));
        let (id, request) = create.expect("a claim is made");
        hand.world.answer(&request);
        hand.watch();
        while let Some((&other, _)) = hand.open.iter().find(|(_, request)| !is_create(request)) {
            hand.answer(other);
        }
        assert_eq!(
            hand.decided.last().and_then(|last| last.step).map(|step| step.name),
            Some("placement.bind.select-node")
        );
        hand.open.remove(&id);
        hand.tell(Input::Answered(id, Answer::Refused(refusal.clone())));
        hand.answer_all();
        let asked = notation::normalize("pvc p-x#made-p-x 1Gi Pending owner=p class=make node=n1");
        assert_eq!(hand.rendered(), asked, "after {refusal}");
    }
}
