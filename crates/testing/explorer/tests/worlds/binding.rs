//! Binding: S1 to S3, S6, S8, S11, S13, S14; L1, L2, L4.

use bindery_binder::Binder;
use bindery_explorer::{Faults, Scenario, UserAction, promises};
use bindery_model::ObjectKey;
use serde_json::json;

use crate::{check, claim, rules, two};

/// Two instances of the binder.
pub fn scenario(objects: &'static str) -> Scenario {
    Scenario { ends: vec![promises::bound], ..two(rules(Binder::default), objects) }
}

const CLAIM_AND_TWO_VOLUMES: &str = "pvc c#u-c 1Gi Pending class=
                                     pv a 1Gi Available
                                     pv b 2Gi Available";
const CLAIM_AND_VOLUME: &str = "pvc c#u-c 1Gi Pending class=
                                pv a 1Gi Available";

#[test]
fn claim_and_two_volumes() {
    check("binding: one claim, two volumes", Scenario { lag: 4, ..scenario(CLAIM_AND_TWO_VOLUMES) });
}

#[test]
fn claims_compete_for_a_volume() {
    let users =
        vec![UserAction::Create("pvc d#u-d 1Gi Pending class="), UserAction::Create("pvc c#u-c 1Gi Pending class=")];
    check("binding: two new claims, one volume", Scenario { users, ..scenario("pv a 1Gi Available") });
}

#[test]
fn claim_is_deleted() {
    let users = vec![UserAction::Delete(claim("c"))];
    check("binding: the claim is deleted", Scenario { users, ..scenario(CLAIM_AND_VOLUME) });
}

#[test]
fn claim_is_replaced() {
    let users = vec![UserAction::Delete(claim("c")), UserAction::Create("pvc c#u-c2 1Gi Pending class=")];
    check("binding: the claim is replaced", Scenario { users, lag: 1, ..scenario(CLAIM_AND_VOLUME) });
}

#[test]
fn volume_is_deleted() {
    let users = vec![UserAction::Delete(ObjectKey::volume("a"))];
    check("binding: the volume is deleted", Scenario { users, ..scenario(CLAIM_AND_VOLUME) });
}

#[test]
fn volume_is_reserved_by_a_user() {
    let other = json!({"namespace": "default", "name": "d", "uid": null, "resourceVersion": null});
    let users = vec![UserAction::Edit(ObjectKey::volume("a"), json!({"spec": {"claimRef": other}}))];
    check("binding: the volume is reserved by a user", Scenario { users, lag: 1, ..scenario(CLAIM_AND_VOLUME) });
}

#[test]
fn instance_crashes() {
    let faults = Faults { crashes: 1, late_requests: 1, ..Faults::default() };
    check("binding: crash, late request", Scenario { faults, ..scenario(CLAIM_AND_VOLUME) });
}

#[test]
fn answer_is_lost() {
    let faults = Faults { lost_answers: 1, late_requests: 1, early_timers: 1, ..Faults::default() };
    check("binding: lost answer, late request", Scenario { faults, ..scenario(CLAIM_AND_VOLUME) });
}
