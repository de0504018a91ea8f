//! Upstream's table cases of the binder with their numbers, and further cases. Each is run as one
//! sync, until stable, and with a restart after every write.

mod case;

mod binder;
mod controller;
mod delete;
mod faults;
mod migration;
mod provision;
mod recycle;
mod retroactive;
mod rules_only;
mod scrub_fence;

use std::collections::BTreeSet;

use bindery_binder::{Binder, rules};
use bindery_cache::Cache;
use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::{LiveReads, RuleSet, Task};
use case::Case;

/// Every case of every table.
fn all() -> Vec<Case> {
    [
        binder::cases(),
        controller::cases(),
        delete::cases(),
        faults::cases(),
        migration::cases(),
        provision::cases(),
        recycle::cases(),
        rules_only::cases(),
        retroactive::cases(),
        scrub_fence::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_case_reaches_its_expected_state() {
    let failures: Vec<String> = all().iter().filter_map(|case| case::check(case).err()).collect();
    assert!(failures.is_empty(), "{} cases fail:\n\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn every_rule_is_exercised() {
    let node = ObjectKey { kind: Kind::Node, namespace: Name::default(), name: Name::from("node1") };
    let not_ours =
        Binder::default().decide(&Cache::new(bindery_matching::INDEX_POLICY), &node, &LiveReads::default()).rule.name;
    let mut exercised = BTreeSet::from([not_ours, scrub_fence::superseded(Task::Recycle).name]);
    // Failing cases are reported by the other test.
    exercised.extend(all().iter().filter_map(|case| case::check(case).ok()).flatten());
    let declared: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.name).collect();
    let missing: Vec<_> = declared.difference(&exercised).collect();
    let undeclared: Vec<_> = exercised.difference(&declared).collect();
    assert!(missing.is_empty() && undeclared.is_empty(), "not exercised: {missing:#?}\nnot declared: {undeclared:#?}");
}
