//! What is deleted after a node was deleted. Every rule has a case.

use std::collections::BTreeSet;

use bindery_local_disks::deleted_nodes::{Cleanup, ExistingNodes, decide_claim, decide_volume, hosts};
use bindery_local_disks::rules::deleted_node as rules;
use bindery_rules_api::Rule;
use serde_json::{Value, json};

fn is_in(values: &[&str]) -> Value {
    json!({"key": "kubernetes.io/hostname", "operator": "In", "values": values})
}

fn term(expressions: &[Value]) -> Value {
    json!({"matchExpressions": expressions})
}

fn reachable(terms: &[Value]) -> Value {
    json!({"required": {"nodeSelectorTerms": terms}})
}

/// A volume on the host `deleted`.
fn volume(phase: &str, policy: &str) -> Value {
    json!({
        "metadata": {"name": "v", "uid": "v1"},
        "spec": {
            "storageClassName": "fast", "persistentVolumeReclaimPolicy": policy, "local": {"path": "/d"},
            "claimRef": {"namespace": "ns", "name": "c", "uid": "c1"},
            "nodeAffinity": reachable(&[term(&[is_in(&["gone"])])]),
        },
        "status": {"phase": phase},
    })
}

fn with(mut volume: Value, pointer: &str, value: Value) -> Value {
    *volume.pointer_mut(pointer).expect("a field") = value;
    volume
}

fn cases() -> Vec<(Value, &'static Rule, Cleanup)> {
    let bound = || volume("Bound", "Delete");
    let affinity = |terms: &[Value]| with(bound(), "/spec/nodeAffinity", reachable(terms));
    let zone = json!({"key": "zone", "operator": "In", "values": ["a"]});
    let deleting = with(bound(), "/metadata", json!({"name": "v", "uid": "v1", "deletionTimestamp": "now"}));
    let free = || with(volume("Available", "Retain"), "/spec/claimRef", Value::Null);
    vec![
        (with(bound(), "/spec/local", Value::Null), &rules::CLASS_NOT_SELECTED, Cleanup::Nothing),
        (with(bound(), "/spec/storageClassName", "slow".into()), &rules::CLASS_NOT_SELECTED, Cleanup::Nothing),
        (with(bound(), "/spec/nodeAffinity", Value::Null), &rules::NO_HOSTNAME_AFFINITY, Cleanup::Nothing),
        (affinity(&[term(std::slice::from_ref(&zone))]), &rules::NO_HOSTNAME_AFFINITY, Cleanup::Nothing),
        (
            affinity(&[term(&[is_in(&["gone"])]), term(std::slice::from_ref(&zone))]),
            &rules::NO_HOSTNAME_AFFINITY,
            Cleanup::Nothing,
        ),
        (affinity(&[term(&[is_in(&["gone"]), is_in(&["other"])])]), &rules::NO_HOSTNAME_AFFINITY, Cleanup::Nothing),
        (affinity(&[term(&[is_in(&["../persistentvolumes"])])]), &rules::NO_HOSTNAME_AFFINITY, Cleanup::Nothing),
        (affinity(&[term(&[is_in(&["gone", ".."])])]), &rules::NO_HOSTNAME_AFFINITY, Cleanup::Nothing),
        (affinity(&[term(&[is_in(&["here"])])]), &rules::NODE_EXISTS, Cleanup::Nothing),
        (affinity(&[term(&[is_in(&["host-of-there"])])]), &rules::NODE_EXISTS, Cleanup::Nothing),
        (affinity(&[term(&[is_in(&["gone"])]), term(&[is_in(&["here"])])]), &rules::NODE_EXISTS, Cleanup::Nothing),
        (affinity(&[term(&[is_in(&["gone", "here"]), is_in(&["gone"])])]), &rules::DELETE_CLAIM, Cleanup::DeleteClaim),
        (affinity(&[term(&[is_in(&["gone"]), zone])]), &rules::DELETE_CLAIM, Cleanup::DeleteClaim),
        (bound(), &rules::DELETE_CLAIM, Cleanup::DeleteClaim),
        (volume("Bound", "Retain"), &rules::DELETE_CLAIM, Cleanup::DeleteClaim),
        (deleting, &rules::VOLUME_KEPT, Cleanup::Nothing),
        (free(), &rules::DELETE_VOLUME, Cleanup::DeleteVolume),
        (volume("Released", "Delete"), &rules::DELETE_VOLUME, Cleanup::DeleteVolume),
        (volume("Released", "Retain"), &rules::VOLUME_KEPT, Cleanup::Nothing),
        (volume("Failed", "Delete"), &rules::VOLUME_KEPT, Cleanup::Nothing),
        (volume("Pending", "Delete"), &rules::VOLUME_KEPT, Cleanup::Nothing),
    ]
}

fn claim_cases() -> Vec<(Option<Value>, &'static Rule, Cleanup)> {
    let claim = |uid: &str, volume: &str| json!({"metadata": {"uid": uid}, "spec": {"volumeName": volume}});
    let deleting = json!({"metadata": {"uid": "c1", "deletionTimestamp": "now"}, "spec": {"volumeName": "v"}});
    vec![
        (None, &rules::CLAIM_DELETED, Cleanup::Nothing),
        (Some(claim("c2", "v")), &rules::CLAIM_DELETED, Cleanup::Nothing),
        (Some(deleting), &rules::CLAIM_DELETED, Cleanup::Nothing),
        (Some(claim("c1", "w")), &rules::CLAIM_BOUND_ELSEWHERE, Cleanup::Nothing),
        (Some(claim("c1", "v")), &rules::DELETE_CLAIM, Cleanup::DeleteClaim),
    ]
}

#[test]
fn only_objects_of_deleted_nodes_are_deleted() {
    let nodes = ExistingNodes::new(&[
        json!({"metadata": {"name": "here"}}),
        json!({"metadata": {"name": "there", "labels": {"kubernetes.io/hostname": "host-of-there"}}}),
    ]);
    let classes = BTreeSet::from(["fast".to_owned()]);
    for (volume, rule, cleanup) in cases() {
        let decision = decide_volume(&volume, &classes, &nodes);
        assert_eq!((decision.rule.name, decision.cleanup), (rule.name, cleanup), "{volume}");
        assert_eq!(
            decide_volume(&volume, &BTreeSet::new(), &nodes).cleanup,
            Cleanup::Nothing,
            "nothing is deleted without a class"
        );
    }
}

#[test]
fn only_the_claim_bound_to_the_volume_is_deleted() {
    for (claim, rule, cleanup) in claim_cases() {
        let decision = decide_claim(&volume("Bound", "Delete"), claim.as_ref());
        assert_eq!((decision.rule.name, decision.cleanup), (rule.name, cleanup), "{claim:?}");
    }
}

#[test]
fn every_rule_is_exercised() {
    let of_volumes = cases().into_iter().map(|(_, rule, _)| rule.name);
    let seen: BTreeSet<&str> = of_volumes.chain(claim_cases().into_iter().map(|(_, rule, _)| rule.name)).collect();
    assert_eq!(seen, rules::ALL.iter().map(|rule| rule.name).collect());
}

#[test]
fn hosts_are_the_union_of_terms_and_the_intersection_of_expressions() {
    let volume = |terms: &[Value]| json!({"spec": {"nodeAffinity": reachable(terms)}});
    let found = hosts(&volume(&[term(&[is_in(&["a", "b"]), is_in(&["b", "c"])]), term(&[is_in(&["d"])])]));
    assert_eq!(found, Some(["b", "d"].map(str::to_owned).into()));
    assert_eq!(hosts(&volume(&[])), None);
    assert_eq!(hosts(&json!({})), None);
}
