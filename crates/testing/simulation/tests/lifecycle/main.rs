//! Upstream's table cases of the lifecycle controllers, and further cases. Each is run as one sync,
//! until stable, with a restart after every effect, and with two leaders.

mod case;

mod attributes_classes;
mod batches;
mod claims;
mod ephemeral;
mod expander;
mod faults;
mod flex;
mod owners;
mod unused;
mod volumes;

use std::collections::BTreeSet;

use bindery_cache::Cache;
use bindery_lifecycle::rules;
use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::LiveReads;
use bindery_simulation::table::check;
use case::{Case, all_controllers};

/// Every case of every table.
fn all() -> Vec<Case> {
    [
        attributes_classes::cases(),
        claims::cases(),
        ephemeral::cases(),
        expander::cases(),
        faults::cases(),
        flex::cases(),
        unused::cases(),
        volumes::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_case_reaches_its_expected_state() {
    let failures: Vec<String> = all().iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{} cases fail:\n\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn every_rule_is_exercised() {
    let node = ObjectKey::cluster(Kind::Node, Name::from("node1"));
    let not_ours = |set: Box<dyn bindery_rules_api::RuleSet + Send>| {
        set.decide(&Cache::new(bindery_matching::INDEX_POLICY), &node, &LiveReads::default()).rule.name
    };
    let mut exercised: BTreeSet<&str> = all_controllers().into_iter().map(not_ours).collect();
    // Failing cases are reported by the other test.
    exercised.extend(all().iter().filter_map(|case| check(case).ok()).flatten());
    let declared: BTreeSet<&str> = rules::all().map(|rule| rule.name).collect();
    let missing: Vec<_> = declared.difference(&exercised).collect();
    let undeclared: Vec<_> = exercised.difference(&declared).collect();
    assert!(missing.is_empty() && undeclared.is_empty(), "not exercised: {missing:#?}\nnot declared: {undeclared:#?}");
}
