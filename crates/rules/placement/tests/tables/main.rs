//! Upstream's table cases for the scheduler's volume binder and the plugins beside it, by what they are about, in a notation of
//! our own (see `world.rs`).
//!
//! A case is a name, a world, and what comes of it in words. Where upstream lets the order of a Go map decide, we say what comes.
//! Cases that cannot be written down in Rust are left out: lists that are nil instead of empty.

mod binding;
mod finding;
mod matching;
mod plugins;
mod scoring;
mod world;

use std::cell::RefCell;
use std::collections::BTreeSet;

use bindery_placement::{Found, Refusal, rules};
use bindery_rules_api::Rule;

thread_local! {
    /// The rules that the cases of this thread have come to.
    static SEEN: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

fn saw(rule: &'static Rule) {
    SEEN.with_borrow_mut(|seen| seen.insert(rule.name));
}

/// What a node has for a pod, in words: `claim=volume` for what was found, `+claim` for what can be made (`@` where there is room
/// for it), and what is against the node.
fn in_words(found: &Found<'_>) -> String {
    let bindings = found.bindings.iter().map(|found| format!("{}={}", found.claim.meta.name, found.volume.name()));
    let provisions = found.provisions.iter().map(|found| {
        let room = found.room.map(|room| format!("@{}", room.meta.name)).unwrap_or_default();
        format!("+{}{room}", found.claim.meta.name)
    });
    let obstacles = found.obstacles.iter().map(|obstacle| {
        saw(obstacle.rule());
        format!("!{obstacle}")
    });
    bindings.chain(provisions).chain(obstacles).collect::<Vec<_>>().join(" ")
}

fn refusal_in_words(refusal: &Refusal) -> String {
    saw(refusal.rule());
    format!("refused: {refusal}")
}

/// Runs a table, and tells of all cases that come otherwise at once.
fn check<'c>(cases: impl IntoIterator<Item = (&'c str, String, String)>) {
    let differ = |(name, is, wanted): (&str, String, String)| {
        (is != wanted).then(|| format!("{name}\n    is:     {is:?}\n    wanted: {wanted:?}"))
    };
    let wrong: Vec<String> = cases.into_iter().filter_map(differ).collect();
    assert!(wrong.is_empty(), "{} cases came otherwise:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_rule_is_exercised() {
    for table in [finding::tables(), matching::tables(), binding::tables(), plugins::tables()].concat() {
        table();
    }
    let seen = SEEN.with_borrow(Clone::clone);
    let unseen: Vec<&str> = rules::ALL.iter().map(|rule| rule.name).filter(|name| !seen.contains(name)).collect();
    assert!(unseen.is_empty(), "no case comes to {unseen:?}");
}

#[test]
fn names_are_unique_and_sentences_whole() {
    let names: BTreeSet<&str> = rules::ALL.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), rules::ALL.len(), "every rule has a name of its own");
    for rule in rules::ALL {
        assert!(rule.name.starts_with("placement.") && rule.why.ends_with('.'), "{}", rule.name);
    }
}
