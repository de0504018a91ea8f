//! Upstream's table cases for the scheduler's volume plugins, by topic, in the notation of
//! `world.rs`.
//!
//! A case is a name, a cluster, and the expected result as text. Where upstream's result depends on
//! the order of a Go map, ours is fixed. Cases that differ only in nil and empty lists are left
//! out.

mod binding;
mod finding;
mod matching;
mod plugins;
mod scoring;
mod world;

use std::cell::RefCell;
use std::collections::BTreeSet;

use bindery_placement::{ClaimRejection, NodeVolumes, PodRejection, rules};
use bindery_rules_api::Rule;

thread_local! {
    /// The rules that the cases of this thread have reported.
    static SEEN: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

fn saw(rule: &'static Rule) {
    SEEN.with_borrow_mut(|seen| seen.insert(rule.name));
}

/// A node's volumes as text: `claim=volume` for existing ones, `+claim` for new ones (`@` and the
/// capacity they fit in), and `!` with the reasons against the node.
fn volumes_text(found: &NodeVolumes<'_>) -> String {
    let bindings = found.bindings.iter().map(|found| format!("{}={}", found.claim.meta.name, found.volume.name()));
    let new_volumes = found.new_volumes.iter().map(|found| {
        let capacity = found.capacity.map(|capacity| format!("@{}", capacity.meta.name)).unwrap_or_default();
        format!("+{}{capacity}", found.claim.meta.name)
    });
    let rejections = found.rejections.iter().map(|rejection| format!("!{rejection}"));
    bindings.chain(new_volumes).chain(rejections).collect::<Vec<_>>().join(" ")
}

fn rejection_text(rejection: &PodRejection) -> String {
    format!("rejected: {rejection}")
}

/// The result of a preparation, or the first rejection because of a claim.
fn or_rejected<T>(prepare: impl FnOnce(&mut Vec<ClaimRejection>) -> T) -> Result<T, PodRejection> {
    let mut rejected = Vec::new();
    let prepared = prepare(&mut rejected);
    rejected.into_iter().next().map_or(Ok(prepared), |rejected| Err(rejected.why))
}

/// Runs a table, and reports all failing cases at once.
fn check<'c>(cases: impl IntoIterator<Item = (&'c str, String, String)>) {
    let differ = |(name, is, wanted): (&str, String, String)| {
        (is != wanted).then(|| format!("{name}\n    is:     {is:?}\n    wanted: {wanted:?}"))
    };
    let wrong: Vec<String> = cases.into_iter().filter_map(differ).collect();
    assert!(wrong.is_empty(), "{} cases failed:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_rule_is_exercised() {
    for table in binding::tables() {
        table();
    }
    let seen = SEEN.with_borrow(Clone::clone);
    let unseen: Vec<&str> = rules::ALL.iter().map(|rule| rule.name).filter(|name| !seen.contains(name)).collect();
    assert!(unseen.is_empty(), "no case reports {unseen:?}");
}

#[test]
fn rule_names_are_unique_and_sentences_complete() {
    let names: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), rules::ALL.len(), "every rule has a unique name");
    for rule in rules::ALL {
        assert!(rule.name.starts_with("placement.") && rule.why.ends_with('.'), "{}", rule.name);
    }
}
