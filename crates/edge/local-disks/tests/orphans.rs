//! What goes with a node that is gone, and what does not. Every rule has its case.

use std::collections::BTreeSet;

use bindery_local_disks::orphans::{Nodes, Orphan, hosts, judge, judge_claim};
use bindery_local_disks::rules::orphans as rules;
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

/// A volume of the host `gone`.
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

fn cases() -> Vec<(Value, &'static Rule, Orphan)> {
    let bound = || volume("Bound", "Delete");
    let affinity = |terms: &[Value]| with(bound(), "/spec/nodeAffinity", reachable(terms));
    let zone = json!({"key": "zone", "operator": "In", "values": ["a"]});
    let deleting = with(bound(), "/metadata", json!({"name": "v", "uid": "v1", "deletionTimestamp": "now"}));
    let free = || with(volume("Available", "Retain"), "/spec/claimRef", Value::Null);
    vec![
        (with(bound(), "/spec/local", Value::Null), &rules::NOT_CHOSEN, Orphan::Nothing),
        (with(bound(), "/spec/storageClassName", "slow".into()), &rules::NOT_CHOSEN, Orphan::Nothing),
        (with(bound(), "/spec/nodeAffinity", Value::Null), &rules::NO_NODE_NAMED, Orphan::Nothing),
        (affinity(&[term(std::slice::from_ref(&zone))]), &rules::NO_NODE_NAMED, Orphan::Nothing),
        (
            affinity(&[term(&[is_in(&["gone"])]), term(std::slice::from_ref(&zone))]),
            &rules::NO_NODE_NAMED,
            Orphan::Nothing,
        ),
        (affinity(&[term(&[is_in(&["gone"]), is_in(&["other"])])]), &rules::NO_NODE_NAMED, Orphan::Nothing),
        (affinity(&[term(&[is_in(&["../persistentvolumes"])])]), &rules::NO_NODE_NAMED, Orphan::Nothing),
        (affinity(&[term(&[is_in(&["gone", ".."])])]), &rules::NO_NODE_NAMED, Orphan::Nothing),
        (affinity(&[term(&[is_in(&["here"])])]), &rules::NODE_LIVES, Orphan::Nothing),
        (affinity(&[term(&[is_in(&["host-of-there"])])]), &rules::NODE_LIVES, Orphan::Nothing),
        (affinity(&[term(&[is_in(&["gone"])]), term(&[is_in(&["here"])])]), &rules::NODE_LIVES, Orphan::Nothing),
        (affinity(&[term(&[is_in(&["gone", "here"]), is_in(&["gone"])])]), &rules::DELETE_CLAIM, Orphan::Claim),
        (affinity(&[term(&[is_in(&["gone"]), zone])]), &rules::DELETE_CLAIM, Orphan::Claim),
        (bound(), &rules::DELETE_CLAIM, Orphan::Claim),
        (volume("Bound", "Retain"), &rules::DELETE_CLAIM, Orphan::Claim),
        (deleting, &rules::KEPT, Orphan::Nothing),
        (free(), &rules::DELETE_VOLUME, Orphan::Volume),
        (volume("Released", "Delete"), &rules::DELETE_VOLUME, Orphan::Volume),
        (volume("Released", "Retain"), &rules::KEPT, Orphan::Nothing),
        (volume("Failed", "Delete"), &rules::KEPT, Orphan::Nothing),
        (volume("Pending", "Delete"), &rules::KEPT, Orphan::Nothing),
    ]
}

fn claim_cases() -> Vec<(Option<Value>, &'static Rule, Orphan)> {
    let claim = |uid: &str, volume: &str| json!({"metadata": {"uid": uid}, "spec": {"volumeName": volume}});
    let deleting = json!({"metadata": {"uid": "c1", "deletionTimestamp": "now"}, "spec": {"volumeName": "v"}});
    vec![
        (None, &rules::CLAIM_GONE, Orphan::Nothing),
        (Some(claim("c2", "v")), &rules::CLAIM_GONE, Orphan::Nothing),
        (Some(deleting), &rules::CLAIM_GONE, Orphan::Nothing),
        (Some(claim("c1", "w")), &rules::CLAIM_ELSEWHERE, Orphan::Nothing),
        (Some(claim("c1", "v")), &rules::DELETE_CLAIM, Orphan::Claim),
    ]
}

#[test]
fn only_what_was_on_a_node_that_is_gone_goes() {
    let nodes = Nodes::new(&[
        json!({"metadata": {"name": "here"}}),
        json!({"metadata": {"name": "there", "labels": {"kubernetes.io/hostname": "host-of-there"}}}),
    ]);
    let classes = BTreeSet::from(["fast".to_owned()]);
    for (volume, rule, orphan) in cases() {
        let judged = judge(&volume, &classes, &nodes);
        assert_eq!((judged.rule.name, judged.orphan), (rule.name, orphan), "{volume}");
        assert_eq!(judge(&volume, &BTreeSet::new(), &nodes).orphan, Orphan::Nothing, "without a class, nothing goes");
    }
}

#[test]
fn only_the_very_claim_goes() {
    for (claim, rule, orphan) in claim_cases() {
        let judged = judge_claim(&volume("Bound", "Delete"), claim.as_ref());
        assert_eq!((judged.rule.name, judged.orphan), (rule.name, orphan), "{claim:?}");
    }
}

#[test]
fn every_rule_is_exercised() {
    let of_volumes = cases().into_iter().map(|(_, rule, _)| rule.name);
    let seen: BTreeSet<&str> = of_volumes.chain(claim_cases().into_iter().map(|(_, rule, _)| rule.name)).collect();
    assert_eq!(seen, rules::ALL.iter().map(|rule| rule.name).collect());
}

#[test]
fn hosts_are_those_of_any_term_that_satisfy_all_of_it() {
    let volume = |terms: &[Value]| json!({"spec": {"nodeAffinity": reachable(terms)}});
    let found = hosts(&volume(&[term(&[is_in(&["a", "b"]), is_in(&["b", "c"])]), term(&[is_in(&["d"])])]));
    assert_eq!(found, Some(["b", "d"].map(str::to_owned).into()));
    assert_eq!(hosts(&volume(&[])), None);
    assert_eq!(hosts(&json!({})), None);
}
