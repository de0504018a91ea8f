//! Live lists: requests at the same time share one list, later ones wait for the next, and no list
//! is older than what it proves.

use std::time::Duration;

use bindery_engine::{Answer, Config, Input, RequestError, RequestId};
use bindery_lifecycle::{AttributesClassProtection, ClaimProtection};
use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::Request;

use crate::harness::{Harness, REJECTED, claim_key};

const DELETED: &str = "pvc a#u-a 1Gi Pending protected deleting
                       pvc b#u-b 1Gi Pending protected deleting
                       pvc other/c#u-c 1Gi Pending protected deleting";

/// An engine with claim protection that has listed everything and is the leader.
fn protecting(state: &str, config: Config) -> Harness {
    let mut harness = Harness::hosting(Box::new(ClaimProtection { reports_unused: false }), state, config);
    harness.list_all();
    harness.handle(Input::Leader(true));
    harness
}

fn start(state: &str) -> Harness {
    protecting(state, Config::default())
}

/// The namespaces that are being listed.
fn listed(harness: &Harness) -> Vec<String> {
    let namespace = |request: &Request| match request {
        Request::List(listing) => Some(listing.namespace.to_string()),
        Request::Write(_)
        | Request::Create(_)
        | Request::Bind(_)
        | Request::Delete(_)
        | Request::Read(_)
        | Request::RunOperation(_) => None,
    };
    harness.open.values().filter_map(namespace).collect()
}

fn list_of(harness: &Harness, namespace: &str) -> RequestId {
    let is_it = |request: &Request| matches!(request, Request::List(listing) if listing.namespace == namespace);
    let found = harness.open.iter().find(|(_, request)| is_it(request));
    *found.unwrap_or_else(|| panic!("{namespace} is not being listed: {:?}", harness.open)).0
}

fn written(harness: &Harness) -> Vec<String> {
    let name = |request: &Request| match request {
        Request::Write(write) => Some(write.target().name.to_string()),
        Request::List(_)
        | Request::Create(_)
        | Request::Bind(_)
        | Request::Delete(_)
        | Request::Read(_)
        | Request::RunOperation(_) => None,
    };
    harness.open.values().filter_map(name).collect()
}

#[test]
fn simultaneous_requests_share_one_list() {
    let mut harness = start(DELETED);
    assert_eq!(listed(&harness), ["default", "other"]);
    harness.answer(list_of(&harness, "default"));
    assert_eq!(written(&harness), ["a", "b"]);
    harness.answer_all();
    assert_eq!(harness.rendered(), "");
    assert_eq!(harness.engine.pending(), 0);
}

#[test]
fn later_requests_wait_for_the_next_list() {
    let mut harness = start("pvc a#u-a 1Gi Pending protected deleting");
    let first = list_of(&harness, "default");
    harness.add("pvc b#u-b 1Gi Pending protected deleting");
    harness.add("pvc d#u-d 1Gi Pending protected deleting");
    assert_eq!(listed(&harness), ["default"], "one list at a time");
    harness.answer(first);
    assert_eq!(written(&harness), ["a"], "the list may be older than the deletion of the others");
    assert_eq!(listed(&harness), ["default"]);
    harness.answer(list_of(&harness, "default"));
    assert_eq!(written(&harness), ["a", "b", "d"], "one list for both");
}

/// The list was sent before the claim was deleted, and a pod without a watch event uses it since.
#[test]
fn list_from_before_the_deletion_proves_nothing() {
    let mut harness = Harness::hosting(
        Box::new(ClaimProtection::default()),
        "pvc a#u-a 1Gi Bound vol=v protected",
        Config::default(),
    );
    harness.list_all();
    harness.handle(Input::Leader(true));
    let (first, request) = harness.only();
    let answer = harness.cluster.answer(&request);
    bindery_simulation::notation::add(&mut harness.cluster, "pod p claim=a node=n");
    harness.cluster.pending_events.clear();
    harness.cluster.delete(&claim_key("a"));
    harness.watch();
    harness.open.remove(&first);
    harness.handle(Input::Answered(first, answer));
    assert_eq!(harness.step(), "list", "pods are listed again");
    harness.answer_only();
    assert!(harness.open.is_empty(), "the pod uses the claim: {:?}", harness.open);
    assert!(harness.rendered().contains("protected deleting"));
}

#[test]
fn change_before_the_list_is_sent_needs_no_further_list() {
    let mut harness = start("pvc a#u-a 1Gi Pending protected deleting");
    let first = list_of(&harness, "default");
    harness.add("pvc b#u-b 1Gi Pending protected deleting");
    // The claim changes while it waits for the next list.
    harness.add("pvc b#u-b 2Gi Pending protected deleting");
    harness.answer(first);
    harness.answer(list_of(&harness, "default"));
    assert_eq!(written(&harness), ["a", "b"]);
    assert!(listed(&harness).is_empty());
}

#[test]
fn rejected_list_is_retried_with_back_off() {
    let mut harness = start("pvc a#u-a 1Gi Pending protected deleting");
    for millis in [5, 10, 20] {
        harness.reject(REJECTED());
        harness.tick(Duration::from_millis(millis - 1));
        assert!(harness.open.is_empty(), "retried before {millis} ms");
        harness.tick(Duration::from_millis(1));
        assert_eq!(harness.step(), "list");
    }
    harness.reject(RequestError::RetryAfter(Duration::from_secs(3), "too many requests".into()));
    harness.tick(Duration::from_millis(2999));
    assert!(harness.open.is_empty());
    harness.tick(Duration::from_millis(1));
    harness.reject(RequestError::Lost);
    harness.tick(Duration::from_secs(60));
    harness.answer_all();
    assert_eq!(harness.rendered(), "");
}

#[test]
fn all_requests_of_a_rejected_list_are_retried() {
    let mut harness = start(DELETED);
    let first = list_of(&harness, "default");
    harness.open.remove(&first);
    harness.handle(Input::Answered(first, Answer::Rejected(REJECTED())));
    assert_eq!(listed(&harness), ["other"], "other namespaces are not delayed");
    harness.tick(Duration::from_millis(5));
    harness.answer(list_of(&harness, "default"));
    assert_eq!(written(&harness), ["a", "b"], "one list for both, again");
}

#[test]
fn list_answered_after_leadership_is_lost_is_dropped() {
    let mut harness = start("pvc a#u-a 1Gi Pending protected deleting");
    let first = list_of(&harness, "default");
    harness.handle(Input::Leader(false));
    harness.answer(first);
    assert!(harness.open.is_empty(), "{:?}", harness.open);
    assert_eq!(harness.engine.pending(), 0);
}

#[test]
fn list_from_before_leadership_was_lost_is_not_used_after_it_is_regained() {
    let mut harness = start("pvc a#u-a 1Gi Pending protected deleting");
    let first = list_of(&harness, "default");
    harness.handle(Input::Leader(false));
    harness.handle(Input::Leader(true));
    assert_eq!(listed(&harness), ["default"], "the old list is still in flight");
    harness.answer(first);
    assert!(written(&harness).is_empty());
    harness.answer(list_of(&harness, "default"));
    assert_eq!(written(&harness), ["a"]);
}

#[test]
fn deleted_claim_is_not_written_after_the_list() {
    let mut harness = start("pvc a#u-a 1Gi Pending protected deleting");
    let first = list_of(&harness, "default");
    harness.cluster.remove(&claim_key("a"));
    harness.watch();
    harness.answer(first);
    assert!(harness.open.is_empty(), "{:?}", harness.open);
    assert_eq!(harness.engine.pending(), 0);
}

#[test]
fn lists_count_as_requests_and_wait_for_capacity() {
    let mut harness = protecting(DELETED, Config { requests_max: 1, ..Config::default() });
    assert_eq!(harness.engine.in_flight(), (1, 0));
    assert_eq!(listed(&harness), ["default"]);
    while listed(&harness) != ["other"] {
        harness.answer_only();
        assert_eq!(harness.open.len(), 1, "one request at a time: {:?}", harness.open);
    }
}

/// At the first start with many namespaces, the API server is not flooded with lists.
#[test]
fn lists_of_many_namespaces_do_not_exceed_the_request_limit() {
    let state: String = (0..2000).map(|n| format!("pvc ns{n:04}/c#u{n} 1Gi Pending protected deleting\n")).collect();
    let mut harness = start(&state);
    let mut most = 0;
    while let Some((&id, _)) = harness.open.iter().next() {
        most = most.max(harness.open.len());
        harness.answer(id);
    }
    assert_eq!(most, Config::default().requests_max, "the limit is reached, and not exceeded");
    assert_eq!(harness.rendered(), "", "all claims are deleted");
}

/// With capacity for one list only, claims are decided in order, and none is dropped.
#[test]
fn all_claims_are_decided_with_a_low_request_limit() {
    let mut harness = protecting(DELETED, Config { requests_max: 1, ..Config::default() });
    harness.answer_all();
    assert_eq!(harness.rendered(), "");
    assert_eq!(harness.engine.pending(), 0);
}

/// Claims and volumes are listed one after the other: changes in between invalidate the proof.
#[test]
fn proof_of_two_lists_starts_over_when_the_object_is_replaced() {
    let mut harness =
        Harness::hosting(Box::new(AttributesClassProtection), "vac x protected deleting", Config::default());
    harness.list_all();
    harness.handle(Input::Leader(true));
    harness.answer_only();
    assert_eq!(harness.only().1.target(), ObjectKey::cluster(Kind::Volume, Name::default()));
    // The class is deleted and created, a claim refers to the new one, and that is deleted as well.
    let class = ObjectKey::cluster(Kind::AttributesClass, Name::from("x"));
    harness.cluster.remove(&class);
    bindery_simulation::notation::add(&mut harness.cluster, "pvc c#u 1Gi Pending vac=x");
    harness.cluster.pending_events.pop_back();
    bindery_simulation::notation::add(&mut harness.cluster, "vac x protected deleting");
    harness.watch();
    harness.answer_all();
    assert!(harness.rendered().contains("vac x protected deleting"), "a claim refers to it:\n{}", harness.rendered());
}

/// A write that removes the last finalizer is answered with the object, which is not decided again.
#[test]
fn unprotected_object_is_removed_before_its_watch_event() {
    let mut harness = start("pvc a#u-a 1Gi Pending protected deleting");
    harness.answer_only();
    harness.answer_only();
    assert!(harness.open.is_empty(), "no second list: {:?}", harness.open);
    assert_eq!(harness.engine.known().count(Kind::Claim), 0);
    harness.watch();
    assert_eq!(harness.engine.pending(), 0);
}

/// A pod is listed and then deleted, and no watch event about it is ever delivered.
#[test]
fn deleted_pod_in_a_stale_list_does_not_protect_the_claim() {
    let mut harness = start("pvc a#u-a 1Gi Pending protected deleting");
    let (first, request) = harness.only();
    bindery_simulation::notation::add(&mut harness.cluster, "pod p claim=a node=n");
    let answer = harness.cluster.answer(&request);
    harness.cluster.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: "p".into() });
    harness.list_all();
    harness.open.remove(&first);
    harness.handle(Input::Answered(first, answer));
    assert_eq!(harness.step(), "protection.claim.remove-finalizer");
}
