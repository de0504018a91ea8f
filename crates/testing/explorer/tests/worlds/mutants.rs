//! The explorer finds defects: each of these rule sets or servers has one.

use bindery_binder::Binder;
use bindery_cache::{Cache, Change, IndexPolicy};
use bindery_explorer::{Faults, Scenario, UserAction, promises};
use bindery_lifecycle::ClaimProtection;
use bindery_model::ObjectKey;
use bindery_provisioner::{Config, Provisioner};
use bindery_rules_api::{Action, Failure, FailureEffect, LiveReads, Profile, Request, RuleSet, Task, Verdict};

use crate::{binding, protection, provisioning, rules, run, two};

/// A defect.
#[derive(Clone, Copy)]
enum Defect {
    /// Nothing is read live: the cache is trusted.
    TrustsCache,
    /// An unknown outcome is taken for a failure.
    TrustsTimeouts,
    /// No change wakes a key.
    NeverWakes,
}

struct Mutant<R>(R, Defect);

impl<R: RuleSet> RuleSet for Mutant<R> {
    fn profile(&self) -> Profile {
        self.0.profile()
    }

    fn index_policy(&self) -> Option<IndexPolicy> {
        self.0.index_policy()
    }

    fn decide(&self, known: &Cache, key: &ObjectKey, live_reads: &LiveReads) -> Verdict {
        let mut live_reads = live_reads.clone();
        let is_unknown =
            |failure: &Failure| matches!(self.1, Defect::TrustsTimeouts) && failure.effect == FailureEffect::Unknown;
        if live_reads.last_failure(Task::CreateStorage).is_some_and(is_unknown) {
            live_reads.note_outcome(Task::CreateStorage, Err(Failure::new("timeout")));
        }
        let verdict = self.0.decide(known, key, &live_reads);
        match (&verdict.action, self.1) {
            (Action::Request(Request::Read(read)), Defect::TrustsCache) => {
                live_reads.note_read(read.clone(), known.object(read));
            }
            (Action::Request(Request::List(listing)), Defect::TrustsCache) => {
                let cached = known.keys(listing.kind).into_iter().filter_map(|key| known.object(&key));
                live_reads.note_list(listing.clone(), cached.collect());
            }
            (_, _) => return verdict,
        }
        self.0.decide(known, key, &live_reads)
    }

    fn wake(&self, known: &Cache, change: &Change, wake: &mut dyn FnMut(ObjectKey)) {
        if !matches!(self.1, Defect::NeverWakes) {
            self.0.wake(known, change, wake);
        }
    }
}

/// Explores a world with a defect, and expects that it breaks a promise.
#[track_caller]
fn finds(promise: &str, scenario: Scenario) {
    let found = run(scenario).expect_err("the explorer misses a defect");
    println!("{found}");
    assert!(found.broken.starts_with(promise), "expected {promise}: {found}");
    assert!(!found.trace.is_empty());
}

#[test]
fn server_that_ignores_versions() {
    let users = vec![UserAction::Create("pvc c#u-c 1Gi Pending class=\npv a 1Gi Available")];
    let scenario = binding::scenario("pvc d#u-d 1Gi Pending class=");
    finds("S1", Scenario { users, ignores_versions: true, ..scenario });
}

#[test]
fn binder_that_trusts_its_cache() {
    let binder = || Mutant(Binder::default(), Defect::TrustsCache);
    let users = vec![UserAction::Create("pv a 1Gi Available ->c#u-c")];
    finds("S13", Scenario { users, lag: 3, ..two(rules(binder), "pvc c#u-c 1Gi Pending class= vol=a") });
}

#[test]
fn protection_that_trusts_its_cache() {
    let rule_set = || Mutant(ClaimProtection { reports_unused: false }, Defect::TrustsCache);
    let instances = vec![rules(rule_set)];
    finds("S12", Scenario { users: protection::users(), instances, ..protection::claims() });
}

#[test]
fn binder_that_is_not_woken() {
    let binder = || Mutant(Binder::default(), Defect::NeverWakes);
    let users = vec![UserAction::Create("pv a 1Gi Available")];
    let world = two(rules(binder), "pvc c#u-c 1Gi Pending class=");
    finds("L1", Scenario { users, ends: vec![promises::bound], ..world });
}

#[test]
fn provisioner_that_trusts_timeouts() {
    let provisioner = || Mutant(Provisioner::new(Config::new("csi.example.com")), Defect::TrustsTimeouts);
    let faults = Faults { lost_answers: 1, ..Faults::default() };
    let users = vec![provisioning::delete_claim()];
    let scenario = provisioning::scenario(1);
    finds("S10", Scenario { users, faults, instances: vec![rules(provisioner)], ..scenario });
}

/// The same states are found in every run.
#[test]
fn counting_is_deterministic() {
    let world = || binding::scenario("pvc c#u-c 1Gi Pending class=\npv a 1Gi Available\npv b 1Gi Available");
    let first = run(world()).expect("all promises hold");
    assert_eq!(run(world()), Ok(first));
    let defect = || Scenario { ignores_versions: true, ..world() };
    assert_eq!(run(defect()), run(defect()));
}
