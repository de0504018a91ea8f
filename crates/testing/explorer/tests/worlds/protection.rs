//! Protection: S12, S14; L4.

use std::sync::Arc;

use bindery_binder::Binder;
use bindery_explorer::{Faults, Rules, Scenario, UserAction, promises};
use bindery_lifecycle::{ClaimProtection, VolumeProtection};
use bindery_model::{ObjectKey, PodKey};

use crate::{check, claim, rules, two};

const CLAIM: &str = "pvc c#u-c 1Gi Bound vol=a bbc bc protected";

pub fn claims() -> Scenario {
    let protection = rules(|| ClaimProtection { reports_unused: false });
    Scenario { ends: vec![promises::protected], ..two(protection, CLAIM) }
}

fn pod(name: &str) -> ObjectKey {
    PodKey { namespace: "default".into(), name: name.into() }.into()
}

/// Pods start and end, and the claim is deleted.
pub fn users() -> Vec<UserAction> {
    vec![
        UserAction::Run("pod p claim=c node=n phase=Running"),
        UserAction::Delete(claim("c")),
        UserAction::Delete(pod("p")),
        UserAction::Run("pod q claim=c node=n phase=Running"),
    ]
}

#[test]
fn claim_that_pods_use() {
    check("protection: a claim and its pods", Scenario { users: users(), lag: 4, ..claims() });
}

#[test]
fn claim_that_pods_use_and_a_crash() {
    let faults = Faults { crashes: 1, late_requests: 1, ..Faults::default() };
    check("protection: a claim and its pod, crash", Scenario { users: users()[..3].to_vec(), faults, ..claims() });
}

#[test]
fn claim_that_pods_use_and_a_lost_answer() {
    let faults = Faults { lost_answers: 1, late_requests: 1, early_timers: 1, ..Faults::default() };
    check(
        "protection: a claim and its pod, lost answer",
        Scenario { users: users()[..3].to_vec(), faults, ..claims() },
    );
}

#[test]
fn volume_that_is_bound() {
    let both: Rules = Arc::new(|_| vec![Box::new(Binder::default()), Box::new(VolumeProtection)]);
    let objects = "pvc c#u-c 1Gi Pending class= protected
                   pv a 1Gi Available protected";
    let users = vec![UserAction::Delete(ObjectKey::volume("a"))];
    check("protection: a volume", Scenario { users, ends: vec![promises::protected], ..two(both, objects) });
}
