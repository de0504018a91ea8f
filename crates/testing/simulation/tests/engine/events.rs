//! Events, measurements, invalid input.

use std::time::Duration;

use bindery_engine::{Config, Input, RequestError};
use bindery_model::{Kind, Object, ObjectKey};
use bindery_rules_api::Timed;
use bindery_simulation::notation;

use crate::harness::{Harness, PAIR, WAITING, claim_key, many};

#[test]
fn unchanged_event_is_not_repeated() {
    let mut harness = Harness::start("pvc c#u 1Gi Pending class=");
    assert_eq!(harness.events.len(), 1);
    for _ in 0..100 {
        harness.tick(Duration::from_secs(15));
    }
    harness.cluster.edit(&claim_key("c"), serde_json::json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
    harness.watch();
    assert_eq!(harness.events.len(), 1);
    assert!(harness.engine.stats().resyncs > 50 && harness.engine.stats().resync_finds == 0);
}

#[test]
fn event_is_published_again_after_a_different_one() {
    let mut harness = Harness::start("sc late example.com/x wffc\npvc c#u 1Gi Pending class=late");
    harness.add("pod p claim=c");
    harness.cluster.remove(&ObjectKey { kind: Kind::Pod, namespace: "default".into(), name: "p".into() });
    harness.watch();
    let reasons: Vec<&str> = harness.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(reasons, ["WaitForFirstConsumer", "WaitForPodScheduled", "WaitForFirstConsumer"]);
}

#[test]
fn class_is_not_reported_missing_while_its_watch_event_is_late() {
    let mut harness = Harness::start("");
    notation::add(&mut harness.cluster, "sc ext example.com/ext\npvc c#u 1Gi Pending class=ext");
    harness.cluster.pending_events.retain(|event| event.kind() == Kind::Claim);
    harness.watch();
    assert_eq!(harness.step(), "read", "the class is read live");
    harness.answer_all();
    assert!(harness.events.iter().all(|event| event.reason.as_str() == "ExternalProvisioning"), "{:?}", harness.events);
    assert!(!harness.events.is_empty());
}

#[test]
fn missing_class_is_read_once_and_reported_once() {
    let mut harness = Harness::start("pvc c#u 1Gi Pending class=none");
    assert!(harness.events.is_empty());
    assert_eq!(harness.step(), "read");
    harness.reject(RequestError::Lost);
    assert!(harness.events.is_empty(), "the outcome of the read is unknown");
    harness.tick(Duration::from_secs(60));
    harness.answer_only();
    let reasons: Vec<&str> = harness.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(reasons, ["ProvisioningFailed"]);
    let finds = harness.engine.stats().resync_finds;
    for _ in 0..100 {
        harness.tick(Duration::from_secs(15));
    }
    assert!(harness.open.is_empty(), "the class is not read again");
    assert_eq!((harness.events.len(), harness.engine.stats().resync_finds), (1, finds));
    harness.add("sc none example.com/ext");
    harness.answer_all();
    assert_eq!(harness.events.last().map(|event| event.reason.as_str()), Some("ExternalProvisioning"));
}

#[test]
fn provisioning_is_measured_from_request_to_bound() {
    let mut harness = Harness::start("sc ext example.com/ext\npvc c#u 1Gi Pending class=ext");
    harness.answer_all();
    assert!(harness.engine.is_timing(Timed::Provision, &claim_key("c")));
    harness.now += Duration::from_secs(7);
    harness.add("pv pvc-u 1Gi Pending ->c#u by=example.com/ext class=ext policy=Delete source=csi:example.com/ext");
    harness.answer_all();
    assert!(!harness.engine.is_timing(Timed::Provision, &claim_key("c")));
    assert_eq!(harness.cluster.effects, 1 + 3, "the request, then three writes for a volume with a claimRef");

    let mut harness = Harness::start("sc ext example.com/ext\npvc c#u 1Gi Pending class=ext");
    harness.answer_all();
    harness.cluster.remove(&claim_key("c"));
    harness.watch();
    assert!(!harness.engine.is_timing(Timed::Provision, &claim_key("c")), "the claim was deleted");
}

#[test]
fn malformed_object_does_not_block_others() {
    let mut harness = Harness::start(PAIR);
    harness.cluster.edit(&ObjectKey::volume("v"), serde_json::json!({"status": {"phase": "Melted"}}));
    harness.watch();
    harness.answer_all();
    let melted = harness.decided.iter().rev().find(|decided| decided.key.kind == Kind::Volume).expect("decided about");
    assert_eq!(melted.rule.name, "volume.malformed");
    assert_eq!(melted.note.as_deref(), Some("status.phase: \"Melted\": an unknown value"));
    harness.add("pv w 1Gi Available");
    harness.add("pvc d#w 1Gi Pending");
    harness.answer_all();
    assert!(harness.rendered().contains("pv w 1Gi Bound"), "{}", harness.rendered());
}

#[test]
fn same_objects_give_same_output_in_whatever_order_they_are_listed() {
    let trace = |in_reverse: bool| {
        let mut harness = Harness::idle(&(many(12) + WAITING), Config::default());
        for kind in Kind::ALL {
            let (version, mut objects) = harness.cluster.list(kind);
            if in_reverse {
                objects.reverse();
            }
            harness.handle(Input::Listed { kind, version, objects });
        }
        harness.cluster.pending_events.clear();
        harness.handle(Input::Leader(true));
        harness.answer_all();
        harness.add("pv late 20Gi Pending");
        harness.answer_all();
        (harness.decided, harness.events, harness.cluster.history)
    };
    let (first, second) = (trace(false), trace(true));
    assert_eq!(first.0, second.0);
    assert_eq!(first.1, second.1);
    assert_eq!(first.2, second.2);
}

#[test]
fn other_kinds_are_not_decided_by_the_binder() {
    let mut harness = Harness::start("");
    harness.handle(Input::Watched(
        Object::from_json(Kind::AttributesClass, br#"{"metadata":{"name":"gold"}}"#).expect("named"),
    ));
    assert!(harness.decided.is_empty());
}
