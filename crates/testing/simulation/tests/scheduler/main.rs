//! Cases of the scheduler, by what they are about: scheduler, binder and companions decide together, and a test plays the external
//! provisioner. Each is run until stable, with a restart after every effect, and with two engines.

mod case;

mod neighbours;
mod nodes;
mod provisioning;
mod turns;
mod volumes;
mod watched;

use std::collections::BTreeSet;

use bindery_cache::Cache;
use bindery_model::{Kind, Name, ObjectKey};
use bindery_rules_api::{LiveReads, RuleSet};
use bindery_scheduler::{Scheduler, rules};
use bindery_simulation::table::check;
use case::Case;

/// Every case of every table.
fn all() -> Vec<Case> {
    [neighbours::cases(), nodes::cases(), provisioning::cases(), turns::cases(), volumes::cases()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_case_ends_as_it_should() {
    let failures: Vec<String> = all().iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "{} cases fail:\n\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn every_rule_is_exercised() {
    // NoObserver asks about these two, where all is in order: another kind of object, and a pod that is not there.
    let keys = [ObjectKey::cluster(Kind::Node, Name::from("node1")), case::pod_key("gone")];
    let decide = |key| {
        Scheduler::default().decide(&Cache::new(bindery_matching::INDEX_POLICY), key, &LiveReads::default()).rule.name
    };
    let mut exercised: BTreeSet<&str> = keys.iter().map(decide).collect();
    // A case that fails exercises nothing: another test tells.
    exercised.extend(all().iter().filter_map(|case| check(case).ok()).flatten());
    let declared: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.name).collect();
    let missing: Vec<_> = declared.difference(&exercised).collect();
    assert!(missing.is_empty(), "not exercised: {missing:#?}");
}
