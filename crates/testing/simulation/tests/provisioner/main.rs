//! Table cases of the provisioner. Each is run until stable, with a restart after every effect, and
//! with two leaders. No storage is leaked in any of them.

mod case;

mod claims;
mod faults;
mod lifecycle;
mod own_node;
mod topology;
mod volumes;

use std::collections::BTreeSet;

use bindery_cache::Cache;
use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_provisioner::{Config, Provisioner, rules};
use bindery_rules_api::{Action, Backoff, Failure, LiveReads, OperationOutput, Request, RuleSet, Task, Verdict};
use bindery_simulation::notation;
use bindery_simulation::run::cache_of;
use case::{Case, check, config};
use serde_json::{Value, json};

fn all() -> Vec<Case> {
    [claims::cases(), lifecycle::cases(), own_node::cases(), faults::cases(), volumes::cases()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_case_reaches_its_expected_state() {
    let failures: Vec<String> = all().iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{} cases fail:\n\n{}", failures.len(), failures.join("\n\n"));
}

/// The verdict about a claim whose prepared values are for another node or claim.
fn stale(found: Value) -> Verdict {
    let lines = "sc gold csi.example.com wffc
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n1";
    let known = cache_of(&notation::parse(lines), &[]);
    let mut live_reads = LiveReads::default();
    live_reads.note_outcome(Task::Prepare, Ok(OperationOutput::of(found)));
    Provisioner::new(config()).decide(&known, &ClaimKey::new("default", "c").into(), &live_reads)
}

#[test]
fn values_prepared_for_another_claim_or_node_are_not_used() {
    let found = |uid: &str, node: &str| json!({"uid": uid, "node": node, "attempt": null, "found": null});
    assert_eq!(stale(found("u1", "n1")).rule.name, "provisioner.claim.record-intent");
    assert_eq!(stale(found("u1", "n2")).rule.name, "provisioner.claim.stale");
    assert_eq!(stale(found("u9", "n1")).rule.name, "provisioner.claim.stale");
}

#[test]
fn storage_of_a_former_claim_becomes_a_volume_first() {
    let known = cache_of(&notation::parse("pvc c#u2 1Gi Pending class=gold sp=csi.example.com"), &[]);
    let mut live_reads = LiveReads::default();
    let made = json!({"metadata": {"name": "pvc-u1"}, "spec": {"claimRef": {"uid": "u1"}}});
    live_reads.note_outcome(Task::CreateStorage, Ok(OperationOutput::of(made)));
    let rules = Provisioner::new(config());
    let key = ClaimKey::new("default", "c").into();
    let verdict = rules.decide(&known, &key, &live_reads);
    assert!(matches!(&verdict.action, Action::Request(Request::Create(create)) if create.key.name == "pvc-u1"));
    live_reads.note_outcome(Task::SaveVolume, Ok(OperationOutput::default()));
    assert_eq!(
        rules.decide(&known, &key, &live_reads).rule.name,
        "provisioner.claim.check",
        "the existing volume is read"
    );
    let lines = "pv pvc-u1 1Gi Pending ->c#u1 source=csi:csi.example.com";
    let (_, found) = notation::parse(lines).list(Kind::Volume);
    live_reads.note_read(ObjectKey::volume("pvc-u1"), found.into_iter().next());
    assert_eq!(rules.decide(&known, &key, &live_reads).rule.name, "provisioner.claim.stale");
}

/// The verdict after a definite failure, if the intent belongs to an attempt of this instance.
fn storage_rejects(instance: &str) -> Verdict {
    let lines = "sc gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com fin=bindery.dev/provisioning";
    let mut cluster = notation::parse(lines);
    let key: ObjectKey = ClaimKey::new("default", "c").into();
    let intent = json!({"provisioner": "csi.example.com", "attempt": {"instance": instance, "number": 1}}).to_string();
    cluster.edit(&key, json!({"metadata": {"annotations": {"bindery.dev/provisioning": intent}}}));
    let mut live_reads = LiveReads::default();
    let found = json!({"uid": "u1", "node": null, "topology": null, "attempt": null, "found": null});
    live_reads.note_outcome(Task::Prepare, Ok(OperationOutput::of(found)));
    live_reads.note_outcome(Task::CreateStorage, Err(Failure::new("no")));
    let config = Config { instance: "me".into(), ..config() };
    Provisioner::new(config).decide(&cache_of(&cluster, &[]), &key, &live_reads)
}

#[test]
fn failure_before_the_attempt_of_another_instance_does_not_end_the_intent() {
    assert!(
        matches!(storage_rejects("me").action, Action::Request(Request::Write(_))),
        "no storage exists, so the intent is removed"
    );
    let verdict = storage_rejects("another");
    assert_eq!(
        (verdict.rule.name, &verdict.action),
        ("provisioner.claim.superseded", &Action::Retry(Backoff::Storage))
    );
}

#[test]
fn every_rule_is_exercised() {
    let node = ObjectKey::cluster(Kind::Node, "n1");
    let not_ours =
        Provisioner::new(config()).decide(&Cache::new(bindery_matching::INDEX_POLICY), &node, &LiveReads::default());
    let mut exercised =
        BTreeSet::from([not_ours.rule.name, stale(json!({})).rule.name, storage_rejects("another").rule.name]);
    exercised.extend(all().iter().filter_map(|case| check(case).ok()).flatten());
    let missing: Vec<_> = rules::ALL.iter().map(|rule| rule.name).filter(|name| !exercised.contains(name)).collect();
    assert!(missing.is_empty(), "no case exercises {missing:?}");
}
