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
use bindery_rules_api::{
    Action, Backoff, Failure, FailureEffect, LiveReads, OperationOutput, Request, RuleSet, Task, Verdict,
};
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
    let found = |uid: &str, node: &str| json!({"uid": uid, "node": node, "found": null});
    assert_eq!(stale(found("u1", "n1")).rule.name, "provisioner.claim.record");
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

/// A record of an attempt, of this provisioner unless `driver` says otherwise.
fn record(instance: &str, outcome_unknown: bool, driver: &str) -> Value {
    json!({
        "metadata": {"name": "u1", "uid": "u1"},
        "claim": {"namespace": "default", "name": "c"},
        "attempt": {"instance": instance, "number": 1},
        "outcomeUnknown": outcome_unknown,
        "request": {"driver": driver, "provisioner": "csi.example.com", "volume": "pvc-u1"},
    })
}

/// The verdict about a claim with a record, after the storage has failed if `effect` says how. The
/// record is in the version that was written for the call if `is_own`.
fn with_record(record: Value, effect: Option<FailureEffect>, is_own: bool) -> Verdict {
    let lines = "sc gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com";
    let mut cluster = notation::parse(lines);
    cluster.put(Kind::Record, record);
    let known = cache_of(&cluster, &[]);
    let mut live_reads = LiveReads::default();
    let key = ObjectKey::record("u1");
    if is_own {
        live_reads.note_written(key.clone(), known.seen_version(&key).expect("the record is cached"));
    }
    if let Some(effect) = effect {
        live_reads.note_outcome(Task::CreateStorage, Err(Failure::new("no").with(effect)));
    }
    Provisioner::new(config()).decide(&known, &ClaimKey::new("default", "c").into(), &live_reads)
}

#[test]
fn storage_is_called_only_in_an_attempt_that_was_recorded_for_this_call() {
    let verdict = with_record(record("me", false, "csi.example.com"), None, false);
    assert_eq!(verdict.rule.name, "provisioner.claim.record-attempt", "the record may be of an earlier call");
    let verdict = with_record(record("me", false, "csi.example.com"), None, true);
    assert_eq!(verdict.rule.name, "provisioner.claim.create");
}

#[test]
fn failure_before_the_attempt_of_another_instance_does_not_end_the_record() {
    let rejected = |is_own| with_record(record("me", false, "csi.example.com"), Some(FailureEffect::Nothing), is_own);
    assert_eq!(rejected(true).rule.name, "provisioner.claim.created-nothing");
    let verdict = rejected(false);
    assert_eq!(
        (verdict.rule.name, &verdict.action),
        ("provisioner.claim.superseded", &Action::Retry(Backoff::Storage))
    );
}

#[test]
fn after_an_unknown_outcome_only_an_answer_about_the_volume_ends_the_record() {
    let rule = |effect| with_record(record("me", true, "csi.example.com"), Some(effect), true).rule.name;
    for effect in [FailureEffect::Reschedule, FailureEffect::Absent] {
        assert_eq!(rule(effect), "provisioner.claim.created-nothing", "{effect:?}");
    }
    for effect in [FailureEffect::Nothing, FailureEffect::Infeasible, FailureEffect::NotOurs, FailureEffect::InUse] {
        assert_eq!(rule(effect), "provisioner.claim.inconclusive", "{effect:?}");
    }
    assert_eq!(rule(FailureEffect::NameTaken), "provisioner.claim.parameters-changed");
    assert_eq!(rule(FailureEffect::NotAttempted), "provisioner.claim.not-attempted");
    assert_eq!(rule(FailureEffect::Unknown), "provisioner.claim.outcome-unknown");
    assert_eq!(rule(FailureEffect::Stale), "provisioner.claim.stale");
}

#[test]
fn records_that_are_malformed_or_of_another_provisioner_are_not_passed_to_the_storage() {
    for is_own in [false, true] {
        let foreign = with_record(record("me", false, "other.example.com"), None, is_own);
        assert_eq!((foreign.rule.name, &foreign.action), ("provisioner.record.not-ours", &Action::Idle));
        let mut broken = record("me", false, "csi.example.com");
        broken["request"]["topology"] = "everywhere".into();
        assert_eq!(with_record(broken, None, is_own).rule.name, "provisioner.record.malformed");
    }
}

#[test]
fn claims_wait_while_there_are_too_many_records_and_too_large_requests_are_not_recorded() {
    let lines = "sc gold csi.example.com
                 pvc c#u1 1Gi Pending class=gold sp=csi.example.com";
    let mut cluster = notation::parse(lines);
    let mut other = record("me", false, "csi.example.com");
    other["metadata"] = json!({"name": "u2", "uid": "u2"});
    cluster.put(Kind::Record, other);
    let known = cache_of(&cluster, &[]);
    let decide = |records_max: usize, live_reads: &LiveReads| {
        let config = Config { records_max, ..config() };
        Provisioner::new(config).decide(&known, &ClaimKey::new("default", "c").into(), live_reads)
    };
    let mut live_reads = LiveReads::default();
    assert_eq!(decide(2, &live_reads).rule.name, "provisioner.claim.prepare");
    let waits = decide(1, &live_reads);
    assert_eq!(waits.rule.name, "provisioner.claim.records-full");
    assert!(matches!(waits.action, Action::Pause(_)), "it is decided again soon");
    live_reads.note_pause();
    assert_eq!(decide(2, &live_reads).action, Action::Retry(Backoff::Api), "it starts again");

    let prepared = |found: &str| {
        let mut live_reads = LiveReads::default();
        let found = json!({"uid": "u1", "node": null, "topology": null, "found": found});
        live_reads.note_outcome(Task::Prepare, Ok(OperationOutput::of(found)));
        live_reads
    };
    assert_eq!(decide(2, &prepared("")).rule.name, "provisioner.claim.record");
    let large = decide(2, &prepared(&"x".repeat(config().record_bytes_max)));
    assert_eq!((large.rule.name, large.events.len()), ("provisioner.claim.record-too-large", 1));
}

#[test]
fn every_rule_is_exercised() {
    let node = ObjectKey::cluster(Kind::Node, "n1");
    let not_ours =
        Provisioner::new(config()).decide(&Cache::new(bindery_matching::INDEX_POLICY), &node, &LiveReads::default());
    let mut exercised = BTreeSet::from([not_ours.rule.name, stale(json!({})).rule.name]);
    // Each of these has a test of its own above.
    exercised.extend([
        "provisioner.claim.superseded",
        "provisioner.claim.records-full",
        "provisioner.claim.record-too-large",
        "provisioner.record.malformed",
        "provisioner.record.not-ours",
    ]);
    exercised.extend(all().iter().filter_map(|case| check(case).ok()).flatten());
    let missing: Vec<_> = rules::ALL.iter().map(|rule| rule.name).filter(|name| !exercised.contains(name)).collect();
    assert!(missing.is_empty(), "no case exercises {missing:?}");
}
