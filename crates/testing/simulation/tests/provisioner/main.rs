//! What a provisioner does, as tables: until stable, with a restart after every effect (a write, or an answer of the storage),
//! and with two engines. In every one of them, nothing that the storage holds is forgotten.

mod case;

mod claims;
mod life;
mod own_node;
mod places;
mod trouble;
mod volumes;

use std::collections::BTreeSet;

use bindery_cache::Cache;
use bindery_model::{ClaimKey, Kind, ObjectKey};
use bindery_provisioner::{Config, Provisioner, rules};
use bindery_rules_api::{Action, Backoff, Failure, LiveReads, OperationOutput, Request, RuleSet, Task, Verdict};
use bindery_simulation::notation;
use bindery_simulation::run::mirror_of;
use case::{Case, check, config};
use serde_json::{Value, json};

fn all() -> Vec<Case> {
    [claims::cases(), life::cases(), own_node::cases(), trouble::cases(), volumes::cases()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_case_ends_as_it_should() {
    let failures: Vec<String> = all().iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{} cases fail:\n\n{}", failures.len(), failures.join("\n\n"));
}

/// What is decided about a claim for which something was found out for another node, or for a former claim of that name.
fn stale(found: Value) -> Verdict {
    let lines = "sc gold csi.example.com wffc
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com node=n1";
    let known = mirror_of(&notation::parse(lines), &[]);
    let mut live_reads = LiveReads::default();
    live_reads.note_outcome(Task::Prepare, Ok(OperationOutput::of(found)));
    Provisioner::new(config()).decide(&known, &ClaimKey::new("default", "c").into(), &live_reads)
}

#[test]
fn what_was_found_out_for_another_is_not_used() {
    let found = |uid: &str, node: &str| json!({"uid": uid, "node": node, "turn": null, "found": null});
    assert_eq!(stale(found("u1", "n1")).rule.name, "provision.claim.intend");
    assert_eq!(stale(found("u1", "n2")).rule.name, "provision.claim.stale");
    assert_eq!(stale(found("u9", "n1")).rule.name, "provision.claim.stale");
}

#[test]
fn what_was_made_for_a_former_claim_becomes_a_volume_first() {
    let known = mirror_of(&notation::parse("pvc c#u2 1Gi Pending class=gold sp=csi.example.com"), &[]);
    let mut live_reads = LiveReads::default();
    let made = json!({"metadata": {"name": "pvc-u1"}, "spec": {"claimRef": {"uid": "u1"}}});
    live_reads.note_outcome(Task::Provision, Ok(OperationOutput::of(made)));
    let rules = Provisioner::new(config());
    let key = ClaimKey::new("default", "c").into();
    let verdict = rules.decide(&known, &key, &live_reads);
    assert!(matches!(&verdict.action, Action::Request(Request::Create(create)) if create.key.name == "pvc-u1"));
    live_reads.note_outcome(Task::SaveVolume, Ok(OperationOutput::default()));
    assert_eq!(rules.decide(&known, &key, &live_reads).rule.name, "provision.claim.check", "is it this one?");
    let lines = "pv pvc-u1 1Gi Pending ->c#u1 source=csi:csi.example.com";
    let (_, found) = notation::parse(lines).list(Kind::Volume);
    live_reads.note_read(ObjectKey::volume("pvc-u1"), found.into_iter().next());
    assert_eq!(rules.decide(&known, &key, &live_reads).rule.name, "provision.claim.stale");
}

/// What is decided when the storage said no, and the intent on the claim is in a turn of this instance.
fn told_no(instance: &str) -> Verdict {
    let lines = "sc gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com fin=bindery.dev/provisioning";
    let mut world = notation::parse(lines);
    let key: ObjectKey = ClaimKey::new("default", "c").into();
    let intent = json!({"provisioner": "csi.example.com", "turn": {"instance": instance, "number": 1}}).to_string();
    world.edit(&key, json!({"metadata": {"annotations": {"bindery.dev/provisioning": intent}}}));
    let mut live_reads = LiveReads::default();
    let found = json!({"uid": "u1", "node": null, "topology": null, "turn": null, "found": null});
    live_reads.note_outcome(Task::Prepare, Ok(OperationOutput::of(found)));
    live_reads.note_outcome(Task::Provision, Err(Failure::new("no")));
    let config = Config { instance: "me".into(), ..config() };
    Provisioner::new(config).decide(&mirror_of(&world, &[]), &key, &live_reads)
}

#[test]
fn what_was_told_before_somebody_else_asked_ends_nothing() {
    assert!(matches!(told_no("me").action, Action::Request(Request::Write(_))), "there is nothing: the intent goes");
    let verdict = told_no("another");
    assert_eq!((verdict.rule.name, &verdict.action), ("provision.claim.overtaken", &Action::Retry(Backoff::Storage)));
}

#[test]
fn every_rule_is_exercised() {
    let node = ObjectKey::cluster(Kind::Node, "n1");
    let not_ours =
        Provisioner::new(config()).decide(&Cache::new(bindery_matching::INDEX_POLICY), &node, &LiveReads::default());
    let mut exercised = BTreeSet::from([not_ours.rule.name, stale(json!({})).rule.name, told_no("another").rule.name]);
    exercised.extend(all().iter().filter_map(|case| check(case).ok()).flatten());
    let missing: Vec<_> = rules::ALL.iter().map(|rule| rule.name).filter(|name| !exercised.contains(name)).collect();
    assert!(missing.is_empty(), "no case exercises {missing:?}");
}
