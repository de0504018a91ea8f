//! Table cases of the scheduler, with binder, lifecycle controllers and a simulated external
//! provisioner. Each is run until stable, with a restart after every effect, and with two leaders.

mod case;

mod affinity;
mod explained;
mod nodes;
mod provisioning;
mod queue_order;
mod volumes;

use std::collections::BTreeSet;

use bindery_cache::Cache;
use bindery_model::event::Reason;
use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::{LiveReads, RuleSet};
use bindery_scheduler::{Scheduler, rules};
use bindery_simulation::notation;
use bindery_simulation::run::{Restart, Run};
use bindery_simulation::table::check;
use case::Case;

/// Every case of every table.
fn all() -> Vec<Case> {
    [affinity::cases(), nodes::cases(), provisioning::cases(), queue_order::cases(), volumes::cases()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_case_reaches_its_expected_state() {
    let failures: Vec<String> = all().iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{} cases fail:\n\n{}", failures.len(), failures.join("\n\n"));
}

/// The ephemeral volume controller needs a moment to create the claim. Without it, the pod waits.
#[test]
fn a_pod_is_not_told_failed_scheduling_while_its_ephemeral_claim_is_created() {
    let cluster = notation::parse(
        "sc local kubernetes.io/no-provisioner wffc
         node n1
         pv v1 1Gi Available class=local on=n1
         pod p eph=scratch:1Gi:local",
    );
    let scheduler_only = || vec![Box::new(Scheduler::default()) as Box<dyn RuleSet + Send>];
    let mut waiting = Run::start(cluster.clone(), &scheduler_only, Restart::Never);
    waiting.until_stable();
    let mut placed = Run::start(cluster, &case::all_rule_sets, Restart::Never);
    placed.until_stable();
    assert!(waiting.report.rules.contains(rules::WAITS_FOR_EPHEMERAL_CLAIM.name));
    assert_eq!(waiting.report.events, [], "the claim is only late");
    assert!(placed.report.rules.contains(rules::WAITS_FOR_EPHEMERAL_CLAIM.name), "the scheduler decided first");
    let reasons: Vec<_> = placed.report.events.iter().map(|event| event.reason).collect();
    assert!(!reasons.contains(&Reason::FailedScheduling), "{reasons:?}");
    assert!(reasons.contains(&Reason::Scheduled), "{reasons:?}");
}

#[test]
fn every_rule_is_exercised() {
    // Two rules that no case exercises: another kind of object, and a deleted pod.
    let keys = [ObjectKey::cluster(Kind::Node, Name::from("node1")), case::pod_key("gone")];
    let decide = |key| {
        Scheduler::default().decide(&Cache::new(bindery_matching::INDEX_POLICY), key, &LiveReads::default()).rule.name
    };
    let mut exercised: BTreeSet<&str> = keys.iter().map(decide).collect();
    // Failing cases are reported by the other test.
    exercised.extend(all().iter().filter_map(|case| check(case).ok()).flatten());
    let declared: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.name).collect();
    let missing: Vec<_> = declared.difference(&exercised).collect();
    assert!(missing.is_empty(), "not exercised: {missing:#?}");
}
