//! Live lists: one for all who ask at the same time, the next one for whoever asks later, and never one that is older than what
//! it is to prove.

use std::time::Duration;

use bindery_engine::{Answer, Config, Input, RequestError, RequestId};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection};
use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::Request;

use crate::hand::{Hand, NO, claim_key};

const DELETED: &str = "pvc a#u-a 1Gi Pending guarded deleting
                       pvc b#u-b 1Gi Pending guarded deleting
                       pvc other/c#u-c 1Gi Pending guarded deleting";

/// An engine with claim protection, which has listed everything and leads.
fn protecting(state: &str, config: Config) -> Hand {
    let mut hand = Hand::hosting(Box::new(ClaimProtection { reports_unused: false }), state, config);
    hand.list_all();
    hand.tell(Input::Leader(true));
    hand
}

fn start(state: &str) -> Hand {
    protecting(state, Config::default())
}

/// The namespaces that are being listed.
fn listed(hand: &Hand) -> Vec<String> {
    let namespace = |request: &Request| match request {
        Request::List(listing) => Some(listing.namespace.to_string()),
        Request::Write(_)
        | Request::Create(_)
        | Request::Bind(_)
        | Request::Delete(_)
        | Request::Read(_)
        | Request::RunOperation(_) => None,
    };
    hand.open.values().filter_map(namespace).collect()
}

fn list_of(hand: &Hand, namespace: &str) -> RequestId {
    let is_it = |request: &Request| matches!(request, Request::List(listing) if listing.namespace == namespace);
    let found = hand.open.iter().find(|(_, request)| is_it(request));
    *found.unwrap_or_else(|| panic!("{namespace} is being listed: {:?}", hand.open)).0
}

fn written(hand: &Hand) -> Vec<String> {
    let name = |request: &Request| match request {
        Request::Write(write) => Some(write.target().name.to_string()),
        Request::List(_)
        | Request::Create(_)
        | Request::Bind(_)
        | Request::Delete(_)
        | Request::Read(_)
        | Request::RunOperation(_) => None,
    };
    hand.open.values().filter_map(name).collect()
}

#[test]
fn whoever_asks_at_the_same_time_rides_along() {
    let mut hand = start(DELETED);
    assert_eq!(listed(&hand), ["default", "other"]);
    hand.answer(list_of(&hand, "default"));
    assert_eq!(written(&hand), ["a", "b"]);
    hand.answer_all();
    assert_eq!(hand.rendered(), "");
    assert_eq!(hand.engine.pending(), 0);
}

#[test]
fn whoever_asks_later_waits_for_the_next_list() {
    let mut hand = start("pvc a#u-a 1Gi Pending guarded deleting");
    let first = list_of(&hand, "default");
    hand.add("pvc b#u-b 1Gi Pending guarded deleting");
    hand.add("pvc d#u-d 1Gi Pending guarded deleting");
    assert_eq!(listed(&hand), ["default"], "one at a time");
    hand.answer(first);
    assert_eq!(written(&hand), ["a"], "the list may be older than the deletion of the others");
    assert_eq!(listed(&hand), ["default"]);
    hand.answer(list_of(&hand, "default"));
    assert_eq!(written(&hand), ["a", "b", "d"], "one list for both");
}

/// The list was made when the claim was not deleted, and a pod that nobody has told us of has used it since.
#[test]
fn a_list_from_before_the_deletion_proves_nothing() {
    let mut hand =
        Hand::hosting(Box::new(ClaimProtection::default()), "pvc a#u-a 1Gi Bound vol=v guarded", Config::default());
    hand.list_all();
    hand.tell(Input::Leader(true));
    let (first, request) = hand.only();
    let answer = hand.world.answer(&request);
    bindery_simulation::notation::add(&mut hand.world, "pod p claim=a node=n");
    hand.world.untold.clear();
    hand.world.delete(&claim_key("a"));
    hand.watch();
    hand.open.remove(&first);
    hand.tell(Input::Answered(first, answer));
    assert_eq!(hand.step(), "list", "it looks again");
    hand.answer_only();
    assert!(hand.open.is_empty(), "the pod holds it: {:?}", hand.open);
    assert!(hand.rendered().contains("guarded deleting"));
}

#[test]
fn a_change_before_the_list_is_sent_does_not_take_another_one() {
    let mut hand = start("pvc a#u-a 1Gi Pending guarded deleting");
    let first = list_of(&hand, "default");
    hand.add("pvc b#u-b 1Gi Pending guarded deleting");
    // It waits for the next list, and changes meanwhile.
    hand.add("pvc b#u-b 2Gi Pending guarded deleting");
    hand.answer(first);
    hand.answer(list_of(&hand, "default"));
    assert_eq!(written(&hand), ["a", "b"]);
    assert!(listed(&hand).is_empty());
}

#[test]
fn a_list_that_was_refused_is_asked_for_again_after_a_while() {
    let mut hand = start("pvc a#u-a 1Gi Pending guarded deleting");
    for millis in [5, 10, 20] {
        hand.refuse(NO());
        hand.tick(Duration::from_millis(millis - 1));
        assert!(hand.open.is_empty(), "not before {millis} ms");
        hand.tick(Duration::from_millis(1));
        assert_eq!(hand.step(), "list");
    }
    hand.refuse(RequestError::RetryAfter(Duration::from_secs(3), "too many requests".into()));
    hand.tick(Duration::from_millis(2999));
    assert!(hand.open.is_empty());
    hand.tick(Duration::from_millis(1));
    hand.refuse(RequestError::Lost);
    hand.tick(Duration::from_secs(60));
    hand.answer_all();
    assert_eq!(hand.rendered(), "");
}

#[test]
fn all_who_rode_along_try_again_when_it_is_refused() {
    let mut hand = start(DELETED);
    let first = list_of(&hand, "default");
    hand.open.remove(&first);
    hand.tell(Input::Answered(first, Answer::Rejected(NO())));
    assert_eq!(listed(&hand), ["other"], "others are not held up");
    hand.tick(Duration::from_millis(5));
    hand.answer(list_of(&hand, "default"));
    assert_eq!(written(&hand), ["a", "b"], "one list for both, again");
}

#[test]
fn a_list_that_comes_after_leadership_is_lost_serves_nobody() {
    let mut hand = start("pvc a#u-a 1Gi Pending guarded deleting");
    let first = list_of(&hand, "default");
    hand.tell(Input::Leader(false));
    hand.answer(first);
    assert!(hand.open.is_empty(), "{:?}", hand.open);
    assert_eq!(hand.engine.pending(), 0);
}

#[test]
fn a_list_from_before_leadership_was_lost_does_not_serve_those_who_ask_after_it_is_regained() {
    let mut hand = start("pvc a#u-a 1Gi Pending guarded deleting");
    let first = list_of(&hand, "default");
    hand.tell(Input::Leader(false));
    hand.tell(Input::Leader(true));
    assert_eq!(listed(&hand), ["default"], "the old one is still under way");
    hand.answer(first);
    assert!(written(&hand).is_empty());
    hand.answer(list_of(&hand, "default"));
    assert_eq!(written(&hand), ["a"]);
}

#[test]
fn a_claim_that_is_gone_when_the_list_comes_is_not_written() {
    let mut hand = start("pvc a#u-a 1Gi Pending guarded deleting");
    let first = list_of(&hand, "default");
    hand.world.remove(&claim_key("a"));
    hand.watch();
    hand.answer(first);
    assert!(hand.open.is_empty(), "{:?}", hand.open);
    assert_eq!(hand.engine.pending(), 0);
}

#[test]
fn lists_count_as_requests() {
    let hand = protecting(DELETED, Config { requests_max: 1, ..Config::default() });
    assert_eq!(hand.engine.in_flight(), (2, 0));
}

/// With room for nothing but a list, claims are decided about in order, and none is forgotten.
#[test]
fn nobody_is_forgotten_where_there_is_little_room() {
    let mut hand = protecting(DELETED, Config { requests_max: 1, ..Config::default() });
    hand.answer_all();
    assert_eq!(hand.rendered(), "");
    assert_eq!(hand.engine.pending(), 0);
}

/// Claims and volumes are listed one after the other: what changes in between is seen anew.
#[test]
fn proof_that_takes_two_lists_starts_over_when_the_object_is_replaced() {
    let mut hand = Hand::hosting(Box::new(AttributesClassProtection), "vac x guarded deleting", Config::default());
    hand.list_all();
    hand.tell(Input::Leader(true));
    hand.answer_only();
    assert_eq!(hand.only().1.target(), ObjectKey::cluster(Kind::Volume, Name::default()));
    // Somebody deletes and creates it, a claim refers to the new one, and that is deleted too.
    let class = ObjectKey::cluster(Kind::AttributesClass, Name::from("x"));
    hand.world.remove(&class);
    bindery_simulation::notation::add(&mut hand.world, "pvc c#u 1Gi Pending vac=x");
    hand.world.untold.pop_back();
    bindery_simulation::notation::add(&mut hand.world, "vac x guarded deleting");
    hand.watch();
    hand.answer_all();
    assert!(hand.rendered().contains("vac x guarded deleting"), "a claim refers to it:\n{}", hand.rendered());
}

/// A write that lets an object go is answered with the object: it is not looked at a second time.
#[test]
fn what_was_let_go_is_gone_before_word_of_it_comes() {
    let mut hand = start("pvc a#u-a 1Gi Pending guarded deleting");
    hand.answer_only();
    hand.answer_only();
    assert!(hand.open.is_empty(), "no second list: {:?}", hand.open);
    assert_eq!(hand.engine.known().count(Kind::Claim), 0);
    hand.watch();
    assert_eq!(hand.engine.pending(), 0);
}

/// A pod is listed, and goes: word of it never came, and never will.
#[test]
fn what_the_watch_knows_to_be_gone_holds_nothing() {
    let mut hand = start("pvc a#u-a 1Gi Pending guarded deleting");
    let (first, request) = hand.only();
    bindery_simulation::notation::add(&mut hand.world, "pod p claim=a node=n");
    let answer = hand.world.answer(&request);
    hand.world.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: "p".into() });
    hand.list_all();
    hand.open.remove(&first);
    hand.tell(Input::Answered(first, answer));
    assert_eq!(hand.step(), "protection.claim.remove-finalizer");
}
